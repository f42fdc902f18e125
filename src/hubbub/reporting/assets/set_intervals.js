// The share of a set of values, with its interval, or with bounds that hold for any set.
const clip = (number) => Math.min(1, Math.max(0, number));
const sumOver = (numbers, set) => set.reduce((total, place) => total + numbers[place], 0);
const intervalOf = data.sets.kind === "covariance" ? covariance() : bounds();

function covariance() {
  const sets = data.sets, full = 2 ** 23 - 1;
  const centre = floatsOf(sets.centre, count);
  let parts = null; // unpacked for the first set

  function unpack() {
    const bytes = bytesOf(sets.correlations), correlations = new Int32Array(bytes.length / 3);
    for (let place = 0; place < correlations.length; place++) {
      const at = 3 * place;
      correlations[place] = ((bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16)) << 8) >> 8;
    }
    return {correlations, variances: floatsOf(sets.variances, count), deviations: floatsOf(sets.deviations, count)};
  }

  return (set) => {
    parts ??= unpack();
    const {correlations, variances, deviations} = parts;
    const sorted = [...set].sort((first, second) => first - second);
    let variance = 0;
    sorted.forEach((row, index) => {
      const start = (row * (row - 1)) / 2;
      let beside = 0;
      for (const column of sorted.slice(0, index)) beside += correlations[start + column] * deviations[column];
      variance += variances[row] + (2 * beside * deviations[row]) / full;
    });
    const middle = clip(sumOver(centre, set)), reach = data.z * Math.sqrt(Math.max(0, variance));
    return [clip(middle - reach), clip(middle + reach)];
  };
}

// The bounds hold for all values at once, so they give outer bounds for a set: by its own sum, and by the sum of the rest.
function bounds() {
  const known = (packed, own, otherwise) =>
    (packed === "own" ? own : shortFloatsOf(packed, count)).map((number) => (Number.isNaN(number) ? otherwise : number));
  const least = known(data.sets.low, low, 0), most = known(data.sets.high, high, 1);
  const all = {least: sumOver(least, everything), most: sumOver(most, everything)};
  return (set) => {
    const own = {least: sumOver(least, set), most: sumOver(most, set)};
    return [
      clip(Math.max(own.least, 1 - (all.most - own.most))),
      clip(Math.min(own.most, 1 - (all.least - own.least))),
    ];
  };
}

function shareOf(set) {
  if (set.length === count) return {share: 1, low: 1, high: 1, own: false};
  const share = sumOver(estimate, set);
  const [only] = set;
  const known = set.length === 1 && hasInterval(only);
  const [from, to] = known ? [low[only], high[only]] : intervalOf(set);
  return {share, low: from, high: to, own: known};
}
