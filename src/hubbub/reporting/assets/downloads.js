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

function csvText() {
  const lines = everything.map((place) => [
    isNumber(place) ? labelOf(place) : quoted(harmless(labelOf(place))),
    numberText(estimate[place]), numberText(low[place]), numberText(high[place]), noisy ? numberText(noisy[place]) : "",
  ].join(","));
  return ["value,probability,low,high,noisy", ...lines, ""].join("\r\n");
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

async function chartImage() {
  const {width: across, height: down} = chart.getBoundingClientRect();
  const address = await Plotly.toImage(chart, {format: "png", width: Math.round(across), height: Math.round(down), scale: 2});
  return new Blob([bytesOf(address.slice(address.indexOf(",") + 1))], {type: "image/png"});
}

function startDownloads() {
  byId("csv").addEventListener("click", () => save(new Blob(["\uFEFF", csvText()], {type: "text/csv;charset=utf-8"}), `${data.name}.csv`));
  byId("png").addEventListener("click", async () => save(await chartImage(), `${data.name}.png`));
  for (const file of data.files) {
    const button = element("button", {type: "button"}, isolated(file.shown));
    button.addEventListener("click", async () => save(new Blob([await unpacked(file)], {type: "application/octet-stream"}), file.name));
    byId("files").append(button);
  }
}
