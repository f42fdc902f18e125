// The share of the selected set, with its interval, and a word of caution about sets chosen with hindsight.
const HINDSIGHT_NOTE = "The interval is valid for a set chosen in advance. If you chose this set with hindsight, because it looks "
  + "large or small on the chart, its true share is often less extreme.";
const extendedNote = ({from, to}) => `The confidence interval itself is ${percent(from)} to ${percent(to)}. It is extended to the estimate, `
  + "which lies outside: the method smooths, the reports do not fit, or this is one of the intervals that miss "
  + `(${Number((100 * (1 - data.level)).toPrecision(6))} in 100 do).`;
const SIMULTANEOUS_NOTE = "These bounds hold for all values at once, so they also hold for a set chosen with hindsight.";

const partNote = () => `The reports suggested this ${division.part}. Its interval holds together with those of all other `
  + `${division.part}s, so it also holds with hindsight.`;

function showSelection() {
  const set = [...selected], said = byId("picked"), because = byId("because");
  said.closest(".picked").classList.toggle("some", set.length > 0);
  byId("clear").disabled = set.length === 0;
  if (set.length === 0) {
    said.textContent = "Nothing is selected yet.";
    because.textContent = "Select values on the chart or in the table to see their total share here, with its interval.";
    return;
  }
  const result = shareOf(set);
  const who = count === 1 ? "the only value" : set.length === count ? `all ${count.toLocaleString("en")} values`
    : set.length === 1 ? "this 1 value" : `these ${set.length.toLocaleString("en")} values`;
  const interval = set.length === count ? ["exactly"]
    : [figure(result.low, percent(result.low)), " to ", figure(result.high, percent(result.high)), ` ${atLevel}${result.extended ? ", extended to the estimate" : ""}`];
  said.replaceChildren(`Share of ${who}: `, element("strong", null, figure(result.share, percent(result.share))), " (", ...interval, ")");
  const bounded = data.sets.kind === "bounds" && !result.own;
  because.textContent = [
    result.extended ? extendedNote(result) : "",
    ...(set.length === count ? [] : result.part ? [partNote()] : bounded ? [data.reason, SIMULTANEOUS_NOTE] : [HINDSIGHT_NOTE]),
  ].filter(Boolean).join(" ");
}

function startReadout() {
  byId("clear").addEventListener("click", () => select([]));
  byId("invert").addEventListener("click", () => select(everything.filter((place) => !selected.has(place))));
  byId("found").addEventListener("click", () => select(matching));
  onChange(showSelection);
  showSelection();
}
