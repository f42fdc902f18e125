// The selected set and the marked value, and listeners that are called when they change.
const selected = new Set();
let marked = -1;
const listeners = [];
const onChange = (listener) => listeners.push(listener);
const notify = () => listeners.forEach((listener) => listener());

function select(values, {add = false} = {}) {
  if (!add) selected.clear();
  for (const place of values) selected.add(place);
  notify();
}

function toggle(place) {
  if (!selected.delete(place)) selected.add(place);
  notify();
}

function mark(place) {
  marked = place;
  notify();
}
