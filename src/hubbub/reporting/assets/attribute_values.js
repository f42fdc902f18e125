// The shares of several attributes: of each, of each two together, and of one among those with a value of another.
const attributes = data.attributes; // null: there is only one
const tables = attributes === null ? null : unpackedTables(attributes);

// Shares with their intervals, in rows of equal length.
function unpackedShares({estimate: centre, low: from, high: to}, size, length) {
  const parts = [floatsOf(centre, size * length), floatsOf(from, size * length), floatsOf(to, size * length)];
  return Array.from({length: size}, (_, row) => Array.from({length}, (_, place) => {
    const [share, low, high] = parts.map((numbers) => numbers[row * length + place]);
    return {share, low, high};
  }));
}

function unpackedTables({titles, marginals, pairs}) {
  const sizes = titles.map((own) => own.length);
  const found = {marginals: marginals.map((own, number) => unpackedShares(own, 1, sizes[number])[0]), joint: {}, among: {}};
  for (const {rows: first, columns: second, joint, possible, forward, backward} of pairs) {
    const shares = unpackedShares(joint, sizes[first], sizes[second]);
    shares.forEach((row, place) => row.forEach((cell, other) => { cell.possible = possible === null || possible[place * sizes[second] + other] === 1; }));
    found.joint[[first, second]] = shares;
    found.joint[[second, first]] = titles[second].map((_, place) => shares.map((row) => row[place]));
    found.among[[second, first]] = unpackedShares(forward, sizes[first], sizes[second]); // of the second, among each value of the first
    found.among[[first, second]] = unpackedShares(backward, sizes[second], sizes[first]);
  }
  return found;
}
