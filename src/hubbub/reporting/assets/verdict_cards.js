// Verdict cards (closed by before_first_paint.js) open to show the reasons. On paper all of them are open.
function startVerdicts() {
  const cards = [...document.querySelectorAll(".card")];
  let unfolded = null;
  repaints.push(() => {
    if (printing && unfolded === null) {
      unfolded = cards.filter((card) => card.open);
      for (const card of cards) card.open = true;
    } else if (!printing && unfolded !== null) {
      for (const card of cards) card.open = unfolded.includes(card);
      unfolded = null;
    }
  });
}
