// Before the first picture of the page: fold what unfolds, show what needs scripts, so that nothing jumps when they are ready.
document.documentElement.classList.add("works");
for (const card of document.querySelectorAll(".card")) card.open = false;
