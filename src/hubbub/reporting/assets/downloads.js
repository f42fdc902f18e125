// Files to download, made here: nothing is fetched.
const FORMULA = "=+-@\u2212";

// Spreadsheets take a text that begins like this for a formula; full-width and small forms count as the same character.
function likeFormula(text) {
  const letter = (text.match(/[^\s\p{C}\p{Z}]/u) || [""])[0].normalize("NFKC").charAt(0);
  return /^[\t\r\n]/.test(text) || (letter !== "" && FORMULA.includes(letter));
}

// A leading apostrophe makes it a text. A text that has one already gets another: '=1 and =1 must not become the same.
const harmless = (text) => (likeFormula(text.replace(/^'+/, "")) ? `'${text}` : text);
const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
const numberText = (number) => (Number.isNaN(number) ? "" : String(number));

// A column for the value, or one for each attribute.
const columnsOf = (place) => (axes
  ? placesOn(place).map((own, number) => (axes[number].numbers ? axes[number].labels[own] : quoted(harmless(axes[number].labels[own]))))
  : [isNumber(place) ? labelOf(place) : quoted(harmless(labelOf(place)))]);

// Of the table itself: an attribute that is called so has a column value.NAME.
const OWN_COLUMNS = ["probability", "low", "high", "noisy"];

function csvText() {
  const lines = everything.map((place) => [
    ...columnsOf(place),
    numberText(estimate[place]), numberText(low[place]), numberText(high[place]), noisy ? numberText(noisy[place]) : "",
  ].join(","));
  const labelled = axes ? axes.map(({name}) => (OWN_COLUMNS.includes(name) ? `value.${name}` : name)) : ["value"];
  return [[...labelled, ...OWN_COLUMNS].join(","), ...lines, ""].join("\r\n");
}

function save(content, name) {
  const address = URL.createObjectURL(content);
  const link = element("a", {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

async function unpacked({text, deflated}) {
  if (text !== undefined) return text;
  const stream = new Blob([bytesOf(deflated)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

const TITLE_PIXELS = 54; // above the chart in a picture
const MAX_TITLE_LETTERS = {narrow: 38, wide: 90};

// A picture of one view, as large as the chart on the page, with what it is about above it.
async function viewImage(name, said) {
  const {traces, layout: frame} = drawers[name].draw();
  const most = MAX_TITLE_LETTERS[narrow() ? "narrow" : "wide"];
  const about = [said, `${plural(data.users, "user")}`, ...(estimate.some((_, place) => hasInterval(place)) ? [`intervals ${atLevel}`] : [])];
  const height = frame.height + TITLE_PIXELS, width = frame.width ?? Math.round(chart.clientWidth);
  const titled = {
    ...frame, width, height, margin: {...frame.margin, t: frame.margin.t + TITLE_PIXELS},
    title: {
      text: `<b>${plain(cut(byId("title").textContent.trim(), most))}</b>`, subtitle: {text: plain(about.join(" · ")), font: {size: 12, color: colour("quiet")}},
      font: {size: 16, color: colour("ink")}, x: 0, xref: "paper", xanchor: "left", y: 1, yref: "container", yanchor: "top", pad: {t: 16},
    },
  };
  const address = await Plotly.toImage({data: traces, layout: titled, config: SETTINGS}, {format: "png", width, height, scale: 2});
  return new Blob([bytesOf(address.slice(address.indexOf(",") + 1))], {type: "image/png"});
}

function startDownloads() {
  byId("csv").addEventListener("click", () => save(new Blob(["\uFEFF", csvText()], {type: "text/csv;charset=utf-8"}), `${data.name}.csv`));
  for (const button of byId("files").querySelectorAll("[data-view]")) {
    const {view: name, said, suffix} = button.dataset;
    button.addEventListener("click", async () => save(await viewImage(name, said), `${data.name}${suffix}.png`));
  }
  for (const file of data.files) {
    const button = element("button", {type: "button"}, isolated(file.shown));
    button.addEventListener("click", async () => save(new Blob([await unpacked(file)], {type: "application/octet-stream"}), file.name));
    byId("files").append(button);
  }
}
