// Request.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { requestOf, wrap } = boot.host;
  const { REQUEST } = boot.Kind;
  const { cloneBody, extractBody, isUsed, newBody } = boot.body;

  const METHODS = boot.newSet(
    (
      "GET HEAD POST PUT DELETE PATCH PURGE OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH " +
      "SEARCH UNLOCK ACL REPORT MKACTIVITY CHECKOUT MERGE MSEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE " +
      "QUERY BAN"
    ).split(" "),
  );
  const REDIRECTS = ["follow", "manual", "error"];
  const CACHES = ["no-store", "no-cache", "reload"];

  class RequestRecord {
    constructor(method, url, headers, body) {
      this.method = method;
      this.url = url;
      this.headers = headers;
      this.body = body;
    }
  }
  // A request of the host's. What all of them share is on the prototype.
  class IncomingRecord {
    constructor(method, url, headers, body) {
      this.method = method;
      this.url = url;
      this.headers = headers;
      this.body = body;
    }
  }
  const DEFAULTS = {
    hrefKnown: false, // `url` is in its normal form
    headersObject: null,
    redirect: "follow",
    signal: null, // an abort state; null until asked for, when none was given
    cache: undefined,
    cf: undefined,
    incoming: false, // from the host
  };
  boot.record(RequestRecord, DEFAULTS);
  boot.record(IncomingRecord, {
    ...DEFAULTS,
    redirect: "manual", // as on Workers: a request that is passed on shows redirects
    incoming: true,
  });
  const copyRecord = (record, body) => {
    const copy = new (record.incoming ? IncomingRecord : RequestRecord)();
    const headers = record.headers.copy();
    return Object.assign(copy, record, { headers, headersObject: null, body });
  };
  const newRecord = (method, url, headers, body) => new RequestRecord(method, url, headers, body);

  class Members extends boot.Body {
    static name = "Request";
    get method() {
      return required(this).method;
    }
    get url() {
      return hrefOf(required(this));
    }
    get headers() {
      return boot.headersObject(required(this));
    }
    get redirect() {
      return required(this).redirect;
    }
    get signal() {
      return boot.wrapSignal(signalOf(required(this)));
    }
    get cf() {
      const record = required(this);
      if (record.incoming) record.cf ??= {}; // nothing is known of where it came from
      return record.cf;
    }
    get cache() {
      return required(this).cache;
    }
    get integrity() {
      required(this);
      return "";
    }
    get keepalive() {
      required(this);
      return false;
    }
    clone() {
      const record = required(this);
      const body = cloneBody(record.body);
      return wrap(REQUEST, copyRecord(record, body));
    }
  }

  const required = (value) => {
    const record = requestOf(value);
    if (record === undefined) throw boot.illegal();
    return record;
  };
  const hrefOf = (record) => {
    if (!record.hrefKnown) {
      record.hrefKnown = true;
      record.url = boot.parseHref(record.url) ?? record.url;
    }
    return record.url;
  };
  const signalOf = (record) => (record.signal ??= boot.newAbortState());

  const fromRequest = (other, replacesBody) => {
    const record = newRecord(other.method, hrefOf(other), other.headers.copy(), null);
    record.hrefKnown = true;
    record.redirect = other.redirect;
    record.signal = other.signal;
    record.cache = other.cache;
    record.cf = other.cf;
    if (!replacesBody && other.body !== null) {
      if (isUsed(other.body)) {
        throw new TypeError("Cannot reconstruct a Request with a used body.");
      }
      record.body = passOn(other.body);
    }
    return record;
  };
  // The new record takes over the body; the old one counts as used.
  const passOn = (body) => {
    const { text, bytes, stream } = boot.body.takeBody(body);
    if (stream !== null) boot.detachStream(stream);
    return newBody(text, bytes, stream);
  };

  const recordFrom = (input, init) => {
    const other = requestOf(input);
    const dictionary = requestOf(init);
    const replacesBody =
      dictionary !== undefined || (init?.body !== undefined && init.body !== null);
    let record;
    if (other !== undefined) {
      record = fromRequest(other, replacesBody);
    } else {
      const text = `${input}`;
      const href = boot.parseHref(text);
      if (href === undefined) throw new TypeError(`Invalid URL: ${text}`);
      record = newRecord("GET", href, null, null);
      record.hrefKnown = true;
    }
    if (dictionary !== undefined) applyRequest(record, dictionary);
    else if (init !== undefined && init !== null) applyInit(record, init);
    record.headers ??= new boot.HeaderList();
    return record;
  };
  // A Request as the second argument counts as a dictionary of its properties.
  const applyRequest = (record, other) => {
    record.method = other.method;
    record.redirect = other.redirect;
    record.cache = other.cache;
    record.cf = other.cf;
    record.signal = other.signal;
    record.headers = other.headers.copy();
    if (other.body !== null) {
      record.body = passOn(other.body);
    }
  };
  const applyInit = (record, init) => {
    const { method, headers, signal, body, redirect, cache, integrity, cf } = init;
    if (integrity !== undefined && `${integrity}` !== "") {
      throw new TypeError(
        "Subrequest integrity checking is not implemented. The integrity option must be either " +
          "undefined or an empty string.",
      );
    }
    if (method !== undefined) record.method = normalMethod(method);
    if (headers !== undefined) record.headers = boot.headersFrom(headers);
    if (signal !== undefined) record.signal = signalFrom(signal);
    if (cf !== undefined) record.cf = cf;
    if (redirect !== undefined) record.redirect = normalRedirect(redirect);
    if (cache !== undefined) record.cache = normalCache(cache);
    if (body !== undefined && body !== null) {
      const extracted = extractBody(body);
      record.body = extracted.body;
      record.headers ??= new boot.HeaderList();
      if (extracted.type !== null && !record.headers.has("content-type")) {
        record.headers.append("content-type", extracted.type);
      }
    }
    const changed = method !== undefined || body !== undefined;
    const bodiless = record.method === "GET" || record.method === "HEAD";
    if (changed && bodiless && record.body !== null) {
      throw new TypeError("Request with a GET or HEAD method cannot have a body.");
    }
  };
  const normalMethod = (method) => {
    const text = `${method}`;
    const upper = text.toUpperCase();
    if (!METHODS.has(upper)) throw new TypeError(`Invalid HTTP method string: ${text}`);
    return upper;
  };
  const normalRedirect = (redirect) => {
    const text = `${redirect}`;
    if (REDIRECTS.includes(text)) return text;
    throw new TypeError(
      'Invalid redirect value, must be one of "follow" or "manual" ("error" won\'t be implemented ' +
        'since it does not make sense at the edge; use "manual" and check the response status code).',
    );
  };
  const normalCache = (cache) => {
    const text = `${cache}`;
    if (CACHES.includes(text)) return text;
    throw new TypeError(`Unsupported cache mode: ${text}`);
  };
  const signalFrom = (signal) => {
    if (signal === null) return null;
    const state = boot.signalState(signal);
    if (state === undefined) throw new TypeError("The request's signal is not an AbortSignal.");
    return state;
  };

  // The record of the host's request. `text` is "fetch\nMETHOD URL\nname:value\n…".
  boot.incomingRecord = (text, extra, state) => {
    const start = text.indexOf("\n") + 1;
    const space = text.indexOf(" ", start);
    let end = text.indexOf("\n", space);
    if (end === -1) end = text.length;
    const headers = new boot.HeaderList(boot.fromWire(text.slice(end + 1)));
    headers.immutable = true;
    let body = null;
    if (typeof extra === "number") body = newBody(null, null, boot.inboundReadable(extra, state));
    else if (extra !== undefined) body = newBody(null, extra, null);
    const url = text.slice(space + 1, end);
    const record = new IncomingRecord(text.slice(start, space), url, headers, body);
    if (state !== undefined) {
      state.record = record;
      if (state.canceled) boot.signalAbort(signalOf(record), boot.disconnected());
    }
    return record;
  };
  boot.requestRecord = (input, init) => recordFrom(input, init);
  boot.requestSignal = signalOf;
  const Request = boot.defineClass(REQUEST, Members, 1, recordFrom);
  boot.Request = Request;
  boot.expose(Request);
})();
