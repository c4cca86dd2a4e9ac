// Headers. A list is one string, "name:value\n…" with names in lower case, as it crosses to and
// from the host; it is taken apart into a map only when somebody asks for a header or changes one.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { illegal } = boot;
  const { headerGet, headersOf, wrap } = boot.host;
  const { HEADERS } = boot.Kind;

  // Names met before, and their lower case: a regular expression costs more.
  const NAMES = boot.newMap();
  const MAX_NAMES = 256;
  const MAX_NAME_LENGTH = 64;
  const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]*$/;
  const normalName = (name) => {
    const known = NAMES.get(name);
    if (known !== undefined) return known;
    const text = `${name}`;
    if (!TOKEN.test(text)) throw new TypeError("Invalid header name.");
    const lower = text.toLowerCase();
    if (NAMES.size < MAX_NAMES && text.length <= MAX_NAME_LENGTH) NAMES.set(text, lower);
    return lower;
  };
  const isPlain = (text) => {
    const { length } = text;
    if (length === 0) return true;
    if (text.charCodeAt(0) <= 32 || text.charCodeAt(length - 1) <= 32) return false;
    return !text.includes("\n") && !text.includes("\r") && !text.includes("\0");
  };
  const normalValue = (value) => {
    if (typeof value === "string" && isPlain(value)) return value.toWellFormed();
    const text = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    if (/[\0\n\r]/.test(text)) throw new TypeError("Invalid header value.");
    return text.toWellFormed();
  };

  // A list of headers as a record. Either `raw` is the truth and `map` null, or the other way
  // round. In the map a value is a string, or an array of strings for set-cookie.
  class HeaderList {
    constructor(raw = "") {
      this.raw = raw;
    }
    open() {
      if (this.map === null) {
        this.map = boot.newMap();
        for (const line of this.raw.split("\n")) {
          const colon = line.indexOf(":");
          if (colon > 0) this.add(line.slice(0, colon).toLowerCase(), line.slice(colon + 1));
        }
        this.raw = "";
      }
      return this.map;
    }
    add(name, value) {
      const known = this.map.get(name);
      if (name === "set-cookie") {
        if (known === undefined) this.map.set(name, [value]);
        else known.push(value);
      } else {
        this.map.set(name, known === undefined ? value : `${known}, ${value}`);
      }
    }
    // Whether the name is there, without taking the list apart.
    has(name) {
      if (this.map !== null) return this.map.has(name);
      if (this.raw === "") return false;
      return this.raw.startsWith(`${name}:`) || this.raw.includes(`\n${name}:`);
    }
    get(name) {
      if (this.map === null) {
        const found = headerGet(this.raw, name);
        if (found !== undefined) return found;
      }
      const value = this.open().get(name);
      if (value === undefined) return null;
      return name === "set-cookie" ? value.join(", ") : value;
    }
    append(name, value) {
      if (this.sorted !== null) this.sorted = null; // not to make it a property of its own
      if (name === "") this.open(); // such a header never leaves the guest
      if (this.map === null) this.raw += `${name}:${value}\n`;
      else this.add(name, value);
    }
    set(name, value) {
      this.sorted = null;
      if (this.map === null && !this.has(name)) this.raw += `${name}:${value}\n`;
      else this.open().set(name, name === "set-cookie" ? [value] : value);
    }
    delete(name) {
      this.sorted = null;
      if (this.has(name)) this.open().delete(name);
    }
    cookies() {
      return this.open().get("set-cookie") ?? [];
    }
    copy() {
      return new HeaderList(this.toRaw());
    }
    toRaw() {
      if (this.map === null) return this.raw;
      let raw = "";
      for (const [name, value] of this.map) {
        if (name === "set-cookie") for (const one of value) raw += `set-cookie:${one}\n`;
        else if (name !== "") raw += `${name}:${value}\n`;
      }
      return raw;
    }
    // Sorted by name, combined, each cookie on its own: what iteration shows.
    pairs() {
      if (this.sorted === null) {
        const sorted = [];
        for (const [name, value] of this.open()) {
          if (name === "set-cookie") for (const one of value) sorted.push([name, one]);
          else sorted.push([name, value]);
        }
        this.sorted = sorted.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      }
      return this.sorted;
    }
  }

  boot.record(HeaderList, { map: null, sorted: null, immutable: false });

  class Members {
    static name = "Headers";
    append(name, value) {
      need(arguments, 2, "append");
      writable(this).append(normalName(name), normalValue(value));
    }
    delete(name) {
      need(arguments, 1, "delete");
      const list = writable(this);
      list.delete(normalName(name));
    }
    get(name) {
      need(arguments, 1, "get");
      return required(this).get(normalName(name));
    }
    // Workers' older spelling of getSetCookie.
    getAll(name) {
      if (normalName(name) !== "set-cookie") {
        throw new TypeError('getAll() can only be used with the header name "Set-Cookie".');
      }
      return [...required(this).cookies()];
    }
    getSetCookie() {
      return [...required(this).cookies()];
    }
    has(name) {
      need(arguments, 1, "has");
      return required(this).has(normalName(name));
    }
    set(name, value) {
      need(arguments, 2, "set");
      writable(this).set(normalName(name), normalValue(value));
    }
  }

  const need = (given, count, method) => {
    if (given.length >= count) return;
    throw new TypeError(
      `Failed to execute '${method}' on 'Headers': parameter ${given.length + 1} is not of type 'string'.`,
    );
  };
  const required = (value) => {
    const list = headersOf(value);
    if (list === undefined) throw illegal();
    return list;
  };
  const writable = (value) => {
    const list = required(value);
    if (list.immutable) throw new TypeError("Can't modify immutable headers.");
    return list;
  };

  // A new list from what a constructor takes: Headers, a sequence of pairs or a record.
  boot.headersFrom = (init) => {
    if (init === undefined || init === null) return new HeaderList();
    const other = headersOf(init);
    if (other !== undefined) return other.copy();
    if (!boot.isObject(init)) {
      throw new TypeError(
        "Failed to construct 'Headers': constructor parameter 1 is not of type 'Headers or Sequence or " +
          "object'.",
      );
    }
    const list = new HeaderList();
    const message =
      "To initialize a Headers object from a sequence, each inner sequence must have exactly two " +
      "elements.";
    const pairs = boot.pairsOfSequence(init, message);
    if (pairs !== undefined) {
      for (const [name, value] of pairs) list.append(normalName(name), normalValue(value));
    } else {
      for (const name of Object.keys(init)) list.append(normalName(name), normalValue(init[name]));
    }
    return list;
  };
  // The wrapper is kept beside the list by whoever owns it (Request, Response).
  boot.wrapHeaders = (list) => wrap(HEADERS, list);
  boot.HeaderList = HeaderList;
  const Headers = boot.defineClass(HEADERS, Members, 0, (init) => boot.headersFrom(init));
  boot.makeIterable(Headers, (value) => required(value).pairs());
  boot.expose(Headers);
})();
