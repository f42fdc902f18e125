// The cells of a map: where they are, their colours and the legend, their borders.
const {columns, rows, width, height} = kind === "map" ? data.values : {columns: 0, rows: 0, width: 1, height: 1};
const centreX = (place) => (columnOf(place) + 0.5) * width;
const centreY = (place) => (rowOf(place) + 0.5) * height;
const cellX = Array.from({length: columns}, (_, column) => (column + 0.5) * width);
const cellY = Array.from({length: rows}, (_, row) => (row + 0.5) * height);
const positions = new Int32Array(columns * rows).fill(-1);
if (kind === "map") for (const place of everything) positions[numberOf(place)] = place;

// One number for each cell, row by row; cells outside the domain stay blank.
function sheet(valueOf) {
  return Array.from({length: rows}, (_, row) => Array.from({length: columns}, (_, column) => {
    const place = positions[row * columns + column];
    return place < 0 ? null : valueOf(place);
  }));
}

const roots = (numbers) => sheet((place) => Math.sqrt(Math.max(0, numbers[place])));

// One ramp for all maps: the colours of hubbub/rendering/palette.py.
const RAMP = data.ramp.map((fill, step) => [step / (data.ramp.length - 1), fill]);
const colourAt = (part) => data.ramp[Math.round(part * (data.ramp.length - 1))];
const LEGEND_GAP = 26; // pixels from what is below a map to the legend of a narrow one

const SMALL_GAP = '<br><span style="font-size: 5px"> </span>'; // or the uppermost number touches the title

// The legend: what the colours mean, and a text at some of them.
function colourBar(tickvals, ticktext, said) {
  const tall = map.pixels().y;
  return {
    tickvals, ticktext, thickness: 12, outlinewidth: 0, ypad: 4, xpad: 6, tickfont: {size: 12, color: colour("quiet")},
    title: {text: `${said}${narrow() ? "" : SMALL_GAP}`, side: "top", font: {size: 12, color: colour("quiet")}},
    ...(narrow() ? {orientation: "h", y: -(FURNITURE_PIXELS + LEGEND_GAP) / tall, yanchor: "top", thickness: 10} : {}),
  };
}

function shareBar(top, said) {
  const parts = narrow() ? 3 : 5; // of equal length
  const steps = Array.from({length: parts + 1}, (_, step) => (step / parts) ** 2 * top);
  return colourBar(steps.map(Math.sqrt), steps.map(percent), said);
}

const heatOf = (z, more) => ({
  type: "heatmap", x: cellX, y: cellY, z, zsmooth: false, hoverinfo: "none", hoverongaps: false, ...more,
  uid: narrow() ? "lying" : "upright", // or the numbers of a colour bar that was turned stay where they were
});

const heat = (numbers, top, {said = "share", ...more}) =>
  heatOf(roots(numbers), {zmin: 0, zmax: Math.sqrt(top) || 1, colorscale: RAMP, colorbar: shareBar(top, said), ...more});

// Cells of which nothing is known: one colour, and a diagonal through each of them.
const plainCells = (is) => ({
  type: "heatmap", x: cellX, y: cellY, z: sheet((place) => (is(place) ? 1 : null)), hoverinfo: "none", showscale: false, hoverongaps: false,
  colorscale: [[0, colour("line")], [1, colour("line")]],
});

const MAX_HATCHED_CELLS = 5000; // more take long to draw, and no diagonal of theirs can be seen

function hatch(members) {
  if (members.length > MAX_HATCHED_CELLS) members = [];
  const x = members.flatMap((place) => [columnOf(place) * width, (columnOf(place) + 1) * width, null]);
  const y = members.flatMap((place) => [rowOf(place) * height, (rowOf(place) + 1) * height, null]);
  return {type: "scatter", mode: "lines", hoverinfo: "skip", x, y, line: {color: colour("quiet"), width: 1}};
}

// The border of some cells: of each of them, the sides whose neighbour does not belong with it.
function border(cells, together, fill) {
  const x = [], y = [];
  const neighbour = (column, row) => (column >= 0 && row >= 0 && column < columns && row < rows ? positions[row * columns + column] : -1);
  for (const place of cells) {
    const column = columnOf(place), row = rowOf(place);
    for (const [dx, dy] of [[-1, 0], [1, 0], [0, -1], [0, 1]]) {
      const other = neighbour(column + dx, row + dy);
      if (other >= 0 && together(place, other)) continue;
      const fixed = dx ? column + (dx > 0) : row + (dy > 0);
      x.push(...(dx ? [fixed * width, fixed * width] : [column * width, (column + 1) * width]), null);
      y.push(...(dx ? [row * height, (row + 1) * height] : [fixed * height, fixed * height]), null);
    }
  }
  return [
    {type: "scatter", mode: "lines", hoverinfo: "skip", x, y, line: {color: "#000000", width: 4}},
    {type: "scatter", mode: "lines", hoverinfo: "skip", x, y, line: {color: fill, width: 2}},
  ];
}
