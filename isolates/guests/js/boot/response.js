// Response.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { responseOf, wrap } = boot.host;
  const { RESPONSE } = boot.Kind;
  const { cloneBody, extractBody, newBody } = boot.body;

  const REASONS = boot.newMap(
    Object.entries({
      200: "OK",
      201: "Created",
      202: "Accepted",
      203: "Non-Authoritative Information",
      204: "No Content",
      205: "Reset Content",
      206: "Partial Content",
      207: "Multi-Status",
      208: "Already Reported",
      226: "IM Used",
      300: "Multiple Choices",
      301: "Moved Permanently",
      302: "Found",
      303: "See Other",
      304: "Not Modified",
      305: "Use Proxy",
      307: "Temporary Redirect",
      308: "Permanent Redirect",
      400: "Bad Request",
      401: "Unauthorized",
      402: "Payment Required",
      403: "Forbidden",
      404: "Not Found",
      405: "Method Not Allowed",
      406: "Not Acceptable",
      407: "Proxy Authentication Required",
      408: "Request Timeout",
      409: "Conflict",
      410: "Gone",
      411: "Length Required",
      412: "Precondition Failed",
      413: "Payload Too Large",
      414: "URI Too Long",
      415: "Unsupported Media Type",
      416: "Range Not Satisfiable",
      417: "Expectation Failed",
      418: "I'm a teapot",
      421: "Misdirected Request",
      422: "Unprocessable Entity",
      423: "Locked",
      424: "Failed Dependency",
      426: "Upgrade Required",
      428: "Precondition Required",
      429: "Too Many Requests",
      431: "Request Header Fields Too Large",
      451: "Unavailable For Legal Reasons",
      500: "Internal Server Error",
      501: "Not Implemented",
      502: "Bad Gateway",
      503: "Service Unavailable",
      504: "Gateway Timeout",
      505: "HTTP Version Not Supported",
      506: "Variant Also Negotiates",
      507: "Insufficient Storage",
      508: "Loop Detected",
      510: "Not Extended",
      511: "Network Authentication Required",
    }).map(([status, reason]) => [Number(status), reason]),
  );
  const CLASSES = { 2: "Successful", 3: "Redirection", 4: "Client Error", 5: "Server Error" };
  const reasonOf = ({ status, statusText }) =>
    statusText ?? REASONS.get(status) ?? CLASSES[Math.trunc(status / 100)] ?? "";

  const TEXT_HEADER = "content-type:text/plain;charset=UTF-8\n";

  class ResponseRecord {
    constructor(status, statusText, headers, body) {
      this.status = status;
      if (statusText !== null) this.statusText = statusText;
      this.headers = headers;
      this.body = body;
    }
  }
  boot.record(ResponseRecord, {
    statusText: null, // the usual one
    headersObject: null,
    url: "",
    redirected: false,
    type: "default",
    cf: undefined,
  });
  const newRecord = (status, statusText, headers, body) =>
    new ResponseRecord(status, statusText, headers, body);

  class Members extends boot.Body {
    static name = "Response";
    static error() {
      const record = newRecord(0, null, new boot.HeaderList(), null);
      record.type = "error";
      record.headers.immutable = true;
      return wrap(RESPONSE, record);
    }
    static json(data = undefined, init = undefined) {
      // What has no JSON is sent as "undefined", as on Workers.
      const text = `${JSON.stringify(data)}`;
      return wrap(RESPONSE, recordFrom(text, init, "application/json"));
    }
    static redirect(url, status = 302) {
      const code = Math.trunc(Number(status));
      if (![301, 302, 303, 307, 308].includes(code)) {
        throw new RangeError(
          `${code} is not a redirect status code. It must be one of: 301, 302, 303, 307, or 308.`,
        );
      }
      const href = boot.parseHref(`${url}`);
      if (href === undefined) throw new TypeError(`Unable to parse URL: ${url}`);
      const headers = new boot.HeaderList(`location:${href}\n`);
      headers.immutable = true;
      return wrap(RESPONSE, newRecord(code, null, headers, null));
    }
    get status() {
      return required(this).status;
    }
    get statusText() {
      return reasonOf(required(this));
    }
    get headers() {
      return boot.headersObject(required(this));
    }
    get ok() {
      const { status } = required(this);
      return status >= 200 && status < 300;
    }
    get redirected() {
      return required(this).redirected;
    }
    get url() {
      return required(this).url;
    }
    get type() {
      return required(this).type;
    }
    get cf() {
      return required(this).cf;
    }
    get webSocket() {
      required(this);
      return null;
    }
    clone() {
      const record = required(this);
      const body = cloneBody(record.body);
      const headers = record.headers.copy();
      headers.immutable = record.headers.immutable;
      const copy = Object.assign(newRecord(0, null, null, null), record);
      return wrap(RESPONSE, Object.assign(copy, { headers, headersObject: null, body }));
    }
  }

  const required = (value) => {
    const record = responseOf(value);
    if (record === undefined) throw boot.illegal();
    return record;
  };

  const recordFrom = (bodyInit = null, init = undefined, defaultType = undefined) => {
    const other = responseOf(init);
    let record;
    if (other !== undefined) {
      record = newRecord(other.status, other.statusText, other.headers.copy(), null);
      record.cf = other.cf;
    } else if (init === undefined || init === null) {
      record = newRecord(200, null, new boot.HeaderList(), null);
    } else {
      record = recordOfInit(init);
    }
    const { status } = record;
    if (!(status >= 200 && status <= 599)) {
      throw new RangeError(
        "Responses may only be constructed with status codes in the range 200 to 599, inclusive.",
      );
    }
    if (bodyInit !== null && bodyInit !== undefined) setBody(record, bodyInit, defaultType);
    return record;
  };
  const recordOfInit = (init) => {
    if (!boot.isObject(init)) throw new TypeError("The response's init is not an object.");
    const { status, statusText, headers, cf, encodeBody } = init;
    const list = headers === undefined ? new boot.HeaderList() : boot.headersFrom(headers);
    const code = status === undefined ? 200 : Math.trunc(Number(status));
    const reason = statusText === undefined ? null : `${statusText}`;
    if (reason !== null && /[\x00-\x1f]/.test(reason)) throw new TypeError("Invalid statusText");
    if (encodeBody !== undefined && encodeBody !== "manual" && encodeBody !== "automatic") {
      throw new TypeError(`encodeBody: unexpected value: ${encodeBody}`);
    }
    const record = newRecord(code, reason, list, null);
    record.cf = cf;
    return record;
  };
  const setBody = (record, init, defaultType) => {
    const { headers } = record;
    if (typeof init === "string" && record.status === 200 && headers.map === null && headers.raw === "") {
      // Most responses by far, and the shortest way for them.
      record.body = newBody(init.toWellFormed(), null, null);
      headers.raw = defaultType === undefined ? TEXT_HEADER : `content-type:${defaultType}\n`;
      return;
    }
    const { body, type } = extractBody(init);
    const { status } = record;
    if (status === 204 || status === 205 || status === 304) {
      // Workers lets a body of no bytes pass.
      const isEmpty = body.text === "" || body.bytes?.byteLength === 0;
      if (!isEmpty) {
        throw new TypeError(
          "Response with null body status (101, 204, 205, or 304) cannot have a body.",
        );
      }
      return;
    }
    record.body = body;
    const contentType = defaultType ?? type;
    if (contentType !== null && !record.headers.has("content-type")) {
      record.headers.append("content-type", contentType);
    }
  };

  // The record of a Response that was made of a text alone; `true` for one whose text was sent.
  boot.textRecord = (text) => {
    const isSent = text === true;
    const body = newBody(isSent ? "" : text.toWellFormed(), null, null);
    if (isSent) body.used = true;
    return newRecord(200, null, new boot.HeaderList(TEXT_HEADER), body);
  };
  boot.reasonOf = reasonOf;
  boot.responseHead = (record) =>
    boot.toWire(`${record.status} ${reasonOf(record)}\n${record.headers.toRaw()}`);
  // The response of a fetch out of the worker. `body` is undefined, bytes or a stream record.
  boot.newResponse = ({ status, statusText, headers, url, redirected, type }, body) => {
    const list = new boot.HeaderList(headers);
    list.immutable = true;
    const held =
      body === undefined
        ? null
        : body instanceof Uint8Array
          ? newBody(null, body, null)
          : newBody(null, null, body);
    const record = newRecord(status, statusText, list, held);
    record.url = url;
    record.redirected = redirected;
    record.type = type;
    return wrap(RESPONSE, record);
  };
  const Response = boot.defineClass(RESPONSE, Members, 0, (body, init) => recordFrom(body, init));
  boot.Response = Response;
  boot.expose(Response);
})();
