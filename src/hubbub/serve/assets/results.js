// Follows the results: asks now and then whether there are newer ones, and loads the report anew where it was read.

const MIN_PAUSE = 1_000; // milliseconds
const pause = Math.max(MIN_PAUSE, 1000 * Number(document.body.dataset.every));
const report = document.getElementById("report");
const status = document.getElementById("status");
const follow = document.getElementById("follow");
let shown = null; // when the report that is shown was computed

function load() {
  const at = report.hidden ? 0 : (report.contentWindow?.scrollY ?? 0);
  report.onload = () => report.contentWindow.scrollTo(0, at);
  report.src = "results/page";
  report.hidden = false;
}

function tell({ computed, reports, users, problem }) {
  const people = reports === users ? "" : ` of ${users.toLocaleString("en")} people`;
  const counted = `${reports.toLocaleString("en")} reports${people}`;
  const words = computed ? `${counted}, computed ${computed}.` : "No reports have been counted yet.";
  status.textContent = problem ? `${words} The last computation failed: ${problem}.` : words;
}

async function look() {
  try {
    const answer = await fetch("results/status", { cache: "no-store" });
    if (answer.status === 401) {
      location.reload(); // the session has ended
      return;
    }
    if (!answer.ok) throw new Error("no status");
    const found = await answer.json();
    const isNew = found.computed !== shown;
    if (isNew && found.computed && (follow.checked || shown === null)) {
      shown = found.computed;
      load();
    }
    if (found.computed === shown || shown === null) tell(found);
    else status.textContent = `Newer results are there: ${found.reports.toLocaleString("en")} reports.`;
  } catch {
    status.textContent = "The collector cannot be reached.";
  }
  setTimeout(look, pause);
}

follow.addEventListener("change", () => {
  if (follow.checked) shown = null;
});
look();
