// The chart of the estimate: drawn anew when something is chosen, and what the pointer does on it.
const chart = byId("chart");
const drawer = {categories: bars, line, map}[kind];
let adding = false, touched = false, waiting = false;
let tapped = {place: -1, at: -Infinity};
const TWICE = 700; // milliseconds: one tap is told as a touch and once more as a click

function drawNow() {
  waiting = false;
  const {traces, layout: frame} = drawer.draw();
  describe();
  return Plotly.react(chart, traces, {width: chart.clientWidth, ...frame}, SETTINGS);
}

// Many changes at once are one drawing.
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(drawNow);
}

function describe() {
  const shown = drawer.which().length;
  const part = shown < count ? `${shown.toLocaleString("en")} of ${many(count, "value")} are drawn; the table below has all of them.` : "";
  const how = {categories: "Click bars, or drag over them, to select.", line: "Drag along the line, or click, to select.",
    map: "Draw a box or a lasso, or click cells, to select."}[kind];
  // Where bins differ in width, areas tell nothing.
  const heights = widths && widths.some((width) => Math.abs(width - widths[0]) > 1e-9 * widths[0])
    ? "Heights are shares of whole bins, however wide these are." : "";
  const said = fingers ? ["Tap to select."] : [how, "Hold Shift to add."];
  byId("drawn").textContent = [part, heights, ...said].filter(Boolean).join(" ");
  byId("more").hidden = shown >= count || shown >= 300;
}

function startModes() {
  for (const [mode, said] of drawer.modes) {
    const input = element("input", {type: "radio", name: "mode", value: String(mode), checked: mode === dragging});
    input.addEventListener("change", () => {
      dragging = mode;
      Plotly.relayout(chart, {dragmode: mode});
    });
    byId("modes").append(element("label", null, input, said));
  }
}

function startPointer() {
  chart.addEventListener("pointerdown", (event) => {
    adding = event.shiftKey || event.ctrlKey || event.metaKey;
    touched = event.pointerType === "touch";
  }, true);
  chart.on("plotly_hover", ({points, event}) => {
    const place = drawer.at(points[0]);
    if (place >= 0 && event) showTip(place, event.clientX, event.clientY);
  });
  chart.on("plotly_unhover", hideTip);
  chart.addEventListener("pointerleave", hideTip);
  addEventListener("scroll", hideTip, {passive: true});
  chart.on("plotly_click", ({points}) => {
    const place = drawer.at(points[0]);
    const now = performance.now();
    if (!(place >= 0) || (touched && place === tapped.place && now - tapped.at < TWICE)) return;
    tapped = {place, at: now};
    marked = place;
    toggle(place);
  });
  chart.on("plotly_selected", (event) => {
    if (!event || (!event.range && !event.lassoPoints)) return;
    hideTip();
    Plotly.relayout(chart, {selections: []}); // the box itself goes: what is chosen may change after it
    choose(drawer.inside(event), {add: adding});
  });
}

async function startChart() {
  startModes();
  byId("ordering").hidden = kind !== "categories";
  byId("order").addEventListener("change", (event) => {
    barsOrder = event.target.value;
    draw();
  });
  byId("more").addEventListener("click", () => {
    barsShown += STEP;
    draw();
  });
  byId("whole").addEventListener("click", () => {
    zooms += 1;
    draw();
  });
  await drawNow();
  startPointer();
  follow(draw);
  repaints.push(drawNow);
  whenWidthChanges(chart, draw);
}
