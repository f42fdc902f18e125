// Keyboard navigation through the chart: one value after the other, on maps also up and down.
function startWalk() {
  const walk = byId("walk");
  walk.max = String(count - 1);
  let order = drawer.walk();

  function say() {
    const place = order[Number(walk.value)];
    const [[, name], ...rest] = describeValue(place);
    byId("reading").replaceChildren(isolated(name), `: ${rest.map(([, said]) => said).join("; ")}${selected.has(place) ? "; selected" : ""}`);
    walk.setAttribute("aria-valuetext", byId("reading").textContent);
  }

  walk.addEventListener("focus", () => {
    order = drawer.walk();
    if (marked >= 0) walk.value = String(order.indexOf(marked));
    mark(order[Number(walk.value)]);
  });
  walk.addEventListener("input", () => mark(order[Number(walk.value)]));
  walk.addEventListener("keydown", (event) => {
    if (event.key === " " || event.key === "Enter") {
      event.preventDefault();
      toggle(order[Number(walk.value)]);
    } else if (kind === "map" && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      const step = event.key === "ArrowUp" ? columns : -columns;
      const place = positions[numberOf(order[Number(walk.value)]) + step] ?? -1;
      if (place < 0) return;
      walk.value = String(place);
      mark(place);
    }
  });
  onChange(() => {
    order = drawer.walk();
    if (marked >= 0) walk.value = String(order.indexOf(marked));
    say();
  });
  say();
}
