// Several attributes: a heat table of two of them, and beside it the shares of one, of everybody or among those with one value.
let crossed = [0, 1], chosen = null; // the attributes of rows and columns; of which of the two, which value: {side, place}

const RELATIVE = [0.2126, 0.7152, 0.0722];
function luminance(colour) {
  const parts = [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16) / 255);
  return parts.reduce((sum, part, place) => sum + RELATIVE[place] * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4), 0);
}

// The square root of the colour scale keeps small shares visible, as on maps. White or black, whichever is easier to read there.
function paint(cell, share, most) {
  const ground = data.ramp[Math.round(Math.sqrt(share / most) * (data.ramp.length - 1))];
  cell.style.background = ground;
  cell.style.color = luminance(ground) < 0.179 ? "#ffffff" : "#000000";
}

const interval = ({low: from, high: to}) => (Number.isNaN(from) || Number.isNaN(to) ? "" : `${percent(from)} to ${percent(to)}`);
const nameOf = (side) => attributes.names[crossed[side]];
const valueOf = (side, place) => attributes.titles[crossed[side]][place];

function headButton(side, place) {
  const button = element("button", {type: "button", "aria-pressed": "false", "data-side": side, "data-place": place}, isolated(valueOf(side, place)));
  button.setAttribute("aria-label", `${nameOf(side)} ${valueOf(side, place)}: show ${nameOf(1 - side)} among those with it`);
  button.addEventListener("click", () => {
    const again = chosen !== null && chosen.side === side && chosen.place === place;
    chosen = again ? null : {side, place};
    showChosen();
  });
  return button;
}

function jointCell({share, possible, ...ends}, most, row, column) {
  if (!possible) return element("td", {class: "impossible"}, "–");
  const cell = element("td", null, figure(share, percent(share)));
  paint(cell, Math.max(0, share), most);
  const said = [["name", `${nameOf(0)} ${valueOf(0, row)}, ${nameOf(1)} ${valueOf(1, column)}`], ["", `${percent(share)} of everybody`]];
  if (interval(ends)) said.push(["", `${interval(ends)} ${atLevel}`]);
  cell.addEventListener("pointermove", (event) => showTip(said, event.clientX, event.clientY));
  cell.addEventListener("pointerleave", hideTip);
  return cell;
}

function drawTable() {
  const joint = tables.joint[crossed], [down, along] = crossed.map((number) => tables.marginals[number]);
  const most = largestOf(joint.flat().map(({share}) => share)) || 1;
  const total = (share) => element("td", {class: "total"}, figure(share, percent(share)));
  const head = element("tr", null, element("th", {scope: "col", class: "corner"}, isolated(nameOf(0)), " by ", isolated(nameOf(1))),
    ...along.map((_, place) => element("th", {scope: "col"}, headButton(1, place))), element("th", {scope: "col", class: "total"}, "all"));
  const body = joint.map((row, place) => element("tr", null, element("th", {scope: "row"}, headButton(0, place)),
    ...row.map((cell, other) => jointCell(cell, most, place, other)), total(down[place].share)));
  const last = element("tr", {class: "everybody"}, element("th", {scope: "row", class: "total"}, "all"), ...along.map(({share}) => total(share)), total(1));
  byId("crosstab").replaceChildren(element("thead", null, head), element("tbody", null, ...body, last));
}

// A bar for each share, with its interval; a line where everybody's share is.
function strip(title, own, everybody, most) {
  const track = element("span", {class: "track", "aria-hidden": "true"});
  const place = (share) => `${(100 * Math.max(0, share)) / most}%`;
  const part = (name, styles) => { const made = element("i", {class: name}); Object.assign(made.style, styles); track.append(made); };
  part("length", {width: place(own.share)});
  if (interval(own)) part("reach", {left: place(own.low), width: place(own.high - own.low)});
  if (everybody) part("usual", {left: place(everybody.share)});
  const said = interval(own) ? [" ", element("small", null, interval(own))] : [];
  return element("li", null, element("span", {class: "words"}, element("bdi", {class: "name", title}, title),
    element("span", {class: "said"}, figure(own.share, percent(own.share)), ...said)), track);
}

function strips(side, shares, everybody) {
  const number = crossed[side], among = tables.among[[number, crossed[1 - side]]];
  // One scale for an attribute, whatever is chosen: bars can be compared.
  const ends = [...tables.marginals[number], ...among.flat()].flatMap(({share, high: to}) => [share, to]);
  const most = largestOf(ends.filter((end) => !Number.isNaN(end))) || 1;
  const made = shares.map((own, place) => strip(valueOf(side, place), own, everybody?.[place], most));
  return [element("h4", null, isolated(nameOf(side))), element("ul", {class: "strips"}, ...made)];
}

function showChosen() {
  const table = byId("crosstab");
  for (const button of table.querySelectorAll("button")) {
    const is = chosen !== null && Number(button.dataset.side) === chosen.side && Number(button.dataset.place) === chosen.place;
    button.setAttribute("aria-pressed", String(is));
  }
  [...table.tBodies[0].rows].forEach((row, down) => [...row.cells].forEach((cell, across) => {
    const is = chosen !== null && (chosen.side === 0 ? down === chosen.place && across > 0 : across === chosen.place + 1);
    cell.classList.toggle("chosen", is);
  }));
  byId("everybody").disabled = chosen === null;
  const said = byId("among"), panel = byId("strips");
  if (chosen === null) {
    said.replaceChildren("Among everybody. Press a value of ", isolated(nameOf(0)), " or ", isolated(nameOf(1)), " in the table to see the other attribute among those who have it.");
    panel.replaceChildren(...[0, 1].flatMap((side) => strips(side, tables.marginals[crossed[side]], null)));
    return;
  }
  const other = 1 - chosen.side, shares = tables.among[[crossed[other], crossed[chosen.side]]][chosen.place];
  const who = ["Among those with ", isolated(nameOf(chosen.side)), " ", isolated(valueOf(chosen.side, chosen.place)), ": "];
  if (shares.every(({share}) => Number.isNaN(share))) {
    said.replaceChildren(...who, "nobody is estimated to be there, so there is nothing to show.");
    panel.replaceChildren();
    return;
  }
  const top = shares.reduce((best, {share}, place) => (share > shares[best].share ? place : best), 0), own = shares[top];
  const range = interval(own) ? ` (${interval(own)} ${atLevel})` : "";
  const usual = tables.marginals[crossed[other]];
  said.replaceChildren(...who, isolated(nameOf(other)), " ", isolated(valueOf(other, top)), ` is the most common, ${percent(own.share)}${range}. `,
    `Of everybody, ${percent(usual[top].share)} have it; the upright lines show everybody.`);
  panel.replaceChildren(...strips(other, shares, usual));
}

function startAttributes() {
  if (tables === null) return;
  const selects = ["rows-attribute", "columns-attribute"].map(byId);
  selects.forEach((select, side) => select?.addEventListener("change", () => {
    const before = crossed[side];
    crossed[side] = Number(select.value);
    if (crossed[1 - side] === crossed[side]) { // the two change places
      crossed[1 - side] = before;
      selects[1 - side].value = String(before);
    }
    chosen = null;
    drawTable();
    showChosen();
  }));
  byId("everybody").addEventListener("click", () => { chosen = null; showChosen(); });
  drawTable();
  showChosen();
}
