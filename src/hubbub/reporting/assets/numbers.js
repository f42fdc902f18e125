// Numbers unpacked from the block of data, and shares as people read them.
function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place++) bytes[place] = raw.charCodeAt(place);
  return bytes;
}

// Float64 to the last bit; NaN if none was sent.
const floatsOf = (text, count) =>
  text === null || text === undefined ? new Float64Array(count).fill(NaN) : new Float64Array(bytesOf(text).buffer);

// Bounds of the values: if few are known, only these were sent, with their positions.
function boundsOf(packed, count) {
  if (packed === null || typeof packed === "string") return floatsOf(packed, count);
  const numbers = new Float64Array(count).fill(NaN), known = floatsOf(packed.known);
  new Int32Array(bytesOf(packed.at).buffer).forEach((place, index) => { numbers[place] = known[index]; });
  return numbers;
}

const shortFloatsOf = (text, count) =>
  text === null ? new Float64Array(count).fill(NaN) : Float64Array.from(new Float32Array(bytesOf(text).buffer));

// The same wording as percent() in hubbub/core/text.py.
function percent(share) {
  if (Number.isNaN(share)) return "unknown";
  const size = Math.abs(100 * share);
  if (size === 0 || size === 100) return `${(100 * share).toFixed(0)}%`;
  if (size < 1e-4) return "under 0.0001%";
  if (size >= 99.95 && size < 100) return "over 99.9%";
  const decimals = size >= 9.995 ? 1 : size >= 0.995 ? 2 : 1 - Math.floor(Math.log10(size));
  return `${(100 * share).toFixed(decimals)}%`;
}

const between = (low, high) =>
  Number.isNaN(low) || Number.isNaN(high) ? "interval not computed" : `${percent(low)} to ${percent(high)}`;

const largestOf = (numbers) => numbers.reduce((most, number) => Math.max(most, number), 0);

const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
