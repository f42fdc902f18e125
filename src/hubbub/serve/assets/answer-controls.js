// One control for each kind of domain. Nothing is chosen at first, and the choice is in this page's memory alone.
//
// A control is { element, value(), problem(), clear() }: the chosen value as the client takes it, undefined if there is
// none; what is missing, in a sentence; and a way to forget the choice. `changed` is called after each choice.

import { element, isolated, newId, privateInput } from "./page-elements.js";
import { binWords, cellWords } from "./value-words.js";

const MAX_BUTTONS = 12; // answers that are shown all at once
const MAX_LISTED = 50; // answers of a searchable list that are shown at a time
const MAX_SLIDER = 201; // whole numbers that a slider can be set to
const MAX_DRAWN_CELLS = 20_000;

export function answerControl(domain, label, changed) {
  return CONTROLS[domain.kind](domain, label, changed);
}

// --- a list of answers -----------------------------------------------------------------------------------------------

/** Return radio buttons. They have no name, as no form may hold them, so the group itself handles the keys. */
function choiceControl(options, label, changed) {
  let chosen = null; // [value, words]
  let listed = options;
  const group = element("div", { className: "options", role: "radiogroup", "aria-label": label });
  const more = element("p", { className: "hint", role: "status" });
  const inside = element("div", {}, group, more);
  const isLong = options.length > MAX_BUTTONS;
  if (isLong) {
    const id = newId();
    const search = privateInput("text", { id, className: "search", placeholder: "Type to find an answer" });
    search.addEventListener("input", () => {
      const words = search.value.trim().toLocaleLowerCase();
      listed = options.filter(([, text]) => text.toLocaleLowerCase().includes(words));
      list();
    });
    group.classList.add("long");
    const title = `Find one of ${options.length} answers`;
    inside.prepend(element("label", { htmlFor: id, className: "hint" }, title), search);
  }
  function list() {
    const first = listed.slice(0, isLong ? MAX_LISTED : listed.length);
    const shown = chosen && !first.includes(chosen) ? [chosen, ...first] : first;
    group.replaceChildren(...shown.map(option));
    const hidden = listed.length - first.length;
    if (!listed.length) more.textContent = "No answer has these letters.";
    else more.textContent = hidden ? `${hidden} more: type to find them.` : "";
    focusable();
  }
  function option(entry) {
    const input = privateInput("radio", { checked: entry === chosen });
    const choose = () => {
      chosen = entry;
      for (const other of group.querySelectorAll("input")) other.checked = other === input;
      focusable();
      changed();
    };
    input.addEventListener("change", choose);
    input.choose = choose;
    return element("label", { className: "option" }, input, isolated(entry[1]));
  }
  /** Let the tab key reach one of the buttons: the chosen one, or the first. */
  function focusable() {
    const inputs = [...group.querySelectorAll("input")];
    const one = inputs.find((input) => input.checked) ?? inputs[0];
    for (const input of inputs) input.tabIndex = input === one ? 0 : -1;
  }
  group.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const inputs = [...group.querySelectorAll("input")];
    if (!step || !inputs.includes(event.target)) return;
    event.preventDefault();
    const next = inputs[(inputs.indexOf(event.target) + step + inputs.length) % inputs.length];
    next.checked = true;
    next.choose();
    next.focus();
  });
  list();
  return {
    element: inside,
    value: () => chosen?.[0],
    problem: () => (chosen ? "" : "Choose one of the answers."),
    clear: () => {
      chosen = null;
      inside.replaceChildren();
    },
  };
}

function categoriesControl(domain, label, changed) {
  return choiceControl(domain.labels.map((text) => [text, text]), label, changed);
}

// --- a number --------------------------------------------------------------------------------------------------------

/** Return a field for a number, with a slider where there are few enough; `fits` says what is wrong with a text. */
function numberControl({ low, high, step, label, hint, fits, words }, changed) {
  const id = newId();
  const inputMode = step === 1 && low >= 0 ? "numeric" : "text";
  const field = privateInput("text", { id, inputMode, className: "number" });
  field.setAttribute("aria-label", label);
  const told = element("p", { className: "hint", id: `${id}-hint` }, hint);
  field.setAttribute("aria-describedby", told.id);
  const inside = element("div", { className: "numbers" }, field);
  const slider = step === 1 && high - low < MAX_SLIDER ? privateInput("range", { min: low, max: high, step }) : null;
  function settle() {
    const problem = fits(field.value.trim());
    told.textContent = problem || !words ? hint : words(field.value.trim());
    changed();
  }
  if (slider) {
    slider.value = Math.floor((low + high) / 2);
    slider.classList.add("unset");
    slider.setAttribute("aria-label", `${label}, as a slider`);
    slider.addEventListener("input", () => {
      field.value = slider.value;
      slider.classList.remove("unset");
      settle();
    });
    const end = (number) => element("span", { className: "end" }, String(number));
    inside.append(end(low), slider, end(high));
  }
  field.addEventListener("input", () => {
    if (slider && !fits(field.value.trim())) {
      slider.value = field.value;
      slider.classList.remove("unset");
    }
    settle();
  });
  const whole = element("div", {}, inside, told);
  return {
    element: whole,
    value: () => (fits(field.value.trim()) ? undefined : field.value.trim()),
    problem: () => fits(field.value.trim()),
    clear: () => {
      field.value = "";
      whole.replaceChildren();
    },
  };
}

const WHOLE = /^[+-]?[0-9]{1,16}$/;
const REAL = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;

function between(low, high, isWhole) {
  const expected = `Enter a ${isWhole ? "whole number" : "number"} from ${low} to ${high}.`;
  return (text) => ((isWhole ? WHOLE : REAL).test(text) && Number(text) >= low && Number(text) <= high ? "" : expected);
}

function integersControl(domain, label, changed) {
  const { low, high } = domain;
  if (high - low < MAX_BUTTONS) {
    const numbers = Array.from({ length: high - low + 1 }, (_, place) => String(low + place));
    const control = choiceControl(numbers.map((text) => [text, text]), label, changed);
    control.element.firstChild.classList.add("short");
    return control;
  }
  const fits = between(low, high, true);
  const hint = `A whole number from ${low} to ${high}.`;
  return numberControl({ low, high, step: 1, label, hint, fits }, changed);
}

function binsControl(domain, label, changed) {
  const { edges } = domain;
  const places = edges.slice(1).map((_, place) => place);
  if (places.length <= MAX_BUTTONS) {
    // A number in the bin stands for it: its left edge.
    return choiceControl(places.map((place) => [edges[place], binWords(edges, place)]), label, changed);
  }
  const [low, high] = [Number(edges[0]), Number(edges.at(-1))];
  const words = (text) => {
    const above = edges.findIndex((edge) => Number(edge) > Number(text));
    return `Counted as ${binWords(edges, (above < 0 ? edges.length - 1 : above) - 1)}.`;
  };
  const hint = `A number from ${low} to ${high}.`;
  const fits = between(low, high, false);
  return numberControl({ low, high, step: "any", label, hint, fits, words }, changed);
}

// --- a map -----------------------------------------------------------------------------------------------------------

/** Return two fields, and a plan of the cells that can be pointed at. There is no background: it would be fetched. */
function gridControl(domain, label, changed) {
  const { columns, rows, cells } = domain;
  const box = domain.box && Object.fromEntries(Object.entries(domain.box).map(([side, text]) => [side, Number(text)]));
  const exists = cells ? new Set(cells) : { has: () => true };
  const ranges = box
    ? [["Latitude", box.south, box.north], ["Longitude", box.west, box.east]]
    : [["Column, counted from the west", 1, columns], ["Row, counted from the south", 1, rows]];
  const inputMode = box ? "text" : "numeric";
  const fields = ranges.map(() => privateInput("text", { id: newId(), inputMode, className: "number" }));
  const told = element("p", { className: "hint", role: "status" });
  const canvas = element("canvas", { className: "plan", "aria-hidden": "true" });
  const faults = () => ranges.map(([name, low, high], at) => {
    const fault = between(low, high, !box)(fields[at].value.trim());
    return fault && `${name}: ${fault.charAt(0).toLowerCase()}${fault.slice(1)}`;
  });
  /** Return the column and row that the fields name; null if they name none. */
  function place() {
    if (faults().some(Boolean)) return null;
    const [first, second] = fields.map((field) => Number(field.value.trim()));
    if (!box) return [first - 1, second - 1];
    const column = Math.min(Math.trunc(((second - box.west) / (box.east - box.west)) * columns), columns - 1);
    return [column, Math.min(Math.trunc(((first - box.south) / (box.north - box.south)) * rows), rows - 1)];
  }
  const cellOf = ([column, row]) => row * columns + column;
  function problem() {
    const found = place();
    if (!found) return faults().find(Boolean);
    return exists.has(cellOf(found)) ? "" : "This place is not part of the study. Choose another one.";
  }
  function settle() {
    const found = place();
    told.textContent = found ? problem() || `Counted as the cell ${cellWords(domain, ...found)}.` : "";
    draw();
    changed();
  }
  function draw() {
    const context = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(name);
    const [width, height] = [canvas.width / columns, canvas.height / rows];
    context.clearRect(0, 0, canvas.width, canvas.height);
    const cell = (column, row, name) => {
      context.fillStyle = colour(name);
      const gap = Math.min(1, width / 8, height / 8);
      context.fillRect(column * width, canvas.height - (row + 1) * height, width - gap, height - gap);
    };
    if (columns * rows > MAX_DRAWN_CELLS) {
      context.fillStyle = colour("--cell");
      context.fillRect(0, 0, canvas.width, canvas.height);
    } else {
      for (let each = 0; each < columns * rows; each++) {
        if (exists.has(each)) cell(each % columns, Math.floor(each / columns), "--cell");
      }
    }
    const found = place();
    if (found && exists.has(cellOf(found))) cell(...found, "--accent");
  }
  canvas.addEventListener("click", (event) => {
    const column = Math.min(Math.floor((event.offsetX / canvas.clientWidth) * columns), columns - 1);
    const row = Math.min(Math.floor((1 - event.offsetY / canvas.clientHeight) * rows), rows - 1);
    const centre = (low, high, at, count) => (low + ((at + 0.5) * (high - low)) / count).toFixed(6);
    fields[0].value = box ? centre(box.south, box.north, row, rows) : column + 1;
    fields[1].value = box ? centre(box.west, box.east, column, columns) : row + 1;
    settle();
  });
  const inputs = ranges.map(([name, low, high], at) => {
    fields[at].addEventListener("input", settle);
    return element("div", {}, element("label", { htmlFor: fields[at].id }, `${name} (${low} to ${high})`), fields[at]);
  });
  canvas.width = 640;
  const shape = (rows * sideOf(domain, 1)) / (columns * sideOf(domain, 0));
  canvas.height = Math.max(60, Math.min(960, Math.round(canvas.width * shape)));
  const hint = "Or point at your place: north is up, and each square is one cell of the study.";
  const pair = element("div", { className: "pair" }, ...inputs);
  const parts = [pair, told, element("p", { className: "hint" }, hint), canvas];
  const whole = element("div", { role: "group", "aria-label": label }, ...parts);
  queueMicrotask(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return {
    element: whole,
    value: () => (problem() ? undefined : String(cellOf(place()))),
    problem,
    clear: () => {
      for (const field of fields) field.value = "";
      draw();
      whole.replaceChildren();
    },
  };
}

/** Return the length of a cell's side, which the study has as a fraction of hexadecimal numbers. */
function sideOf(domain, at) {
  const [numerator, denominator] = domain.sides[at].split("/").map((digits) => BigInt(`0x${digits}`));
  return Number((numerator * 1_000_000n) / denominator) || 1;
}

// --- several attributes ----------------------------------------------------------------------------------------------

function attributesControl(domain, label, changed) {
  const controls = domain.attributes.map((own) => [own.name, answerControl(own, own.name, changed)]);
  const fields = controls.map(([name, control]) =>
    element("fieldset", {}, element("legend", {}, isolated(name)), control.element),
  );
  const whole = element("div", { role: "group", "aria-label": label }, ...fields);
  const problem = () => {
    const found = controls.find(([, control]) => control.problem());
    return found ? `${found[0]}: ${found[1].problem()}` : "";
  };
  return {
    element: whole,
    value: () => (problem() ? undefined : Object.fromEntries(controls.map(([name, own]) => [name, own.value()]))),
    problem,
    clear: () => {
      for (const [, control] of controls) control.clear();
      whole.replaceChildren();
    },
  };
}

const CONTROLS = {
  categories: categoriesControl,
  integers: integersControl,
  bins: binsControl,
  grid: gridControl,
  product: attributesControl,
};
