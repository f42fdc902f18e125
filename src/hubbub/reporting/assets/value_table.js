// The table of all values: searched, sorted, fifty at a time.
const ROWS_PER_PAGE = 50;
const COLUMNS = [
  {name: "value", said: "Value", class: "named", first: "ascending"},
  {name: "share", said: "Share", class: "share", first: "descending", numbers: estimate},
  {name: "low", said: "From", class: "low", first: "descending", numbers: low},
  {name: "high", said: "To", class: "high", first: "descending", numbers: high},
  ...(noisy ? [{name: "noisy", said: "Noisy", class: "noisy", first: "descending", numbers: noisy}] : []),
];
let matching = everything, sorting = {name: "share", direction: "descending"}, firstRow = 0;
let searched = null;
const mostShare = largestOf(estimate) || 1;

function sortRows() {
  const {numbers} = COLUMNS.find(({name}) => name === sorting.name), sign = sorting.direction === "ascending" ? 1 : -1;
  const known = (place) => (Number.isNaN(numbers[place]) ? -Infinity : numbers[place]);
  const compare = numbers ? (first, second) => known(first) - known(second) || second - first
    : kind === "bars" ? compareTitles : (first, second) => first - second;
  matching = [...matching].sort((first, second) => sign * compare(first, second) || first - second);
}

function search() {
  const text = byId("search").value.trim().toLowerCase();
  searched ??= everything.map((place) => titleOf(place).toLowerCase());
  matching = text ? everything.filter((place) => searched[place].includes(text)) : everything;
  firstRow = 0;
  sortRows();
  fill();
}

function row(place) {
  const name = titleOf(place);
  const tick = element("input", {type: "checkbox", "aria-label": `select ${name}`, checked: selected.has(place)});
  tick.addEventListener("change", () => toggle(place));
  tick.addEventListener("click", (event) => event.stopPropagation());
  const stripe = element("i", {"aria-hidden": "true"});
  stripe.style.width = `${(100 * Math.max(0, estimate[place])) / mostShare}%`;
  const made = element("tr", {class: place === marked ? "marked" : null, "data-place": place},
    element("td", {class: "tick"}, tick),
    element("th", {class: "named", scope: "row"}, element("button", {type: "button", "aria-pressed": String(place === marked)}, isolated(name))),
    ...COLUMNS.slice(1).map(({class: style, numbers}) => element("td", {class: style},
      Number.isNaN(numbers[place]) ? element("span", {class: "quiet"}, "–") : figure(numbers[place], percent(numbers[place])),
      ...(style === "share" ? [stripe] : []))));
  made.addEventListener("click", () => mark(place === marked ? -1 : place));
  return made;
}

function fill() {
  const page = matching.slice(firstRow, firstRow + ROWS_PER_PAGE);
  byId("rows").replaceChildren(...page.map(row));
  const last = firstRow + page.length;
  byId("paged").textContent = page.length ? `${(firstRow + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${matching.length.toLocaleString("en")}` : "none";
  byId("matches").textContent = matching.length === count ? plural(count, "value") : `${plural(matching.length, "value")} found`;
  byId("previous").disabled = firstRow === 0;
  byId("next").disabled = last >= matching.length;
  byId("found").disabled = matching.length === 0;
  byId("found").textContent = matching.length === count ? "Select all" : `Select the ${plural(matching.length, "value")} found`;
}

// When the selection changes, the rows stay where they are, and so does the focus.
function refresh() {
  for (const shown of byId("rows").children) {
    const place = Number(shown.dataset.place);
    shown.querySelector("input").checked = selected.has(place);
    shown.classList.toggle("marked", place === marked);
    shown.querySelector("button").setAttribute("aria-pressed", String(place === marked));
  }
}

function heads() {
  const made = COLUMNS.map(({name, said, class: style, first}) => {
    const sorted = sorting.name === name;
    const button = element("button", {type: "button"}, said, sorted ? (sorting.direction === "ascending" ? " ↑" : " ↓") : "");
    button.addEventListener("click", () => {
      const flipped = sorting.direction === "ascending" ? "descending" : "ascending";
      sorting = {name, direction: sorted ? flipped : first};
      firstRow = 0;
      sortRows();
      heads();
      fill();
      byId("heads").querySelector(`.${style} button`).focus();
    });
    return element("th", {scope: "col", class: style, "aria-sort": sorted ? sorting.direction : "none"}, button);
  });
  byId("heads").replaceChildren(element("td", {class: "tick"}), ...made);
}

function startTable() {
  heads();
  sortRows();
  fill();
  byId("search").addEventListener("input", search);
  byId("previous").addEventListener("click", () => { firstRow = Math.max(0, firstRow - ROWS_PER_PAGE); fill(); });
  byId("next").addEventListener("click", () => { firstRow += ROWS_PER_PAGE; fill(); });
  onChange(refresh);
}
