// What all charts share. Plotly reads some HTML, and TeX between dollars, in its texts: it is only ever given texts that went
// through `plain`.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("$", "&#36;");
const cut = (text, most) => {
  const letters = [...text];
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
};
const narrow = () => innerWidth < 641;
const PAPER_WIDTH = 680; // pixels between the margins of a sheet

function axis(more) {
  return {
    color: colour("quiet"), gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("grid"),
    tickfont: {size: 12, color: colour("quiet")}, title: {font: {size: 13, color: colour("quiet")}}, ...more,
  };
}

const shares = (more) => axis({tickformat: ".3~p", rangemode: "tozero", ...more});

function layout(more) {
  return {
    paper_bgcolor: colour("paper"), plot_bgcolor: colour("paper"), showlegend: false, bargap: 0.25,
    font: {family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("ink")},
    margin: {l: 56, r: 16, t: 12, b: 48}, hoverdistance: -1, uirevision: `zoom ${zooms}`, dragmode: dragging,
    newselection: {line: {color: colour("picked"), width: 2, dash: "dot"}}, selections: [], selectionrevision: ++drawings,
    ...(printing ? {width: PAPER_WIDTH} : {}), ...more,
  };
}

// What is chosen is shown by our own colours: plotly's fading of the rest is switched off.
const SAME = {selected: {marker: {opacity: 1}}, unselected: {marker: {opacity: 1}}};
let drawings = 0, zooms = 0; // a number that has changed makes plotly forget: boxes, and how far the reader has zoomed in

const SETTINGS = {displayModeBar: false, responsive: false, doubleClick: false, scrollZoom: false, showTips: false};

// Draw anew where there is more or less room than before. Plotly's own way (responsive) forgets the height that was asked for.
function whenWidthChanges(one, draw) {
  let width = one.clientWidth;
  const watcher = new ResizeObserver(() => {
    if (one.clientWidth === width) return;
    width = one.clientWidth;
    draw();
  });
  watcher.observe(one);
}

// From low to high through each value, with ends; upright or lying.
function whiskers(middles, which, lying) {
  const along = [], across = [];
  which.forEach((place, index) => {
    if (Number.isNaN(low[place]) || Number.isNaN(high[place])) return;
    along.push(low[place], high[place], null);
    across.push(middles[index], middles[index], null);
  });
  return {
    type: "scatter", mode: "lines+markers", hoverinfo: "skip", connectgaps: false, ...SAME,
    x: lying ? along : across, y: lying ? across : along, line: {color: colour("whisker"), width: 1.4},
    marker: {symbol: lying ? "line-ns-open" : "line-ew-open", size: 6, color: colour("whisker"), line: {width: 1.4}},
  };
}

// The value that is marked, wherever it was marked.
const pointer = (x, y) => ({
  type: "scatter", mode: "markers", hoverinfo: "skip", x, y, ...SAME,
  marker: {symbol: "circle-open", size: 13, color: colour("picked"), line: {width: 3, color: colour("picked")}},
});

// Bars of a selection stand out, the others step back.
const barColours = (which) =>
  chosen.size === 0 ? colour("bar") : which.map((place) => (chosen.has(place) ? colour("picked") : colour("faded")));
const fingers = matchMedia("(pointer: coarse)").matches; // which scroll where a mouse would draw
let dragging = fingers ? false : "select";
const CLICKS = [false, fingers ? "Tap only" : "Click only"];
