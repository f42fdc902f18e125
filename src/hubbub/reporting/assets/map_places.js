// Where things are on the map: latitudes and longitudes as Python writes them, round ticks, a round scale bar.
const box = data.values.box ?? null; // null: the grid has no place on the map

// The same wording as _degrees_text() in hubbub/domains/place_text.py.
function degreesText(degrees, decimals, hemispheres) {
  const rounded = Math.abs(degrees).toFixed(decimals);
  return `${rounded}° ${hemispheres[degrees < 0 && Number(rounded) > 0 ? 1 : 0]}`;
}

const latitudeOf = (y) => box.south + (y / (data.values.rows * data.values.height)) * (box.north - box.south);
const longitudeOf = (x) => box.west + (x / (data.values.columns * data.values.width)) * (box.east - box.west);
const xOf = (longitude) => ((longitude - box.west) / (box.east - box.west)) * data.values.columns * data.values.width;
const yOf = (latitude) => ((latitude - box.south) / (box.north - box.south)) * data.values.rows * data.values.height;

// Any point, with one digit more than cells have.
const pointText = (x, y) =>
  `${degreesText(latitudeOf(y), data.values.decimals + 1, "NS")}, ${degreesText(longitudeOf(x), data.values.decimals + 1, "EW")}`;

// The smallest of 1, 2, 5, 10, 20 ... of which no more than `most` fit into a span.
function roundStep(span, most) {
  const power = 10 ** Math.floor(Math.log10(span / most));
  return power * [1, 2, 5, 10].find((factor) => span / (power * factor) <= most);
}

// Few round degrees between two ends, as ticks of an axis that is measured in kilometres.
function degreeTicks([from, to], most, degreesAt, placeAt, hemispheres) {
  const [first, last] = [degreesAt(from), degreesAt(to)], step = roundStep(last - first, most);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const start = Math.ceil(first / step - 1e-9), end = Math.floor(last / step + 1e-9);
  const ticks = Array.from({length: Math.max(0, end - start + 1)}, (_, number) => (start + number) * step);
  return {tickvals: ticks.map(placeAt), ticktext: ticks.map((degrees) => degreesText(degrees, decimals, hemispheres))};
}

// The length of a scale bar: the largest round one that takes no more than a quarter of the width.
function scaleLength(span) {
  const power = 10 ** Math.floor(Math.log10(span / 4));
  return power * [5, 2, 1].find((factor) => power * factor <= span / 4);
}
const lengthText = (kilometres) => (kilometres < 1 ? `${Number((1000 * kilometres).toPrecision(1))} m` : `${Number(kilometres.toPrecision(1)).toLocaleString("en")} km`);

// The regions that the reader's file names: their outlines in the map's kilometres, and the region of each cell.
const regionNames = data.regions?.names ?? [];
const regionOf = data.regions ? new Int32Array(bytesOf(data.regions.of).buffer) : null;
const outlines = (data.regions?.outlines ?? []).map((rings) =>
  rings.map((ring) => ({x: ring.map(([longitude]) => xOf(longitude)), y: ring.map(([, latitude]) => yOf(latitude))})));
