// Elements of the page. Texts are inserted as text: neither this script nor a later one reads a label as HTML.
const byId = (id) => document.getElementById(id);

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

// A label: isolated, so that text written from right to left does not rearrange what is around it.
const isolated = (text) => element("bdi", null, text);

// A number for people, with all of its digits for programs.
const figure = (value, said) => element("data", {value: String(value)}, said);
