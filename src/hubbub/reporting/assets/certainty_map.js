// The map of how sure the shares are: the margin of each cell, half the width of its interval relative to its share, in classes. The
// same classes as in hubbub/rendering/margins.py.
const marginOf = (place) => {
  const half = (high[place] - low[place]) / 2;
  return half === 0 ? 0 : half / estimate[place];
};
const classOf = (place) => (hasInterval(place) ? data.margins.bounds.filter((bound) => marginOf(place) <= bound).length : null);
const marginText = (place) => {
  const margin = marginOf(place);
  return margin > 10 ? "more than 10 times its share" : margin > 1 ? `${margin.toFixed(1)} times its share` : `${percent(margin)} of its share`;
};
const shortText = (text) => text.replace("up to ", "").replace("over ", ">");

function describeCertainty(place) {
  const [name, share] = describeValue(place);
  return [name, share, ...(hasInterval(place) ? [["", `margin: ${marginText(place)}`]] : [])];
}

const certaintyMap = {
  ...map,
  draw() {
    const classes = data.margins.texts.length;
    const steps = Array.from({length: classes}, (_, step) => colourAt(step / (classes - 1)));
    const cells = {
      ...heatOf(sheet(classOf), {zmin: -0.5, zmax: classes - 0.5, colorscale: steps.flatMap((fill, step) => [[step / classes, fill], [(step + 1) / classes, fill]])}),
      colorbar: colourBar(data.margins.texts.map((_, step) => step), narrow() ? data.margins.texts.map(shortText) : data.margins.texts, narrow() ? "margin of up to" : "margin"),
    };
    const unknown = everything.filter((place) => !hasInterval(place));
    return map.dressed([cells, ...(unknown.length ? [plainCells((place) => !hasInterval(place)), hatch(unknown)] : [])]);
  },
};
