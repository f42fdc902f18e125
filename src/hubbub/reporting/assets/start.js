// Begin: what needs scripts is shown from here on.
root.classList.add("works");
startTheme();
startChoice();
startTable();
startChart();
startWalk();
startComparison();
startDownloads();
