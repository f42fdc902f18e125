// The map: cells coloured by the square root of the share, so that sparse areas can be seen beside a dense centre.
function insidePolygon(x, y, polygon) {
  let inside = false;
  for (let corner = 0, before = polygon.x.length - 1; corner < polygon.x.length; before = corner++) {
    const [x1, y1, x2, y2] = [polygon.x[corner], polygon.y[corner], polygon.x[before], polygon.y[before]];
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
  }
  return inside;
}

const PICKED_BORDER = "#ffb05c";

// What is not selected is faded.
const veil = () => ({
  type: "heatmap", x: cellX, y: cellY, z: sheet((place) => (selected.has(place) ? null : 1)), hoverinfo: "skip", showscale: false,
  colorscale: [[0, colour("paper")], [1, colour("paper")]], opacity: 0.45,
});

let painted = null; // the square roots, which no selection changes

const wholeMap = {x: [0, columns * width], y: [0, rows * height]};
let zoomedMap = null; // what is shown of the map after a zoom: ticks and scale bar follow it
const mapMargin = () => ({l: !box ? 56 : narrow() ? 66 : 76, r: 16, t: 12, b: (box ? 30 : 48) + FURNITURE_PIXELS});

const map = {
  modes: [["select", "Box"], ["lasso", "Lasso"], ["zoom", "Zoom"], CLICKS],
  which: () => everything,
  total: count,
  // The size of the map's plane, on a chart that takes that share of the page's width.
  pixels(share = 1) {
    const across = (printing ? PAPER_WIDTH : byId("chart").clientWidth || 900) * share;
    const {l: left, r: right} = mapMargin(), wide = across - left - (narrow() ? right : 110);
    return {x: wide, y: Math.floor(Math.min(Math.max((wide * rows * height) / (columns * width), 120), printing ? 420 : 620))};
  },
  frame(share = 1, {shown = wholeMap, named = false, ...more} = {}) {
    const margin = mapMargin(), pixels = map.pixels(share), sides = mapSides(shown, pixels), {shapes, annotations} = furniture(shown);
    return layout({
      height: pixels.y + margin.t + margin.b + (narrow() ? 60 : 0), hovermode: "closest", plot_bgcolor: colour("hole"), margin,
      shapes, annotations: [...annotations, ...(named ? regionLabels(shown, pixels) : [])],
      xaxis: axis({range: [...shown.x], constrain: "domain", showgrid: false, zeroline: false, ...sides.x}),
      yaxis: axis({range: [...shown.y], constrain: "domain", scaleanchor: "x", showgrid: false, zeroline: false, ...sides.y}),
      ...more,
    });
  },
  // What every view of the map has over its cells: regions, the selection, the marked cell.
  dressed(cells, at = marked < 0 ? [] : [marked], over = []) {
    const picked = selected.size ? [veil(), ...border(selected, (_, other) => selected.has(other), PICKED_BORDER)] : [];
    return {
      traces: [...cells, ...outlineTraces(over.length > 0), ...over, ...picked, pointer(at.map(centreX), at.map(centreY))],
      layout: map.frame(1, {shown: zoomedMap ?? wholeMap, named: true}),
    };
  },
  draw() {
    painted ??= roots(estimate);
    return map.dressed([heat(estimate, largestOf(estimate), {z: painted})]);
  },
  at: ({x, y}) => positions[Math.floor(y / height) * columns + Math.floor(x / width)],
  inside({range, lassoPoints}) {
    if (lassoPoints) return everything.filter((place) => insidePolygon(centreX(place), centreY(place), lassoPoints));
    const [west, east] = [Math.min(...range.x), Math.max(...range.x)], [south, north] = [Math.min(...range.y), Math.max(...range.y)];
    return everything.filter((place) =>
      centreX(place) >= west && centreX(place) <= east && centreY(place) >= south && centreY(place) <= north);
  },
  compare() {
    const top = Math.max(largestOf(noisy), largestOf(estimate));
    const share = narrow() || printing ? 1 : 0.5;
    const named = (text) => map.frame(share, {title: {text, font: {size: 14}, x: 0.02, xanchor: "left", y: 0.985, yanchor: "top"},
      margin: {...mapMargin(), t: 36}, ...(printing ? {width: PAPER_WIDTH} : {})});
    return [
      {traces: () => [heat(noisy, top, {})], layout: named("noisy")},
      {traces: () => [heat(estimate, top, {})], layout: named("estimated")},
    ];
  },
  walk: () => everything,
};
