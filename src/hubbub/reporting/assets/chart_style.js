// What all charts share. Plotly interprets some HTML, and TeX between dollar signs: it only gets texts that went through `plain`.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("$", "&#36;");
const cut = (text, most) => {
  const letters = [...text];
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
};
const narrow = () => innerWidth < 641;
const PAPER_WIDTH = 680; // pixels between the margins of a sheet

// Plotly makes room even for an empty title, but not for one without a text.
const axisTitle = (text) => ({text, font: {size: 13, color: colour("quiet")}});

function axis(more) {
  return {
    color: colour("quiet"), gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("grid"),
    tickfont: {size: 12, color: colour("quiet")}, title: axisTitle(), ...more,
  };
}

const shareAxis = (more) => axis({tickformat: ".3~p", rangemode: "tozero", ...more});

function layout(more) {
  return {
    paper_bgcolor: colour("paper"), plot_bgcolor: colour("paper"), showlegend: false, bargap: 0.25,
    font: {family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("ink")},
    margin: {l: 56, r: 16, t: 12, b: 48}, hoverdistance: -1, uirevision: `zoom ${zooms}`, dragmode: dragMode,
    newselection: {line: {color: colour("picked"), width: 2, dash: "dot"}}, selections: [], selectionrevision: ++drawings,
    ...(printing ? {width: PAPER_WIDTH} : {}), ...more,
  };
}

const LEGEND = {showlegend: true, legend: {orientation: "h", y: 1, yanchor: "bottom", x: 0}}; // above the chart

// Our own colours show the selection: plotly's fading of the rest is switched off.
const KEEP_OPACITY = {selected: {marker: {opacity: 1}}, unselected: {marker: {opacity: 1}}};
let drawings = 0, zooms = 0; // a changed number makes plotly forget selection boxes, or the zoom

const SETTINGS = {displayModeBar: false, responsive: false, doubleClick: false, scrollZoom: false, showTips: false};

// Redraw when the width changes. Plotly's own way (responsive) forgets the requested height.
function whenWidthChanges(panel, draw) {
  let width = panel.clientWidth;
  const watcher = new ResizeObserver(() => {
    if (panel.clientWidth === width) return;
    width = panel.clientWidth;
    draw();
  });
  watcher.observe(panel);
}

// Error bars from low to high, vertical or horizontal.
function whiskers(middles, intervals, lying) {
  const along = [], across = [];
  intervals.forEach((interval, index) => {
    if (Number.isNaN(interval.low) || Number.isNaN(interval.high)) return;
    along.push(interval.low, interval.high, null);
    across.push(middles[index], middles[index], null);
  });
  return {
    type: "scatter", mode: "lines+markers", hoverinfo: "skip", connectgaps: false, ...KEEP_OPACITY,
    x: lying ? along : across, y: lying ? across : along, line: {color: colour("whisker"), width: 1.4},
    marker: {symbol: lying ? "line-ns-open" : "line-ew-open", size: 6, color: colour("whisker"), line: {width: 1.4}},
  };
}

// The value that is marked, wherever it was marked.
const pointer = (x, y) => ({
  type: "scatter", mode: "markers", hoverinfo: "skip", x, y, ...KEEP_OPACITY,
  marker: {symbol: "circle-open", size: 13, color: colour("picked"), line: {width: 3, color: colour("picked")}},
});

// Selected bars stand out, the others are faded.
const barColours = (which) =>
  selected.size === 0 ? colour("bar") : which.map((place) => (selected.has(place) ? colour("picked") : colour("faded")));
const isTouch = matchMedia("(pointer: coarse)").matches; // a finger scrolls where a mouse would draw a box
let dragMode = isTouch ? false : "select";
const CLICKS = [false, isTouch ? "Tap only" : "Click only"];
