// Light or dark: follows the system until the button is used. The choice is not stored.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const repaints = [];
let chosenTheme = null, printing = false;

const isDark = () => !printing && (chosenTheme ?? (system.matches ? "dark" : "light")) === "dark";
const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

function repaint() {
  root.dataset.theme = isDark() ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", String(isDark()));
  repaints.forEach((draw) => draw());
}

function setPrinting(now) {
  if (printing === now) return;
  printing = now;
  repaint();
}

function startTheme() {
  repaint();
  byId("theme").addEventListener("click", () => {
    chosenTheme = isDark() ? "light" : "dark";
    repaint();
  });
  system.addEventListener("change", repaint);
  addEventListener("beforeprint", () => setPrinting(true));
  addEventListener("afterprint", () => setPrinting(false));
  matchMedia("print").addEventListener("change", (event) => setPrinting(event.matches));
}
