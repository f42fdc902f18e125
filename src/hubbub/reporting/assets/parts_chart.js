// The chart of the parts: areas by their density, ranges as steps with bands, groups as bars. What is left is grey and hatched.
const densityOf = (part) => part.estimate / sizeOf(part);
const HATCH = {shape: "/", size: 7, solidity: 0.25};
const ofParts = (chosen) => chosen.flatMap((part) => part.members);
const toldParts = parts.filter((part) => part.told), restParts = parts.filter((part) => !part.told);

const partBars = {
  ...bars,
  which: () => parts.slice(0, barsShown),
  total: parts.length,
  draw() {
    const which = partBars.which(), rows = which.map((_, index) => index), mine = markedPart(), at = which.indexOf(mine);
    const fill = (part) => colour(isPicked(part) ? "picked" : !part.told ? "hole" : selected.size ? "faded" : "bar");
    const bar = (at, marker) => ({type: "bar", orientation: "h", x: at.map((row) => which[row].estimate), y: at, hoverinfo: "none", marker,
      ...KEEP_OPACITY});
    const told = rows.filter((row) => which[row].told), rest = rows.filter((row) => !which[row].told); // patterns go with one colour
    return {
      traces: [
        bar(told, {color: told.map((row) => fill(which[row]))}),
        ...rest.map((row) => bar([row], {color: fill(which[row]), pattern: {...HATCH, fgcolor: colour("quiet"), fillmode: "overlay"}})),
        whiskers(rows, which, true),
        pointer(at < 0 ? [] : [mine.estimate], at < 0 ? [] : [at]),
      ],
      layout: bars.frame(which.map(({title}) => title), {barmode: "overlay"}),
    };
  },
  at: (point) => partBars.which()[point.y]?.members[0] ?? -1,
  inside: ({range}) =>
    ofParts(partBars.which().filter((_, index) => index >= Math.min(...range.y) && index <= Math.max(...range.y))),
};

// Where a value ends and the next one begins.
const edgeBefore = (place) => (place === 0 ? ends[0] : place === count ? ends[1]
  : widths ? places[place] - half(place) : (places[place - 1] + places[place]) / 2);

const partLine = {
  ...line,
  total: count,
  // One rectangle for each part, between two heights.
  boxes(which, bottom, top, more) {
    const x = [], y = [];
    for (const part of which) {
      const left = edgeBefore(part.members[0]), right = edgeBefore(part.members.at(-1) + 1), size = sizeOf(part);
      x.push(left, right, right, left, left, null);
      y.push(...[bottom, bottom, top, top, bottom].map((height) => part[height] / size), null);
    }
    return {type: "scatter", mode: "lines", x, y, fill: "toself", hoverinfo: "skip", line: {width: 0}, ...KEEP_OPACITY, ...more};
  },
  steps: (which, more) => partLine.boxes(which, "estimate", "estimate", {fill: "none", ...more}),
  draw() {
    const picked = parts.filter(isPicked), mine = markedPart();
    const traces = [
      partLine.boxes(toldParts, "low", "high", {fillcolor: colour("band")}),
      partLine.boxes(restParts, "low", "high", {fillpattern: {...HATCH, bgcolor: colour("hole"), fgcolor: colour("quiet")}}),
      partLine.steps(toldParts, {line: {color: colour("bar"), width: 3}}),
      partLine.steps(restParts, {line: {color: colour("quiet"), width: 2}}),
      partLine.steps(picked, {line: {color: colour("picked"), width: 4}}),
      line.curve(everything.map((place) => densityOf(parts[partOf[place]])), {line: {width: 0}}), // under the pointer
    ];
    const at = mine ? [(edgeBefore(mine.members[0]) + edgeBefore(mine.members.at(-1) + 1)) / 2] : [];
    const frame = line.frame();
    frame.yaxis.title = axisTitle(`share ${perWhat()}`);
    return {traces: [...traces, pointer(at, mine ? [densityOf(mine)] : [])], layout: frame};
  },
};

// The cell of an area that is nearest to its middle, which need not lie in the area.
function middleOf({members}) {
  const mean = (along) => members.reduce((total, place) => total + along(place), 0) / members.length;
  const east = mean(centreX), north = mean(centreY);
  const away = (place) => Math.hypot(centreX(place) - east, centreY(place) - north);
  return members.reduce((best, place) => (away(place) < away(best) ? place : best));
}

const partMap = {
  ...map,
  draw() {
    const densities = everything.map((place) => densityOf(parts[partOf[place]]));
    const isTold = (place) => parts[partOf[place]].told;
    const told = sheet((place) => (isTold(place) ? Math.sqrt(Math.max(0, densities[place])) : null));
    const mine = markedPart();
    return map.dressed(
      [heat(densities, largestOf(toldParts.map(densityOf)), {z: told, said: "share per cell"}), plainCells((place) => !isTold(place)), hatch(ofParts(restParts))],
      mine ? [middleOf(mine)] : [],
      border(everything, (place, other) => partOf[place] === partOf[other], "#ffffff"),
    );
  },
};

const partDrawer = {bars: partBars, line: partLine, map: partMap}[kind];
