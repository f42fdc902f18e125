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
  root.classList.add("ready"); // everything answers: for programs that use the page
}

start().catch((error) => {
  root.classList.remove("works");
  for (const card of document.querySelectorAll(".card")) card.open = true;
  throw error;
});
