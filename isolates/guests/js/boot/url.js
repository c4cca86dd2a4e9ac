// URL over the native parser: a href, and offsets of its parts.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { illegal } = boot;
  const { urlOf, urlParse, urlSet, urlCanParse, urlOrigin, wrap } = boot.host;
  const { Kind } = boot;

  // Indices into the native record.
  const [HREF, PROTOCOL_END, USERNAME_END, HOST_START, HOST_END, PORT, PATHNAME, SEARCH, HASH] =
    Array(9).keys();

  class UrlState {
    constructor(record) {
      this.record = record;
    }
  }
  boot.record(UrlState, { search: null });
  const stateOf = (value) => {
    const state = urlOf(value);
    if (state === undefined) throw illegal();
    return state;
  };

  class Members {
    static name = "URL";
    static canParse(url, base = undefined) {
      return urlCanParse(`${url}`, base === undefined ? undefined : `${base}`);
    }
    static parse(url, base = undefined) {
      const record = parse(url, base);
      return record === null ? null : wrap(Kind.URL, new UrlState(record));
    }

    get href() {
      return stateOf(this).record[HREF];
    }
    set href(value) {
      const state = stateOf(this);
      const record = urlParse(`${value}`, undefined);
      if (record === null) {
        throw new TypeError(
          "Failed to set the 'href' property on 'URL': the provided value is not of type 'valid URL " +
            "string'.",
        );
      }
      state.record = record;
      reloadSearch(state);
    }
    get origin() {
      const { record } = stateOf(this);
      switch (part(record, 0, record[PROTOCOL_END])) {
        case "http:":
        case "https:":
          return `${part(record, 0, record[PROTOCOL_END])}//${host(record)}`;
        default:
          return urlOrigin(record[HREF]);
      }
    }
    get protocol() {
      const { record } = stateOf(this);
      return part(record, 0, record[PROTOCOL_END]);
    }
    set protocol(value) {
      change(this, "protocol", value);
    }
    get username() {
      const { record } = stateOf(this);
      const start = record[PROTOCOL_END] + 2;
      return start < record[USERNAME_END] ? part(record, start, record[USERNAME_END]) : "";
    }
    set username(value) {
      change(this, "username", value);
    }
    get password() {
      const { record } = stateOf(this);
      return record[HOST_START] > record[USERNAME_END]
        ? part(record, record[USERNAME_END] + 1, record[HOST_START])
        : "";
    }
    set password(value) {
      change(this, "password", value);
    }
    get host() {
      return host(stateOf(this).record);
    }
    set host(value) {
      change(this, "host", value);
    }
    get hostname() {
      const { record } = stateOf(this);
      return part(record, hostStart(record), record[HOST_END]);
    }
    set hostname(value) {
      change(this, "hostname", value);
    }
    get port() {
      const port = stateOf(this).record[PORT];
      return port === -1 ? "" : `${port}`;
    }
    set port(value) {
      change(this, "port", value);
    }
    get pathname() {
      const { record } = stateOf(this);
      const end = record[SEARCH] === -1 ? record[HASH] : record[SEARCH];
      return part(record, record[PATHNAME], end);
    }
    set pathname(value) {
      change(this, "pathname", value);
    }
    get search() {
      return search(stateOf(this).record);
    }
    set search(value) {
      const state = change(this, "search", value);
      reloadSearch(state);
    }
    get hash() {
      const { record } = stateOf(this);
      if (record[HASH] === -1) return "";
      const hash = part(record, record[HASH], -1);
      return hash === "#" ? "" : hash;
    }
    set hash(value) {
      change(this, "hash", value);
    }
    get searchParams() {
      const state = stateOf(this);
      state.search ??= boot.newSearchParams(search(state.record).slice(1), (query) => {
        state.record = urlSet(state.record[HREF], "search", query);
      });
      return state.search.params;
    }
    toString() {
      return stateOf(this).record[HREF];
    }
    toJSON() {
      return stateOf(this).record[HREF];
    }
  }

  // Most URLs that are parsed are that of the request, which was parsed to be read. No record is
  // ever changed.
  let latest = [undefined];
  const parse = (url, base) => {
    if (base === undefined && url === latest[HREF]) return latest;
    return urlParse(`${url}`, base === undefined ? undefined : `${base}`);
  };
  // An end of -1 is "not there": up to the end of the href.
  const part = (record, start, end) =>
    end === -1 ? record[HREF].slice(start) : record[HREF].slice(start, end);
  const hostStart = (record) => {
    const start = record[HOST_START];
    return record[HOST_END] > start && record[HREF][start] === "@" ? start + 1 : start;
  };
  const host = (record) => {
    const start = hostStart(record);
    return start === record[HOST_END] ? "" : part(record, start, record[PATHNAME]);
  };
  const search = (record) => {
    if (record[SEARCH] === -1) return "";
    const text = part(record, record[SEARCH], record[HASH]);
    return text === "?" ? "" : text;
  };
  const change = (url, which, value) => {
    const state = stateOf(url);
    state.record = urlSet(state.record[HREF], which, `${value}`);
    return state;
  };
  const reloadSearch = (state) => {
    if (state.search !== null) state.search.reload(search(state.record).slice(1));
  };

  // The normal form of an absolute URL, or undefined.
  boot.parseHref = (text) => {
    const record = urlParse(text, undefined);
    if (record === null) return undefined;
    latest = record;
    return record[HREF];
  };
  const URL = boot.defineClass(Kind.URL, Members, 1, function (url, base) {
    if (arguments.length === 0) throw new TypeError("URL needs an argument.");
    const record = parse(url, base);
    if (record === null) throw new TypeError("Invalid URL string.");
    return new UrlState(record);
  });
  boot.URL = URL;
  boot.expose(URL);
})();
