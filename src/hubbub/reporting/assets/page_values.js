// The values of the domain: their names, their places, what is known of each.
const data = JSON.parse(byId("data").textContent);
const kind = data.values.kind, count = data.values.count;
const estimate = floatsOf(data.estimate, count);
const confidence = {low: boundsOf(data.low, count), high: boundsOf(data.high, count)}; // of confidence intervals
// What is shown holds the estimate.
const low = confidence.low.map((end, place) => Math.min(end, estimate[place]));
const high = confidence.high.map((end, place) => Math.max(end, estimate[place]));
const isExtended = (place) => low[place] < confidence.low[place] || high[place] > confidence.high[place];
const hasInterval = (place) => !Number.isNaN(low[place]) && !Number.isNaN(high[place]);
const intervalAt = (place) => ({low: low[place], high: high[place]});
const noisy = data.noisy === null ? null : floatsOf(data.noisy, count);
const atLevel = `at ${Number((100 * data.level).toPrecision(10))}%`;

const listed = data.values.listed ? floatsOf(data.values.listed, count) : null;
const numberOf = (place) => (listed ? listed[place] : data.values.first + place);
const columnOf = (place) => numberOf(place) % data.values.columns;
const rowOf = (place) => Math.floor(numberOf(place) / data.values.columns);

// Where values are on a line, and how wide their bins are.
const places = kind !== "line" ? null
  : data.values.places ? floatsOf(data.values.places, count) : Float64Array.from({length: count}, (_, place) => numberOf(place));
const widths = data.values.widths ? floatsOf(data.values.widths, count) : null;

// Combinations of several attributes; the last one varies fastest, and impossible ones have no place.
const axes = data.values.attributes ?? null;
const possibleCells = data.values.cells ? new Int32Array(bytesOf(data.values.cells).buffer) : null;
function placesOn(place) {
  let rest = possibleCells ? possibleCells[place] : place;
  return axes.toReversed().map(({labels}) => {
    const own = rest % labels.length;
    rest = (rest - own) / labels.length;
    return own;
  }).reverse();
}

// A value's name for the page, with hidden characters written out.
function titleOf(place) {
  if (axes) return placesOn(place).map((own, number) => `${axes[number].name} ${axes[number].titles[own]}`).join(", ");
  if (kind === "bars") return data.values.shown[place] ?? data.values.labels[place];
  if (data.values.titles) return data.values.titles[place];
  return kind === "map" ? cellTitle(place) : String(numberOf(place));
}

// The region and the place on the map, as far as they are known; otherwise column and row.
function cellTitle(place) {
  const {latitudes, longitudes} = data.values;
  if (!latitudes) return `${numberOf(place)}: column ${columnOf(place)}, row ${rowOf(place)}`;
  const where = `${latitudes[rowOf(place)]}, ${longitudes[columnOf(place)]}`;
  return regionOf && regionOf[place] >= 0 ? `${regionNames[regionOf[place]]} (${where})` : where;
}

// A value's label as it is, for files.
const labelOf = (place) => (axes ? titleOf(place) : kind === "bars" ? data.values.labels[place] : String(numberOf(place)));
const wholes = new Set(data.values.wholes ?? []);
const isNumber = (place) => kind !== "bars" || wholes.has(place);

const everything = Array.from({length: count}, (_, place) => place);
const names = new Intl.Collator(undefined, {numeric: true});
const compareTitles = (first, second) => names.compare(titleOf(first), titleOf(second)) || first - second;
let byShare = null;
function largestFirst() {
  byShare ??= everything.toSorted((first, second) => estimate[second] - estimate[first] || first - second);
  return byShare;
}
