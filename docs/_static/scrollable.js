// What scrolls sideways can be reached and scrolled with the keyboard, too.
const makeReachable = () => {
  for (const one of document.querySelectorAll("pre, .table-wrapper, div.math")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
};
addEventListener("DOMContentLoaded", makeReachable);
addEventListener("load", makeReachable);
addEventListener("resize", makeReachable);
