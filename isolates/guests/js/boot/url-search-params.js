// URLSearchParams, and application/x-www-form-urlencoded in both directions.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { illegal } = boot;
  const { utf8Encode, utf8Decode } = boot.host;

  // ---- the encoding ----

  const hexValue = (code) => {
    if (code >= 48 && code <= 57) return code - 48;
    const lower = code | 32;
    return lower >= 97 && lower <= 102 ? lower - 87 : -1;
  };
  const percentDecode = (text) => {
    const bytes = utf8Encode(text);
    let length = 0;
    for (let i = 0; i < bytes.length; i++) {
      let byte = bytes[i];
      if (byte === 37 && i + 2 < bytes.length) {
        const high = hexValue(bytes[i + 1]);
        const low = hexValue(bytes[i + 2]);
        if (high >= 0 && low >= 0) {
          byte = high * 16 + low;
          i += 2;
        }
      }
      bytes[length++] = byte;
    }
    return utf8Decode(bytes.subarray(0, length), false, true);
  };
  const decodePart = (text) => {
    const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
    return spaced.includes("%") ? percentDecode(spaced) : spaced;
  };
  boot.parseUrlEncoded = (text) => {
    const pairs = [];
    for (const part of text.split("&")) {
      if (part === "") continue;
      const equals = part.indexOf("=");
      if (equals === -1) pairs.push([decodePart(part), ""]);
      else pairs.push([decodePart(part.slice(0, equals)), decodePart(part.slice(equals + 1))]);
    }
    return pairs;
  };

  const ESCAPES = { "!": "%21", "'": "%27", "(": "%28", ")": "%29", "~": "%7E", "%20": "+" };
  const encodePart = (text) =>
    encodeURIComponent(text).replace(/[!'()~]|%20/g, (found) => ESCAPES[found]);
  boot.serializeUrlEncoded = (pairs) =>
    pairs.map(([name, value]) => `${encodePart(name)}=${encodePart(value)}`).join("&");

  // ---- the class ----

  let stateOf;
  class URLSearchParams {
    #state;
    static {
      stateOf = (value) => {
        if (boot.isObject(value) && #state in value) return value.#state;
        throw illegal();
      };
    }
    constructor(init = "") {
      if (init === boot.INTERNAL) {
        this.#state = arguments[1];
        return;
      }
      this.#state = { pairs: parseInit(init), update: undefined };
    }
    get size() {
      return stateOf(this).pairs.length;
    }
    append(name, value) {
      requireArguments(arguments, 2);
      const state = stateOf(this);
      state.pairs.push([boot.usvString(name), boot.usvString(value)]);
      changed(state);
    }
    delete(name, value = undefined) {
      requireArguments(arguments, 1);
      const state = stateOf(this);
      const matches = matcher(name, value);
      state.pairs = state.pairs.filter((pair) => !matches(pair));
      changed(state);
    }
    get(name) {
      requireArguments(arguments, 1);
      const wanted = boot.usvString(name);
      const found = stateOf(this).pairs.find((pair) => pair[0] === wanted);
      return found === undefined ? null : found[1];
    }
    getAll(name) {
      requireArguments(arguments, 1);
      const wanted = boot.usvString(name);
      return stateOf(this)
        .pairs.filter((pair) => pair[0] === wanted)
        .map((pair) => pair[1]);
    }
    has(name, value = undefined) {
      requireArguments(arguments, 1);
      return stateOf(this).pairs.some(matcher(name, value));
    }
    set(name, value) {
      requireArguments(arguments, 2);
      const state = stateOf(this);
      const wanted = boot.usvString(name);
      const text = boot.usvString(value);
      const index = state.pairs.findIndex((pair) => pair[0] === wanted);
      if (index === -1) {
        state.pairs.push([wanted, text]);
      } else {
        state.pairs[index] = [wanted, text];
        state.pairs = state.pairs.filter((pair, at) => at <= index || pair[0] !== wanted);
      }
      changed(state);
    }
    sort() {
      const state = stateOf(this);
      // By code units; Array.prototype.sort is stable.
      state.pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      changed(state);
    }
    toString() {
      return boot.serializeUrlEncoded(stateOf(this).pairs);
    }
  }

  const requireArguments = (given, count) => {
    if (given.length < count) {
      throw new TypeError(`${count} arguments needed, but only ${given.length} present.`);
    }
  };
  const matcher = (name, value) => {
    const wanted = boot.usvString(name);
    if (value === undefined) return (pair) => pair[0] === wanted;
    const text = boot.usvString(value);
    return (pair) => pair[0] === wanted && pair[1] === text;
  };
  const parseInit = (init) => {
    if (boot.isObject(init)) {
      const message = "Invalid URL search params sequence.";
      const pairs = boot.pairsOfSequence(init, message);
      if (pairs !== undefined) {
        return pairs.map(([name, value]) => [boot.usvString(name), boot.usvString(value)]);
      }
      const record = boot.newMap();
      for (const key of Reflect.ownKeys(init)) {
        if (!Object.prototype.propertyIsEnumerable.call(init, key)) continue;
        record.set(boot.usvString(key), boot.usvString(init[key]));
      }
      return [...record];
    }
    const text = boot.usvString(init);
    return boot.parseUrlEncoded(text.startsWith("?") ? text.slice(1) : text);
  };
  const changed = (state) => {
    if (state.update !== undefined) state.update(boot.serializeUrlEncoded(state.pairs));
  };

  boot.makeIterable(URLSearchParams, (value) => stateOf(value).pairs);
  // The searchParams of a URL: `update(query)` is called when they change.
  boot.newSearchParams = (query, update) => {
    const state = { pairs: boot.parseUrlEncoded(query), update };
    const params = new URLSearchParams(boot.INTERNAL, state);
    const reload = (changedQuery) => {
      state.pairs = boot.parseUrlEncoded(changedQuery);
    };
    return { params, reload };
  };
  boot.searchParamsText = (value) =>
    value instanceof URLSearchParams ? boot.serializeUrlEncoded(stateOf(value).pairs) : undefined;
  boot.expose(URLSearchParams);
})();
