// Before the page is first painted: close the cards and show what needs scripts, so that nothing jumps later.
document.documentElement.classList.add("works");
for (const card of document.querySelectorAll(".card")) card.open = false;
