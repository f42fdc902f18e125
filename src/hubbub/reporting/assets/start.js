// Begin: what needs scripts is shown from here on. Where they fail, the page is what it is without them.
async function start() {
  root.classList.add("works");
  startTheme();
  startChoice();
  startTable();
  await startChart();
  startWalk();
  startComparison();
  startDownloads();
}

start().catch((error) => {
  root.classList.remove("works");
  throw error;
});
