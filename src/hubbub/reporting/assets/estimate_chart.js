// The chart of the estimate in one of its views (single values, how sure they are, parts): redrawn when the selection changes; what clicking, dragging and
// hovering do.
const chart = byId("chart");
const drawer = {bars, line, map}[kind];
const drawers = {values: drawer, certainty: certaintyMap, parts: partDrawer};
const view = () => drawers[shownView];
const describe = (place) => ({values: describeValue, certainty: describeCertainty, parts: () => describePart(parts[partOf[place]])})[shownView](place);
const toggleShown = (place) => (showsParts() ? togglePart(parts[partOf[place]]) : toggle(place));
let adding = false, touched = false, waiting = false;
let tapped = {place: -1, at: -Infinity};
const MAX_TAP_GAP = 700; // milliseconds: browsers report one tap as a touch and again as a click

function drawNow() {
  waiting = false;
  const {traces, layout: frame} = view().draw();
  showHint();
  return Plotly.react(chart, traces, {width: chart.clientWidth, ...frame}, SETTINGS);
}

// Several changes in one frame are one drawing.
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(drawNow);
}

// What the colours, bars or steps of a view mean. Where bins differ in width, readers might compare areas.
const REST_MEANING = "What is hatched is the rest.";
const UNKNOWN_MEANING = "Grey cells have no interval.";
const MEANINGS = {
  values: {
    map: "Each cell has the colour of its estimated share.",
    line: unequalBins ? "Bar heights are shares of whole bins, however wide they are." : "",
    bars: "",
  },
  certainty: {
    map: `Each cell has the colour of its margin: half the width of its ${atLevel.replace("at ", "")} interval, in percent of its estimated share.`,
  },
  parts: {
    map: "Each area has the colour of its share per cell.",
    line: "Each step is the share of a range, spread evenly over it; its band is the interval.",
    bars: "",
  },
};
const hatchMeaning = () => (showsParts() ? (restParts.length ? REST_MEANING : "")
  : shownView === "certainty" && !everything.every(hasInterval) ? UNKNOWN_MEANING : "");

function showHint() {
  const shown = view().which().length, total = view().total;
  const part = shown < total
    ? `${shown.toLocaleString("en")} of ${plural(total, showsParts() ? division.part : "value")} are drawn; the table below lists all of them.` : "";
  const how = {bars: "Click bars, or drag over them, to select.", line: "Drag along the line, or click, to select.",
    map: `Draw a box or a lasso, or click ${showsParts() ? "areas" : "cells"}, to select.`}[kind];
  const said = isTouch ? ["Tap to select."] : [how, "Hold Shift to add to the selection."];
  byId("drawn").textContent = [part, MEANINGS[shownView][kind], hatchMeaning(), ...said].filter(Boolean).join(" ");
  byId("more").hidden = shown >= total || shown >= 300;
}

function startModes() {
  for (const [mode, said] of drawer.modes) {
    const input = element("input", {type: "radio", name: "mode", value: String(mode), checked: mode === dragMode});
    input.addEventListener("change", () => {
      dragMode = mode;
      Plotly.relayout(chart, {dragmode: mode});
    });
    byId("modes").append(element("label", null, input, said));
  }
}

// What is under the pointer, beside it: on this chart, and on those of the comparison.
function showTipsOn(panel, at, said) {
  panel.on("plotly_hover", ({points, event}) => {
    const place = at(points[0]);
    if (place >= 0 && event) showTip(said(place), event.clientX, event.clientY);
  });
  panel.on("plotly_unhover", hideTip);
  panel.addEventListener("pointerleave", hideTip);
}

function startPointer() {
  chart.addEventListener("pointerdown", (event) => {
    adding = event.shiftKey || event.ctrlKey || event.metaKey;
    touched = event.pointerType === "touch";
  }, true);
  showTipsOn(chart, (point) => view().at(point), describe);
  addEventListener("scroll", hideTip, {passive: true});
  chart.on("plotly_click", ({points}) => {
    const place = view().at(points[0]);
    const now = performance.now();
    if (!(place >= 0) || (touched && place === tapped.place && now - tapped.at < MAX_TAP_GAP)) return;
    tapped = {place, at: now};
    marked = place;
    toggleShown(place);
  });
  chart.on("plotly_selected", (event) => {
    if (!event || (!event.range && !event.lassoPoints)) return;
    hideTip();
    Plotly.relayout(chart, {selections: []}); // the box itself goes: the selection may change after it
    select(view().inside(event), {add: adding});
  });
}

// What belongs to a view is shown with it.
function showView() {
  byId("ordering").hidden = kind !== "bars" || showsParts();
  byId("steps").textContent = showsParts() ? `${division.part}s` : "values";
  chart.setAttribute("aria-label", chart.dataset[shownView]);
  if (division) byId("parts").hidden = !showsParts();
}

function startViews() {
  showView();
  byId("views")?.addEventListener("change", ({target}) => {
    shownView = target.value;
    if (kind !== "map") zooms += 1; // the axes are others
    hideTip();
    showView();
    notify();
  });
}

async function startChart() {
  startModes();
  startViews();
  byId("order").addEventListener("change", (event) => {
    barsOrder = event.target.value;
    draw();
  });
  byId("more").addEventListener("click", () => {
    barsShown += BARS_PER_STEP;
    draw();
  });
  byId("whole").addEventListener("click", () => {
    zooms += 1;
    zoomedMap = null;
    draw();
  });
  await drawNow();
  startPointer();
  if (kind === "map") startMapPointer();
  onChange(draw);
  repaints.push(drawNow);
  whenWidthChanges(chart, draw);
}
