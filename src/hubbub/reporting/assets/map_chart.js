// The map: cells coloured by the square root of the share, so that sparse areas can be seen beside a dense centre.
const {columns, rows, width, height} = kind === "map" ? data.values : {columns: 0, rows: 0, width: 1, height: 1};
const centreX = (place) => (columnOf(place) + 0.5) * width;
const centreY = (place) => (rowOf(place) + 0.5) * height;
const cellX = Array.from({length: columns}, (_, column) => (column + 0.5) * width);
const cellY = Array.from({length: rows}, (_, row) => (row + 0.5) * height);
const positions = new Int32Array(columns * rows).fill(-1);
if (kind === "map") for (const place of everything) positions[numberOf(place)] = place;

// One number for each cell, row by row; cells outside the domain stay blank.
function sheet(valueOf) {
  return Array.from({length: rows}, (_, row) => Array.from({length: columns}, (_, column) => {
    const place = positions[row * columns + column];
    return place < 0 ? null : valueOf(place);
  }));
}

const roots = (numbers) => sheet((place) => Math.sqrt(Math.max(0, numbers[place])));

function colourBar(top) {
  const parts = narrow() ? 3 : 5; // of equal length
  const steps = Array.from({length: parts + 1}, (_, step) => (step / parts) ** 2 * top);
  return {
    tickvals: steps.map(Math.sqrt), ticktext: steps.map(percent), thickness: 12, outlinewidth: 0, ypad: 4, xpad: 6,
    tickfont: {size: 12, color: colour("quiet")}, ...(narrow() ? {orientation: "h", y: -0.14, yanchor: "top", thickness: 10} : {}),
  };
}

function heat(numbers, top, more) {
  return {
    type: "heatmap", x: cellX, y: cellY, z: roots(numbers), zmin: 0, zmax: Math.sqrt(top) || 1, colorscale: "Cividis", zsmooth: false,
    hoverinfo: "none", hoverongaps: false, colorbar: colourBar(top), ...more,
    uid: narrow() ? "lying" : "upright", // or the numbers of a colour bar that was turned stay where they were
  };
}

// The border of some cells: of each of them, the sides whose neighbour does not belong with it.
function border(cells, together, fill) {
  const x = [], y = [];
  const neighbour = (column, row) => (column >= 0 && row >= 0 && column < columns && row < rows ? positions[row * columns + column] : -1);
  for (const place of cells) {
    const column = columnOf(place), row = rowOf(place);
    for (const [dx, dy] of [[-1, 0], [1, 0], [0, -1], [0, 1]]) {
      const other = neighbour(column + dx, row + dy);
      if (other >= 0 && together(place, other)) continue;
      const fixed = dx ? column + (dx > 0) : row + (dy > 0);
      x.push(...(dx ? [fixed * width, fixed * width] : [column * width, (column + 1) * width]), null);
      y.push(...(dx ? [row * height, (row + 1) * height] : [fixed * height, fixed * height]), null);
    }
  }
  return [
    {type: "scatter", mode: "lines", hoverinfo: "skip", x, y, line: {color: "#000000", width: 4}},
    {type: "scatter", mode: "lines", hoverinfo: "skip", x, y, line: {color: fill, width: 2}},
  ];
}

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

const map = {
  modes: [["select", "Box"], ["lasso", "Lasso"], ["zoom", "Zoom"], CLICKS],
  which: () => everything,
  total: count,
  frame(share = 1, more) {
    const box = byId("chart").clientWidth || 900, bar = narrow() ? 0 : 110;
    const wide = (printing ? PAPER_WIDTH : box) * share - 70 - bar;
    const tall = Math.min(Math.max((wide * rows * height) / (columns * width), 120), printing ? 420 : 620);
    const unit = plain(cut(data.values.unit, 20));
    const named = (text) => axisTitle(narrow() ? "" : text);
    return layout({
      height: tall + 60 + (narrow() ? 70 : 0), hovermode: "closest", plot_bgcolor: colour("hole"), ...more,
      xaxis: axis({range: [0, columns * width], constrain: "domain", showgrid: false, zeroline: false, title: named(`east (${unit})`)}),
      yaxis: axis({range: [0, rows * height], constrain: "domain", scaleanchor: "x", showgrid: false, zeroline: false,
        title: named(`north (${unit})`)}),
    });
  },
  draw() {
    const top = largestOf(estimate);
    painted ??= roots(estimate);
    const at = marked < 0 ? [] : [marked];
    const picked = selected.size ? [veil(), ...border(selected, (_, other) => selected.has(other), PICKED_BORDER)] : [];
    const traces = [heat(estimate, top, {z: painted}), ...picked];
    return {traces: [...traces, pointer(at.map(centreX), at.map(centreY))], layout: map.frame()};
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
      margin: {l: 56, r: 16, t: 36, b: 48}, ...(printing ? {width: PAPER_WIDTH} : {})});
    return [
      {traces: () => [heat(noisy, top, {})], layout: named("noisy")},
      {traces: () => [heat(estimate, top, {})], layout: named("estimated")},
    ];
  },
  walk: () => everything,
};
