// The share of a set of values, with its interval, or with bounds that hold for any set. What is shown is extended to the
// estimate, wherever that lies outside.
const clip = (number) => Math.min(1, Math.max(0, number));
const sumOver = (numbers, set) => set.reduce((total, place) => total + numbers[place], 0);
const intervalOf = data.sets.kind === "covariance" ? covariance() : bounds();

// A diagonal, bands of near values, and a few factors: the same numbers as CompactCovariance in hubbub has.
function covariance() {
  const sets = data.sets, centre = floatsOf(sets.centre, count);
  let parts = null; // unpacked for the first set

  function unpack() {
    const numbers = everything.map((place) => (sets.labelled ? numberOf(place) : place)), first = numbers[0];
    const largest = sets.offsets.reduce((most, offset) => Math.max(most, offset), 0);
    // The position of each number; `count` stands for no value.
    const positions = new Int32Array(numbers[count - 1] - first + largest + 1).fill(count);
    numbers.forEach((number, place) => { positions[number - first] = place; });
    const bytes = bytesOf(sets.entries), steps = floatsOf(sets.steps);
    let at = 0;
    const bands = sets.offsets.map((offset, row) => {
      const width = sets.widths[row], unused = 32 - 8 * width, band = new Int32Array(count), partner = new Int32Array(count);
      numbers.forEach((number, place) => {
        const other = partner[place] = positions[number - first + offset];
        if (other === count) return;
        let whole = 0;
        for (let byte = 0; byte < width; byte++) whole |= bytes[at++] << (8 * byte);
        band[place] = (whole << unused) >> unused;
      });
      return {band, partner, step: steps[row]};
    });
    const factors = shortFloatsOf(sets.factors, 0), rank = sets.core.length;
    return {
      bands, variances: floatsOf(sets.variances, count), deviations: shortFloatsOf(sets.deviations, count),
      factors: Array.from({length: rank}, (_, row) => factors.subarray(row * count, (row + 1) * count)),
      inexact: sets.inexact === null ? null : shortFloatsOf(sets.inexact, count),
    };
  }

  function deviationOf(set) {
    parts ??= unpack();
    const {bands, variances, deviations, factors, inexact} = parts;
    const weights = new Float64Array(count + 1); // the deviations of the values in the set
    for (const place of set) weights[place] = deviations[place];
    let near = 0;
    for (const {band, partner, step} of bands) {
      let sum = 0;
      for (const place of set) sum += band[place] * weights[place] * weights[partner[place]];
      near += 2 * step * sum;
    }
    const sums = factors.map((factor) => sumOver(factor, set));
    const squares = sums.reduce((total, sum, row) => total + sum * sums.reduce((part, other, column) => part + sets.core[row][column] * other, 0), 0);
    const local = Math.sqrt(Math.max(0, sumOver(variances, set) + near)) + (inexact ? Math.sqrt(sumOver(inexact, set)) : 0);
    return Math.sqrt(Math.max(0, local ** 2 + squares));
  }

  return (set) => {
    // All shares sum to 1: the rest has the same deviation, and less is left out of the smaller of both.
    const inside = new Set(set), smaller = 2 * set.length > count ? everything.filter((place) => !inside.has(place)) : set;
    const middle = clip(sumOver(centre, set)), reach = data.z * deviationOf(smaller);
    return [clip(middle - reach), clip(middle + reach)];
  };
}

// The bounds hold for all values at once, so they give outer bounds for a set: by its own sum, and by the sum of the rest.
function bounds() {
  const known = (packed, own, otherwise) =>
    (packed === "own" ? own : shortFloatsOf(packed, count)).map((number) => (Number.isNaN(number) ? otherwise : number));
  const least = known(data.sets.low, confidence.low, 0), most = known(data.sets.high, confidence.high, 1);
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
  if (set.length === count) return {share: 1, low: 1, high: 1, from: 1, to: 1, extended: false, own: false, part: null};
  const share = sumOver(estimate, set);
  const [only] = set;
  const part = partThatIs(set), known = set.length === 1 && hasInterval(only);
  const [from, to] = part ? [part.from, part.to] : known ? [confidence.low[only], confidence.high[only]] : intervalOf(set);
  return {share, low: Math.min(from, share), high: Math.max(to, share), from, to, extended: share < from || share > to, own: known, part};
}
