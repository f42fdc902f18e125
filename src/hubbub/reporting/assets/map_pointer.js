// Where the pointer is on the map, and what a zoom changes besides the cells.
const REST_MILLISECONDS = 700; // a pointer that stays that long is announced; while it moves, nothing is
function startMapPointer() {
  chart.on("plotly_relayout", (change) => {
    if (!Object.keys(change).some((name) => /^[xy]axis\.(range|autorange)/.test(name))) return;
    const {xaxis, yaxis} = chart._fullLayout;
    zoomedMap = {x: [...xaxis.range], y: [...yaxis.range]};
    draw();
  });
  const where = byId("where");
  if (!where) return;
  let resting = 0;
  const leave = () => {
    clearTimeout(resting);
    where.textContent = "";
  };
  chart.addEventListener("pointermove", ({clientX, clientY}) => {
    const plane = chart.querySelector(".nsewdrag")?.getBoundingClientRect();
    if (!plane || clientX < plane.left || clientX > plane.right || clientY < plane.top || clientY > plane.bottom) return leave();
    const {x, y} = zoomedMap ?? wholeMap;
    const east = x[0] + ((clientX - plane.left) / plane.width) * (x[1] - x[0]);
    const north = y[1] - ((clientY - plane.top) / plane.height) * (y[1] - y[0]);
    where.textContent = pointText(east, north);
    clearTimeout(resting);
    resting = setTimeout(() => {
      const place = map.at({x: east, y: north});
      byId("where-said").textContent = place >= 0 ? describe(place).map(([, said]) => said).join("; ") : where.textContent;
    }, REST_MILLISECONDS);
  });
  chart.addEventListener("pointerleave", leave);
}
