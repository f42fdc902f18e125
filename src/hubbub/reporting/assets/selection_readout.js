// The set that was chosen: its share, how sure that is, and what to think of sets that are chosen with hindsight.
const HINDSIGHT = "The interval is for a set that was chosen in advance. One that was chosen after looking at the chart, "
  + "because it looks large or small there, is chosen with hindsight: its true share is often less striking.";
const OUTSIDE = "The estimated share lies outside of its interval: the method smooths, the reports do not fit, or this is one of the "
  + `intervals that miss (${Number((100 * (1 - data.level)).toPrecision(6))} in 100 do).`;
const TOGETHER = "These bounds hold for all values together, so that they also hold for a set that was chosen with hindsight.";

function sayChoice() {
  const set = [...chosen], said = byId("picked"), because = byId("because");
  said.closest(".picked").classList.toggle("some", set.length > 0);
  byId("clear").disabled = set.length === 0;
  if (set.length === 0) {
    said.textContent = "Nothing is selected yet.";
    because.textContent = "Select values on the chart or in the table: their share together appears here, with its interval.";
    return;
  }
  const found = shareOf(set);
  const who = count === 1 ? "the only value" : set.length === count ? `all ${count.toLocaleString("en")} values`
    : set.length === 1 ? "this 1 value" : `these ${set.length.toLocaleString("en")} values`;
  const interval = set.length === count ? ["exactly"]
    : [figure(found.low, percent(found.low)), " to ", figure(found.high, percent(found.high)), ` ${atLevel}`];
  said.replaceChildren(`Share of ${who}: `, element("strong", null, figure(found.share, percent(found.share))), " (", ...interval, ")");
  const bounded = data.sets.kind === "bounds" && !found.own;
  const outside = set.length < count && (found.share < found.low || found.share > found.high);
  because.textContent = [
    outside ? OUTSIDE : "",
    ...(set.length === count ? [] : bounded ? [data.reason, TOGETHER] : [HINDSIGHT]),
  ].filter(Boolean).join(" ");
}

function startChoice() {
  byId("clear").addEventListener("click", () => choose([]));
  byId("invert").addEventListener("click", () => choose(everything.filter((place) => !chosen.has(place))));
  byId("found").addEventListener("click", () => choose(matching));
  follow(sayChoice);
  sayChoice();
}
