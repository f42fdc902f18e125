// Small helpers for building a page: texts are inserted as texts, and inputs have no name, so that no form holds them.

/** Return a new element with properties, and children that are elements or texts. */
export function element(kind, properties = {}, ...children) {
  const made = document.createElement(kind);
  for (const [name, content] of Object.entries(properties)) {
    if (name in made) made[name] = content;
    else made.setAttribute(name, content);
  }
  made.append(...children);
  return made;
}

/** Return an input that browsers neither remember, restore, correct nor send to a spelling service. */
export function privateInput(type, properties = {}) {
  const quiet = { autocomplete: "off", autocapitalize: "off", spellcheck: false };
  const managers = { "data-1p-ignore": "", "data-lpignore": "true" }; // of passwords, which would offer to keep it
  const input = element("input", { type, ...quiet, ...managers, ...properties });
  input.setAttribute("autocorrect", "off"); // as a property it is true or false, where there is one
  return input;
}

/** Return a text that keeps its own direction of writing. */
export const isolated = (text) => element("bdi", {}, String(text));

let count = 0;

/** Return a name for an element that others refer to. */
export const newId = () => `part-${++count}`;

export const show = (id, visible = true) => (document.getElementById(id).hidden = !visible);
