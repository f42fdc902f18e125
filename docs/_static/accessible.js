// What the builder leaves out for those who use a keyboard or a screen reader.

// What scrolls sideways can be reached and scrolled with the keyboard.
const makeReachable = () => {
  for (const one of document.querySelectorAll("pre, .table-wrapper, div.math")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
};

const nameThings = () => {
  for (const one of document.querySelectorAll("p.caption[role=heading]")) one.ariaLevel = "2";
  // Parameters of a signature are no definitions; the text of a picture's link is hidden behind the picture.
  for (const one of document.querySelectorAll("dt.sig dl, dt.sig dd")) one.role = "presentation";
  for (const one of document.querySelectorAll(".sphx-glr-thumbcontainer a")) one.ariaLabel = one.textContent;
};

addEventListener("DOMContentLoaded", () => { nameThings(); makeReachable(); });
addEventListener("load", makeReachable);
addEventListener("resize", makeReachable);
