// What a map has besides its cells: degrees along its sides, a scale bar, north, outlines and names of regions.
const TICK_PIXELS = {x: 105, y: 60}; // that a label takes, with the space around it
const FURNITURE_PIXELS = box ? 34 : 0; // below the degrees
const LETTER_PIXELS = 6.3, LABEL_HEIGHT = 17; // of a region's name
const MAX_REGION_LETTERS = 26;

// Both sides of a map: in degrees where it has a place on the map, in the unit of its cells otherwise.
function mapSides({x, y}, pixels) {
  if (!box) {
    const unit = plain(cut(data.values.unit, 20)), named = (text) => axisTitle(narrow() ? "" : `${text} (${unit})`);
    return {x: {title: named("east")}, y: {title: named("north")}};
  }
  const fitting = (side) => Math.max(2, Math.min(5, Math.floor(pixels[side] / TICK_PIXELS[side])));
  const marks = {ticks: "outside", ticklen: 5, tickcolor: colour("line")};
  return {
    x: {...marks, ...degreeTicks(x, fitting("x"), longitudeOf, xOf, "EW")},
    y: {...marks, ...degreeTicks(y, fitting("y"), latitudeOf, yOf, "NS")},
  };
}

// A scale bar at the left and an arrow to the north at the right, below the map: over the cells they would hide some.
function furniture({x: [west, east]}) {
  if (!box) return {shapes: [], annotations: []};
  const length = scaleLength(east - west), from = west + 0.003 * (east - west), ink = colour("quiet");
  const stroke = (x0, y0, x1, y1) => ({
    type: "line", xref: "x", yref: "y domain", ysizemode: "pixel", yanchor: 0, x0, x1, y0, y1, line: {color: ink, width: 2},
  });
  const said = (text, more) => ({text, showarrow: false, yref: "y domain", y: 0, yanchor: "middle", yshift: -44, font: {size: 12, color: ink}, ...more});
  return {
    shapes: [stroke(from, -44, from + length, -44), stroke(from, -40, from, -48), stroke(from + length, -40, from + length, -48)],
    annotations: [
      said(lengthText(length), {xref: "x", x: from + length, xanchor: "left", xshift: 6, name: "scale"}),
      said("↑ N", {xref: "x domain", x: 1, xanchor: "right", name: "north"}),
    ],
  };
}

// White on black can be seen on every colour; where parts have such borders, regions have thin dotted ones.
function outlineTraces(isQuiet) {
  const x = [], y = [];
  for (const ring of outlines.flat()) {
    x.push(...ring.x, null);
    y.push(...ring.y, null);
  }
  const stroke = (line) => ({type: "scatter", mode: "lines", hoverinfo: "skip", x, y, line, ...KEEP_OPACITY});
  if (!outlines.length) return [];
  return isQuiet ? [stroke({color: "rgba(0, 0, 0, 0.75)", width: 1.2, dash: "dot"})]
    : [stroke({color: "rgba(0, 0, 0, 0.6)", width: 3}), stroke({color: "#ffffff", width: 1.2})];
}

const areaOf = ({x, y}) => Math.abs(x.reduce((total, _, corner) => {
  const next = (corner + 1) % x.length;
  return total + x[corner] * y[next] - x[next] * y[corner];
}, 0)) / 2;

// Where a region's name stands: in the widest run of the region, its holes left out, at half the height of its largest ring.
function labelPlace(largest, rings) {
  const ends = (numbers) => [Math.min(...numbers), Math.max(...numbers)];
  const [south, north] = ends(largest.y), y = (south + north) / 2, crossings = [];
  for (const ring of rings) {
    ring.x.forEach((x, corner) => {
      const before = (corner || ring.x.length) - 1, [x1, y1] = [ring.x[before], ring.y[before]];
      if (y1 > y !== ring.y[corner] > y) crossings.push(x1 + ((y - y1) / (ring.y[corner] - y1)) * (x - x1));
    });
  }
  crossings.sort((first, second) => first - second);
  let best = {x: NaN, y, width: 0, height: north - south};
  for (let run = 0; run + 1 < crossings.length; run += 2) {
    const width = crossings[run + 1] - crossings[run];
    if (width > best.width) best = {...best, width, x: (crossings[run] + crossings[run + 1]) / 2};
  }
  return best;
}

// Names of regions, the largest first, as far as they fit into their region, into the map, and beside each other.
function regionLabels({x, y}, pixels) {
  const scale = pixels.x / (x[1] - x[0]), placed = [];
  const candidates = outlines.map((rings, number) => {
    const [ring] = rings.toSorted((first, second) => areaOf(second) - areaOf(first));
    return ring ? {...labelPlace(ring, rings), area: areaOf(ring), name: cut(regionNames[number], MAX_REGION_LETTERS)} : {width: 0};
  }).filter(({width}) => width > 0).sort((first, second) => second.area - first.area);
  for (const candidate of candidates) {
    const half = {x: (LETTER_PIXELS * [...candidate.name].length + 8) / 2 / scale, y: LABEL_HEIGHT / 2 / scale};
    const fits = 2 * half.x <= 1.15 * candidate.width && 2 * half.y <= candidate.height
      && candidate.x - half.x >= x[0] && candidate.x + half.x <= x[1] && candidate.y - half.y >= y[0] && candidate.y + half.y <= y[1]
      && placed.every((other) => Math.abs(other.x - candidate.x) > half.x + other.half.x || Math.abs(other.y - candidate.y) > half.y + other.half.y);
    if (fits) placed.push({...candidate, half});
  }
  return placed.map((label) => ({
    text: plain(label.name), x: label.x, y: label.y, showarrow: false, font: {size: 11, color: "#1a2129"}, bgcolor: "rgba(255, 255, 255, 0.78)",
    borderpad: 1, name: "region",
  }));
}
