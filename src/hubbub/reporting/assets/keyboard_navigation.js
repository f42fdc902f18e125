// Keyboard navigation through the chart: one value or part after the other, on maps of values also up and down.
function startWalk() {
  const walk = byId("walk");
  let order;

  // A part is stood for by its first value.
  function arrange() {
    order = showsParts() ? parts.map(({members}) => members[0]) : drawer.walk();
    walk.max = String(order.length - 1);
    if (marked >= 0) walk.value = String(showsParts() ? partOf[marked] : order.indexOf(marked));
  }

  const isChosen = (place) => (showsParts() ? isPicked(parts[partOf[place]]) : selected.has(place));

  function say() {
    const place = order[Number(walk.value)];
    const [[, name], ...rest] = describe(place);
    byId("reading").replaceChildren(isolated(name), `: ${rest.map(([, said]) => said).join("; ")}${isChosen(place) ? "; selected" : ""}`);
    walk.setAttribute("aria-valuetext", byId("reading").textContent);
  }

  walk.addEventListener("focus", () => {
    arrange();
    mark(order[Number(walk.value)]);
  });
  walk.addEventListener("input", () => mark(order[Number(walk.value)]));
  walk.addEventListener("keydown", (event) => {
    if (event.key === " " || event.key === "Enter") {
      event.preventDefault();
      toggleShown(order[Number(walk.value)]);
    } else if (kind === "map" && !showsParts() && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      const step = event.key === "ArrowUp" ? columns : -columns;
      const place = positions[numberOf(order[Number(walk.value)]) + step] ?? -1;
      if (place < 0) return;
      walk.value = String(place);
      mark(place);
    }
  });
  onChange(() => {
    arrange();
    say();
  });
  arrange();
  say();
}
