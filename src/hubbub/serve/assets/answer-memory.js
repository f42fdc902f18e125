// What this browser keeps: a report that was drawn and is not confirmed, then only that one was sent. Never the answer.
//
// The drawn report is kept so that nobody can draw again by loading the page anew, and so that a report whose
// acknowledgement was lost is sent again with the same key. It holds nothing that is not sent anyway.

const KEY_LETTERS = 16; // of the digest of a token: several people may use one browser

async function digestOf(text) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("").slice(0, KEY_LETTERS);
}

/** Write to a storage; throw unless it has what was written. Some take everything, and keep nothing. */
function keep(storage, key, text) {
  storage.setItem(key, text);
  if (storage.getItem(key) !== text) throw new Error("not kept");
}

/** Return the browser's storage; null where it is blocked, or forgets. */
export function browserStorage() {
  try {
    const storage = window.localStorage;
    const key = "hubbub-page:try";
    keep(storage, key, "1");
    storage.removeItem(key);
    return storage;
  } catch {
    return null;
  }
}

/** Return the part of a storage that belongs to the person with a token; all of it where there are no tokens. */
export async function personalStorage(storage, token) {
  if (!storage || !token) return storage;
  const person = `:${await digestOf(token)}`;
  return {
    getItem: (key) => storage.getItem(key + person),
    setItem: (key, text) => storage.setItem(key + person, text),
  };
}

export class AnswerMemory {
  #storage;
  #key;
  #state = { drawn: null, sent: 0 }; // for this page, where nothing can be kept

  constructor(storage, fingerprint) {
    this.#storage = storage;
    this.#key = `hubbub-page:${fingerprint}`; // the client's own keys begin with hubbub:
  }

  get isKept() {
    return this.#storage !== null;
  }

  /** Return the report that waits to be sent (null if there is none), and how many were sent. */
  read() {
    let content = null;
    try {
      content = JSON.parse(this.#storage?.getItem(this.#key) ?? "null");
    } catch {
      // not ours, or no longer readable: what this page knows itself counts
    }
    const { drawn, sent } = content ?? {};
    const isReport = drawn && ["mechanism", "output", "key"].every((name) => typeof drawn[name] === "string");
    if (content && Number.isInteger(sent)) this.#state = { drawn: isReport ? drawn : null, sent };
    return this.#state;
  }

  #write(state) {
    this.#state = state;
    try {
      if (this.#storage) keep(this.#storage, this.#key, JSON.stringify(state));
    } catch {
      this.#storage = null; // full, or blocked meanwhile
    }
  }

  keepDrawn({ mechanism, output, key }) {
    this.#write({ drawn: { mechanism, output, key }, sent: this.read().sent });
  }

  /** Forget the report itself once it is stored. */
  keepSent() {
    this.#write({ drawn: null, sent: this.read().sent + 1 });
  }

  /** Let another person answer. */
  forget() {
    this.#write({ drawn: null, sent: 0 });
  }
}
