// The noisy shares beside the estimate. Drawn when they come into view, or for printing.
function startComparison() {
  if (!noisy) return;
  const charts = [byId("compared"), byId("beside")];
  let seen = false, hasTips = false;

  // Room is made before anything is drawn there (traces are functions, because maps of many cells take a while): nothing below
  // may move away from under a reader's pointer.
  function makeRoom(panels) {
    byId("beside").closest(".frame").hidden = panels.length < 2;
    byId("beside").closest(".twins").classList.toggle("two", panels.length > 1 && !printing);
    panels.forEach(({layout: {height: tall}}, number) => { charts[number].style.minHeight = `${tall}px`; });
  }

  function drawBoth() {
    const panels = drawer.compare();
    makeRoom(panels);
    if (!seen) return;
    panels.forEach(({traces, layout: frame}, number) => {
      Plotly.react(charts[number], traces(), {width: charts[number].clientWidth, ...frame, dragmode: false}, SETTINGS);
    });
    if (!hasTips) panels.forEach((_, number) => showTipsOn(charts[number], drawer.at, describeValue));
    hasTips = true;
  }

  // Plotly remembers how much room the numbers beside a map's colours took in the other window.
  function drawAfresh() {
    for (const panel of charts) Plotly.purge(panel);
    hasTips = false;
    drawBoth();
  }

  function begin() {
    if (seen) return;
    seen = true;
    watcher.disconnect();
    drawBoth();
  }

  const watcher = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) begin(); }, {rootMargin: "300px"});
  makeRoom(drawer.compare());
  watcher.observe(charts[0]);
  addEventListener("beforeprint", begin);
  repaints.push(drawBoth);
  byId("order").addEventListener("change", drawBoth);
  byId("more").addEventListener("click", drawBoth);
  whenWidthChanges(byId("compared"), drawAfresh);
}
