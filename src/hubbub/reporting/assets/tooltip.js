// One value in words: beside the pointer, and under the chart for keyboard users.
function describeValue(place) {
  const said = [["name", titleOf(place)], ["", `${percent(estimate[place])} (${between(low[place], high[place])})`]];
  if (isExtended(place)) said.push(["", `extended to the estimate; confidence interval: ${between(confidence.low[place], confidence.high[place])}`]);
  if (noisy) said.push(["", `noisy: ${percent(noisy[place])}`]);
  return said;
}

function showTip(lines, x, y) {
  const tip = byId("tip");
  tip.replaceChildren(...lines.map(([name, said]) => element("span", {class: name, dir: "auto"}, said)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 4))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
}

const hideTip = () => { byId("tip").hidden = true; };
