// The explorer on the page "Which method, which mechanism, how many users?": shows simulated studies from tables that
// scripts/make_explorer_tables.py wrote. No framework and no network: tables are scripts, which a page that was opened
// from the disk may load, and the table of a question is loaded when it is first chosen.
"use strict";

const hubbubExplorer = (() => {
  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const SVG = "http://www.w3.org/2000/svg";
  const METHODS = ["auto", "inv-p"];
  const COUNTED = "reports";
  const MOST_OF_TRUTH = 2.5; // scales end here: one spike of a bad estimate would make all else invisible
  const folder = document.currentScript.src.replace(/[^/]*$/, "");
  const tables = new Map();
  const chosen = { question: "map", mechanism: 0, epsilon: 2, users: 2, method: "auto", draw: 0 };
  const at = (name) => document.getElementById(`explorer-${name}`);

  // -- tables and numbers -----------------------------------------------------------------------------------

  function shares([largest, text]) {
    const found = [];
    for (let place = 0; place < text.length; place += 2) {
      found.push((64 * DIGITS.indexOf(text[place]) + DIGITS.indexOf(text[place + 1])) * largest / (64 * 64 - 1));
    }
    return found;
  }
  const whole = (number) => number.toLocaleString("en-US");
  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 2 : 1)}%`;
  const significant = (number) => number === 0 ? "0" : String(Number(number.toPrecision(2)));
  const distance = (number, unit) => `${significant(number)} ${unit}${unit === "unit" && number !== 1 ? "s" : ""}`;
  // An error as people: of 100 where that is at least one of them, else of 1,000, or of 10,000.
  const crowd = (share) => [100, 1000, 10000].find((people) => share * people >= 0.95) ?? 10000;
  const people = (share, of = crowd(share)) => {
    const number = share * of;
    return number < 0.05 ? "0" : String(number < 9.5 ? Number(number.toFixed(1)) : Math.round(number));
  };

  function setting() {
    const table = tables.get(chosen.question);
    const mechanism = table.mechanisms[chosen.mechanism];
    const epsilon = mechanism.epsilons[chosen.epsilon];
    const users = table.users[chosen.users];
    return { table, mechanism, epsilon, users, found: table.settings[`${mechanism.kind} ${epsilon} ${users}`] };
  }

  // -- words ------------------------------------------------------------------------------------------------

  function privacy({ table, mechanism, epsilon }) {
    const factor = (exponent) => significant(Math.exp(exponent));
    if (!mechanism.metric) {
      return `Plain epsilon ${epsilon}: whatever is reported, no value makes it more than ${factor(epsilon)} times as ` +
        "likely as any other value does.";
    }
    const near = table.chart === "map" ? 1 : 10;
    const far = table.diameter;
    return `Epsilon ${epsilon} per ${table.unit}: two values ${distance(near, table.unit)} apart make a report at most ` +
      `${factor(epsilon * near)} times as likely as each other, values further apart more. Over the whole ` +
      `${table.chart === "map" ? "map" : "line"} this is plain epsilon ${significant(epsilon * far)}.`;
  }

  function answer({ table, mechanism, epsilon, users, found }) {
    const [[mean, low, high], moved] = found[chosen.method];
    const of = crowd(mean);
    const per = mechanism.metric ? ` per ${table.unit}` : "";
    let text = `With ${whole(users)} users and epsilon ${epsilon}${per}, ${chosen.method} would put about ` +
      `${people(mean, of)} of ${whole(of)} people at a wrong value (${people(low, of)} to ${people(high, of)} in ` +
      `${table.runs} simulated studies)`;
    if (moved) text += `, and people ${distance(moved[0], table.unit)} off on average`;
    const [counted] = found[COUNTED];
    text += `. Counting the noisy reports as they are: about ${people(counted[0])} of ${whole(crowd(counted[0]))}.`;
    if (mean > 0.75 * table.nothing[0]) {
      text += " That is hardly better, or even worse, than guessing equal shares: ask more people, or allow a larger epsilon.";
    }
    return text;
  }

  function study({ table, mechanism, epsilon }) {
    const number = Number.isInteger(epsilon) ? `${epsilon}.0` : String(epsilon);
    return `version = 1\nname = "${table.title}"\n\n[domain]\n${table.study}\n\n[mechanisms.chosen]\n` +
      `kind = "${mechanism.kind}"\nepsilon = ${number}\n`;
  }

  function command({ table, users }) {
    const method = chosen.method === "auto" ? "" : ` --method ${chosen.method}`;
    return `hubbub plan study.toml --users ${users} --truth ${table.shape}${method}\n`;
  }

  // -- pictures ---------------------------------------------------------------------------------------------

  function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function canvas(width, height, label) {
    return element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  }

  function described(name, heights, table) {
    const top = heights.indexOf(Math.max(...heights));
    return `${name} as a ${table.chart === "map" ? "map" : "bar chart"} of ${heights.length} values; the largest share, ` +
      `${percent(heights[top])}, is at ${valueName(table, top)}`;
  }

  const valueName = (table, place) => table.chart === "map"
    ? `column ${place % table.columns + 1}, row ${Math.floor(place / table.columns) + 1} from the south`
    : table.labels[place];

  function bars(panel, heights, truth, scale, table, width, label) {
    const [left, right, top, bottom] = [34, 4, 14, 18];
    const height = table.chart === "line" ? 130 : 170;
    const svg = canvas(width, height, label);
    const plot = { width: width - left - right, height: height - top - bottom };
    const step = plot.width / heights.length;
    const gap = table.chart === "line" ? 0 : Math.min(8, 0.15 * step);
    const y = (share) => top + plot.height * (1 - Math.min(share / scale, 1));
    heights.forEach((share, place) => {
      const x = left + place * step + gap;
      svg.append(element("rect", {
        class: `ink-${panel}`, x, y: y(share), width: Math.max(step - 2 * gap, 0.5), height: top + plot.height - y(share),
      }));
      if (share > scale * 1.001) {
        const middle = left + (place + 0.5) * step;
        svg.append(element("path", { class: `ink-${panel}`, d: `M${middle - 4} ${top - 2}h8l-4 -6z` }));
      }
    });
    if (panel !== "truth") {
      const line = truth.map((share, place) => {
        const x = left + place * step;
        return `${place && table.chart === "line" ? "L" : "M"}${x + gap} ${y(share)}H${x + step - gap}`;
      });
      svg.append(element("path", { class: "outline", d: line.join("") }));
    }
    svg.append(element("path", { class: "frame", d: `M${left} ${top}V${top + plot.height}H${width - right}` }));
    svg.append(element("text", { x: left - 4, y: top + 8, "text-anchor": "end" }, significant(100 * scale) + "%"));
    svg.append(element("text", { x: left - 4, y: top + plot.height, "text-anchor": "end" }, "0"));
    const last = heights.length - 1;
    const ticks = table.chart === "line" ? [0, last] : heights.keys();
    for (const place of ticks) {
      const edge = table.chart !== "line" ? "middle" : place ? "end" : "start";
      const x = { start: left, middle: left + (place + 0.5) * step, end: width - right }[edge];
      svg.append(element("text", { x, y: height - 4, "text-anchor": edge }, table.labels[place]));
    }
    return svg;
  }

  function map(panel, heights, scale, table, width, label) {
    const side = Math.floor(width / table.columns);
    const svg = canvas(side * table.columns, side * table.rows, label);
    heights.forEach((share, place) => {
      const row = table.rows - 1 - Math.floor(place / table.columns);
      svg.append(element("rect", {
        class: `cell ink-${panel}`, x: side * (place % table.columns), y: side * row, width: side, height: side,
        "fill-opacity": Math.sqrt(Math.min(share / scale, 1)).toFixed(3), // linear, small shares would be invisible
      }));
    });
    return svg;
  }

  function shown({ table, found }) {
    const drawn = found.draws[chosen.draw].map(shares);
    return { truth: shares(table.truth), reports: drawn[0], estimate: drawn[1 + METHODS.indexOf(chosen.method)] };
  }

  function draw(now) {
    const panels = shown(now);
    const all = Math.max(...Object.values(panels).flat());
    const scale = Math.min(all, MOST_OF_TRUTH * Math.max(...panels.truth));
    at("panels").classList.toggle("stacked", now.table.chart === "line");
    for (const box of at("panels").querySelectorAll("[data-panel]")) {
      const panel = box.dataset.panel;
      const name = box.parentElement.querySelector("figcaption").textContent;
      const label = described(name, panels[panel], now.table);
      const width = Math.max(120, Math.floor(box.clientWidth));
      box.replaceChildren(now.table.chart === "map"
        ? map(panel, panels[panel], scale, now.table, width, label)
        : bars(panel, panels[panel], panels.truth, scale, now.table, width, label));
    }
    const cut = all > scale * 1.001 ? ` The largest share, ${percent(all)}, is cut off there.` : "";
    at("scale").textContent = now.table.chart === "map"
      ? `All maps have one scale: full colour is ${percent(scale)} of the people in one cell, half colour a quarter of that.${cut}`
      : `All charts have one scale; the ${now.table.chart === "line" ? "line is" : "marks are"} the truth.${cut}`;
  }

  // -- tables and controls ----------------------------------------------------------------------------------

  function fill(table, head, rows) {
    const row = (cells, heads) => {
      const made = document.createElement("tr");
      cells.forEach((text, column) => {
        const cell = document.createElement(heads || column === 0 ? "th" : "td");
        if (cell.tagName === "TH") cell.scope = heads ? "col" : "row";
        cell.textContent = text;
        made.append(cell);
      });
      return made;
    };
    const [top, body] = [document.createElement("thead"), document.createElement("tbody")];
    top.append(row(head, true));
    body.append(...rows.map((cells) => row(cells, false)));
    table.replaceChildren(top, body);
  }

  function errors({ table, found }) {
    const range = (errors, write) => `${write(errors[0])} (${write(errors[1])} to ${write(errors[2])})`;
    const number = (error) => people(error, 100);
    const cells = (title, each) => [
      title, range(each[0], number), ...(table.unit ? [range(each[1], significant)] : []),
    ];
    const head = ["", "of 100 people at a wrong value: mean (range)"];
    if (table.unit) head.push(`earth mover's distance in ${table.unit === "unit" ? "units" : table.unit}: mean (range)`);
    fill(at("errors"), head, [
      ...METHODS.map((method) => cells(method, found[method])),
      cells("noisy reports, counted", found[COUNTED]),
      ["equal shares, without any report", number(table.nothing[0]), ...table.nothing.slice(1).map(significant)],
    ]);
  }

  function numbers(now) {
    const { truth, reports, estimate } = shown(now);
    const rows = truth.map((share, place) => [
      valueName(now.table, place), percent(share), percent(reports[place]), percent(estimate[place]),
    ]);
    fill(at("numbers").querySelector("table"), ["value", "truth", "noisy reports", `estimate by ${chosen.method}`], rows);
  }

  function radios(name, texts, selected, choose) {
    const boxes = texts.map((text, place) => {
      const [label, input] = [document.createElement("label"), document.createElement("input")];
      Object.assign(input, { type: "radio", name: `explorer-${name}`, value: text, checked: place === selected });
      input.addEventListener("change", () => { choose(place); show(); });
      label.append(input, text);
      return label;
    });
    at(name).querySelector("div").replaceChildren(...boxes);
  }

  // What can be chosen depends on the question, and epsilons on the mechanism.
  function offer() {
    const table = tables.get(chosen.question);
    const options = table.mechanisms.map((mechanism, place) =>
      new Option(mechanism.title, mechanism.kind, false, place === chosen.mechanism));
    at("mechanism").replaceChildren(...options);
    const mechanism = table.mechanisms[chosen.mechanism];
    at("epsilon").querySelector("legend").textContent =
      `Epsilon${mechanism.metric ? ` per ${table.unit}` : ""} (smaller is more private)`;
    radios("epsilon", mechanism.epsilons.map(String), chosen.epsilon, (place) => { chosen.epsilon = place; });
    radios("users", table.users.map(whole), chosen.users, (place) => { chosen.users = place; });
    radios("method", METHODS, METHODS.indexOf(chosen.method), (place) => { chosen.method = METHODS[place]; });
  }

  function show() {
    const now = setting();
    at("by").textContent = chosen.method;
    at("privacy").textContent = privacy(now);
    at("answer").textContent = answer(now);
    at("number").textContent = `${chosen.draw + 1} of ${now.found.draws.length}`;
    at("study").textContent = study(now);
    at("file").href = `data:text/plain;charset=utf-8,${encodeURIComponent(study(now))}`;
    at("command").textContent = command(now);
    errors(now);
    numbers(now);
    draw(now);
  }

  function choose(question) {
    Object.assign(chosen, { question, mechanism: 0, draw: 0 });
    if (tables.has(question)) { offer(); show(); return; }
    const script = document.createElement("script");
    script.src = `${folder}${question}.js`;
    script.addEventListener("error", () => { at("answer").textContent = `There is no ${script.src}.`; });
    document.head.append(script);
  }

  function receive(table) {
    tables.set(table.key, table);
    if (table.key === chosen.question) { offer(); show(); }
  }

  function start() {
    at("question").addEventListener("change", (event) => choose(event.target.value));
    at("mechanism").addEventListener("change", (event) => {
      chosen.mechanism = event.target.selectedIndex;
      offer();
      show();
    });
    at("draw").addEventListener("click", () => {
      chosen.draw = (chosen.draw + 1) % setting().found.draws.length;
      show();
    });
    document.querySelectorAll(".explorer form").forEach((form) => {
      form.addEventListener("submit", (event) => event.preventDefault());
    });
    document.getElementById("explorer").hidden = false;
    let width = 0;
    new ResizeObserver(() => {
      if (width === at("panels").clientWidth || !tables.has(chosen.question)) return;
      width = at("panels").clientWidth;
      draw(setting());
    }).observe(at("panels"));
    choose(at("question").value);
  }

  return { receive, start };
})();

hubbubExplorer.start();
