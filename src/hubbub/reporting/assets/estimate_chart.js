// The chart of the estimate: redrawn when the selection changes; what clicking, dragging and hovering do.
const chart = byId("chart");
const drawer = {bars, line, map}[kind];
let adding = false, touched = false, waiting = false;
let tapped = {place: -1, at: -Infinity};
const MAX_TAP_GAP = 700; // milliseconds: browsers report one tap as a touch and again as a click

function drawNow() {
  waiting = false;
  const {traces, layout: frame} = drawer.draw();
  showHint();
  return Plotly.react(chart, traces, {width: chart.clientWidth, ...frame}, SETTINGS);
}

// Several changes in one frame are one drawing.
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(drawNow);
}

function showHint() {
  const shown = drawer.which().length;
  const part = shown < count ? `${shown.toLocaleString("en")} of ${plural(count, "value")} are drawn; the table below lists all of them.` : "";
  const how = {bars: "Click bars, or drag over them, to select.", line: "Drag along the line, or click, to select.",
    map: "Draw a box or a lasso, or click cells, to select."}[kind];
  // Where bins differ in width, readers might compare areas.
  const heights = widths && widths.some((width) => Math.abs(width - widths[0]) > 1e-9 * widths[0])
    ? "Bar heights are shares of whole bins, however wide they are." : "";
  const said = isTouch ? ["Tap to select."] : [how, "Hold Shift to add to the selection."];
  byId("drawn").textContent = [part, heights, ...said].filter(Boolean).join(" ");
  byId("more").hidden = shown >= count || shown >= 300;
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
function showTipsOn(panel) {
  panel.on("plotly_hover", ({points, event}) => {
    const place = drawer.at(points[0]);
    if (place >= 0 && event) showTip(place, event.clientX, event.clientY);
  });
  panel.on("plotly_unhover", hideTip);
  panel.addEventListener("pointerleave", hideTip);
}

function startPointer() {
  chart.addEventListener("pointerdown", (event) => {
    adding = event.shiftKey || event.ctrlKey || event.metaKey;
    touched = event.pointerType === "touch";
  }, true);
  showTipsOn(chart);
  addEventListener("scroll", hideTip, {passive: true});
  chart.on("plotly_click", ({points}) => {
    const place = drawer.at(points[0]);
    const now = performance.now();
    if (!(place >= 0) || (touched && place === tapped.place && now - tapped.at < MAX_TAP_GAP)) return;
    tapped = {place, at: now};
    marked = place;
    toggle(place);
  });
  chart.on("plotly_selected", (event) => {
    if (!event || (!event.range && !event.lassoPoints)) return;
    hideTip();
    Plotly.relayout(chart, {selections: []}); // the box itself goes: the selection may change after it
    select(drawer.inside(event), {add: adding});
  });
}

async function startChart() {
  startModes();
  byId("ordering").hidden = kind !== "bars";
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
    draw();
  });
  await drawNow();
  startPointer();
  onChange(draw);
  repaints.push(drawNow);
  whenWidthChanges(chart, draw);
}
