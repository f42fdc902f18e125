// The parts that the reports tell apart: ranges of a line, areas of a map, groups of categories. The page shows single values, how
// sure they are, or these parts; which of these views is chosen is not stored.
const division = data.parts;
const partOf = division ? new Int32Array(bytesOf(division.of).buffer) : null;
const parts = (division?.all ?? []).map((part) => ({
  ...part, low: Math.min(part.from, part.estimate), high: Math.max(part.to, part.estimate), members: [],
}));
everything.forEach((place) => { if (division) parts[partOf[place]].members.push(place); });
let shownView = byId("views")?.querySelector(":checked").value ?? "values";
const showsParts = () => shownView === "parts";

const isExtendedPart = (part) => part.low < part.from || part.high > part.to;
const isPicked = (part) => part.members.every((place) => selected.has(place));
const markedPart = () => (marked < 0 ? null : parts[partOf[marked]]);

// Selecting a part selects all of its values; if all of them are selected already, none of them stays so.
const togglePart = (part) => {
  const removed = isPicked(part);
  for (const place of part.members) removed ? selected.delete(place) : selected.add(place);
  notify();
};

// The part that a set is, if parts are shown and it is one.
function partThatIs(set) {
  if (!showsParts()) return null;
  const part = parts[partOf[set[0]]];
  return part.members.length === set.length && set.every((place) => partOf[place] === partOf[set[0]]) ? part : null;
}

// Bins of different widths are compared by their shares per unit, all others by those per value.
const unequalBins = widths !== null && widths.some((width) => Math.abs(width - widths[0]) > 1e-9 * widths[0]);
const sizeOf = (part) => (unequalBins ? sumOver(widths, part.members) : part.members.length);
const perWhat = () => `per ${unequalBins ? "unit" : division.value}`;

function describePart(part) {
  const said = [["name", part.title], ["", `${percent(part.estimate)} (${between(part.low, part.high)})`]];
  if (isExtendedPart(part)) said.push(["", `extended to the estimate; confidence interval: ${between(part.from, part.to)}`]);
  if (part.members.length > 1) said.push(["", `${percent(part.estimate / sizeOf(part))} ${perWhat()}`]);
  return said;
}
