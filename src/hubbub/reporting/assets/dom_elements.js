// Pieces of the page. Texts go in as texts: nothing here, or after it, reads a label as HTML.
const byId = (id) => document.getElementById(id);

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

// A label of the data: isolated, so that one written from right to left does not disturb what stands around it.
const isolated = (text) => element("bdi", null, text);

// A number for people, with all of its digits for programs.
const figure = (value, said) => element("data", {value: String(value)}, said);
