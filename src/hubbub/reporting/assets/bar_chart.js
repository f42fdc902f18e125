// The chart of categories: horizontal bars, so that names have room; the reader chooses how many and in which order.
const BARS_PER_STEP = 30;
let barsShown = BARS_PER_STEP, barsOrder = "share", byName = null;

function orderedBars() {
  if (barsOrder === "share") return largestFirst();
  if (barsOrder === "listed") return everything;
  byName ??= everything.toSorted(compareTitles);
  return byName;
}

const bars = {
  modes: [["select", "Select"], ["zoom", "Zoom"], CLICKS],
  which() { // and the marked one, wherever it is in the order
    const first = orderedBars().slice(0, barsShown);
    return marked < 0 || first.includes(marked) ? first : [...first, marked];
  },
  total: count,
  frame(titles, more) {
    const most = narrow() ? 16 : 34;
    return layout({
      height: Math.max(240, 27 * titles.length + 70), hovermode: "y", selectdirection: "v", ...more,
      margin: {l: 10, r: 16, t: 8, b: 44},
      xaxis: shareAxis({fixedrange: true, automargin: true}),
      yaxis: axis({
        tickvals: titles.map((_, index) => index), ticktext: titles.map((title) => plain(cut(title, most)) + " "),
        range: [titles.length - 0.5, -0.5], showgrid: false, automargin: true, zeroline: false,
        tickfont: {size: 13, color: colour("ink")},
      }),
    });
  },
  draw() {
    const which = bars.which(), rows = which.map((_, index) => index);
    const at = which.indexOf(marked);
    return {
      traces: [
        {type: "bar", orientation: "h", x: which.map((place) => estimate[place]), y: rows, hoverinfo: "none",
          marker: {color: barColours(which)}, ...KEEP_OPACITY},
        whiskers(rows, which.map(intervalAt), true),
        pointer(at < 0 ? [] : [estimate[marked]], at < 0 ? [] : [at]),
      ],
      layout: bars.frame(which.map(titleOf)),
    };
  },
  at: (point) => bars.which()[point.y],
  inside: ({range}) => bars.which().filter((_, index) => index >= Math.min(...range.y) && index <= Math.max(...range.y)),
  compare() {
    const which = bars.which(), rows = which.map((_, index) => index);
    const series = (name, numbers, fill) => ({
      type: "bar", orientation: "h", name, x: which.map((place) => numbers[place]), y: rows, hoverinfo: "none", marker: {color: fill},
    });
    const frame = bars.frame(which.map(titleOf), {...LEGEND, bargap: 0.3});
    frame.height += 60 + 6 * which.length;
    frame.margin.t = 40;
    return [{traces: () => [series("noisy", noisy, colour("noise")), series("estimated", estimate, colour("bar"))], layout: frame}];
  },
  walk: () => orderedBars(),
};
