// Start everything. If a script fails, the page falls back to what it shows without scripts.
async function start() {
  startTheme();
  startVerdicts();
  startAttributes();
  startReadout();
  startTable();
  await startChart();
  startWalk();
  startComparison();
  startDownloads();
  root.classList.add("ready"); // for programs that use the page: everything responds now
}

start().catch((error) => {
  root.classList.remove("works");
  for (const card of document.querySelectorAll(".card")) card.open = true;
  throw error;
});
