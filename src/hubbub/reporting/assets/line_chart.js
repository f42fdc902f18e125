// The chart of values along a line: bars if there are few, a line with a band if there are many.
const MAX_BARS = 60, MAX_BARS_OF_BINS = 150;
const drawsBars = count <= (widths ? MAX_BARS_OF_BINS : MAX_BARS);
const half = (place) => (widths ? widths[place] : 1) / 2;
const ends = kind === "line" ? [places[0] - half(0), places[count - 1] + half(count - 1)] : [0, 1];
const numbersOf = (numbers) => Array.from(numbers);

const line = {
  modes: [["select", "Select"], ["zoom", "Zoom"], CLICKS],
  which: () => everything,
  total: count,
  frame(more) {
    return layout({
      height: narrow() ? 320 : 420, hovermode: "x", selectdirection: "h", ...more,
      xaxis: axis({range: [...ends], showgrid: false, zeroline: false, title: axisTitle("value"), automargin: true}),
      yaxis: shareAxis({fixedrange: true, automargin: true}),
    });
  },
  bar: (numbers, more) => ({
    type: "bar", x: numbersOf(places), y: numbersOf(numbers), hoverinfo: "none", ...KEEP_OPACITY,
    ...(widths ? {width: Array.from(widths, (width) => 0.94 * width)} : {}), ...more,
  }),
  curve: (numbers, more) => ({
    type: "scatter", mode: "lines", x: numbersOf(places), y: numbersOf(numbers), hoverinfo: "none", ...KEEP_OPACITY,
    line: {color: colour("bar"), width: 2, shape: "linear"}, ...more,
  }),
  // Areas between two curves, one for each run of consecutive values that are kept.
  areas(lower, upper, kept, more) {
    const x = [], y = [];
    for (let start = 0; start < count; start++) {
      if (!kept(start)) continue;
      let end = start;
      while (end + 1 < count && kept(end + 1)) end++;
      for (let place = start; place <= end; place++) { x.push(places[place]); y.push(lower(place)); }
      for (let place = end; place >= start; place--) { x.push(places[place]); y.push(upper(place)); }
      x.push(null);
      y.push(null);
      start = end;
    }
    return {type: "scatter", mode: "lines", x, y, fill: "toself", hoverinfo: "skip", line: {width: 0}, ...KEEP_OPACITY, ...more};
  },
  band: () => line.areas((place) => low[place], (place) => high[place],
    hasInterval, {fillcolor: colour("band"), line: {width: 0, color: colour("band")}}),
  picked() {
    const shown = Float64Array.from(estimate, (share, place) => (selected.has(place) ? share : NaN));
    const curve = line.curve(shown, {hoverinfo: "skip", mode: "lines+markers", marker: {size: 4, color: colour("picked")},
      line: {color: colour("picked"), width: 2.5}});
    const area = line.areas(() => 0, (place) => estimate[place], (place) => selected.has(place),
      {fillcolor: colour("picked"), opacity: 0.35, line: {width: 0, color: colour("picked")}});
    return [area, curve];
  },
  draw() {
    const at = marked < 0 ? [] : [marked];
    const mine = pointer(at.map((place) => places[place]), at.map((place) => estimate[place]));
    const traces = drawsBars
      ? [line.bar(estimate, {marker: {color: barColours(everything)}}), whiskers(places, everything.map(intervalAt), false)]
      : [line.band(), line.curve(estimate, {}), ...(selected.size ? line.picked() : [])];
    return {traces: [...traces, mine], layout: line.frame()};
  },
  at: (point) => point.pointIndex,
  inside: ({range}) => everything.filter((place) => places[place] >= Math.min(...range.x) && places[place] <= Math.max(...range.x)),
  compare() {
    const frame = line.frame({...LEGEND, bargap: 0.15});
    frame.margin.t = 40;
    const series = (name, numbers, fill, dash) => ({...line.curve(numbers, {}), name, line: {color: fill, width: 2, dash}});
    return [{traces: () => [series("noisy", noisy, colour("noise"), "dot"), series("estimated", estimate, colour("bar"), "solid")], layout: frame}];
  },
  walk: () => everything,
};
