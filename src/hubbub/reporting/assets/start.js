// Begin. Where scripts fail, the page is what it is without them.
async function start() {
  startTheme();
  startVerdicts();
  startChoice();
  startTable();
  await startChart();
  startWalk();
  startComparison();
  startDownloads();
}

start().catch((error) => {
  root.classList.remove("works");
  for (const card of document.querySelectorAll(".card")) card.open = true;
  throw error;
});
