// What the reader has chosen, and who wants to know when it changes.
const chosen = new Set();
let marked = -1;
const followers = [];
const follow = (told) => followers.push(told);
const tell = () => followers.forEach((told) => told());

function choose(wanted, {add = false} = {}) {
  if (!add) chosen.clear();
  for (const place of wanted) chosen.add(place);
  tell();
}

function toggle(place) {
  if (!chosen.delete(place)) chosen.add(place);
  tell();
}

function mark(place) {
  marked = place;
  tell();
}
