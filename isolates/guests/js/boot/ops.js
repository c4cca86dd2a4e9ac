// Calls of the host with bodies in both directions: what bindings, fetch and crypto are made of.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { lastOp, onReject, send, utf8Encode } = boot.host;
  const { CANCEL } = boot.ToHost;
  // A record is copied into the outbox whole; larger bodies go in pieces.
  const WHOLE_BYTES = 8 * 1024 * 1024;

  // A body to send, as what is attached to a record: {extra, start}. `start` begins the stream, if
  // it is one; it is to be called once the record is out.
  boot.attach = ({ text, bytes, stream }, state, done = boot.noop) => {
    let whole = bytes;
    if (text !== null) whole = utf8Encode(text);
    if (whole !== null && whole.byteLength <= WHOLE_BYTES)
      return { extra: whole, start: boot.noop };
    const source = whole === null ? stream : boot.readable.readableOfBytes(boot.copyBytes(whole));
    const outbound = boot.newOutbound(state, done);
    return { extra: outbound.id, start: () => outbound.start(source), outbound };
  };

  const contentOf = (body) => {
    if (typeof body === "string") return { text: body.toWellFormed(), bytes: null, stream: null };
    const bytes = boot.bytesOf(body);
    if (bytes !== undefined) return { text: null, bytes, stream: null };
    const stream = boot.streamState(body);
    if (stream === undefined) {
      throw new TypeError(
        "A body is a string, an ArrayBuffer or a view of one, or a ReadableStream.",
      );
    }
    if (stream.disturbed || boot.readable.isLocked(stream)) {
      throw new TypeError("This ReadableStream is disturbed or locked, and cannot be sent.");
    }
    return { text: null, bytes: null, stream };
  };

  // [value, extra] of the host, with a stream's id made into a readable record.
  boot.readAnswer = ([value, extra]) => ({
    value,
    body: typeof extra === "number" ? boot.inboundReadable(extra, boot.context.current) : extra,
  });

  // Resolves with {value, body}; body is undefined, a Uint8Array or a ReadableStream.
  boot.hostCall = async (capability, method, args, body = undefined, signal = undefined) => {
    const abort = signal === undefined ? undefined : boot.signalState(signal);
    if (abort?.aborted) throw abort.reason;
    const { extra, start } =
      body === undefined || body === null
        ? { extra: undefined, start: boot.noop }
        : boot.attach(contentOf(body), boot.context.current);
    const answer = boot.op([capability, method, args], extra);
    const op = lastOp();
    start();
    const read = boot.then(answer, (pair) => {
      const result = boot.readAnswer(pair);
      if (boot.isObject(result.body) && !(result.body instanceof Uint8Array)) {
        const { inbound } = result.body;
        if (abort !== undefined) {
          inbound.forget = boot.onAbort(abort, (reason) => inbound.abort(reason));
          if (abort.aborted) inbound.abort(abort.reason);
        }
        result.body = boot.wrapStream(result.body);
      }
      return result;
    });
    return abort === undefined ? read : boot.abortable(read, op, abort);
  };

  // The op's promise, rejected at once when the signal aborts; the host is told.
  boot.abortable = (answer, op, signal) => {
    const { promise, resolve, reject } = boot.withResolvers();
    const forget = boot.onAbort(signal, (reason) => {
      reject(reason);
      send(CANCEL, op, undefined, undefined);
    });
    boot.then(
      answer,
      (value) => {
        forget();
        resolve(value);
      },
      (error) => {
        forget();
        reject(error);
      },
    );
    return promise;
  };

  // The error that a rejected op throws: of its JavaScript class where there is one of that name.
  const CLASSES = {
    __proto__: null,
    Error,
    EvalError,
    RangeError,
    ReferenceError,
    SyntaxError,
    TypeError,
    URIError,
  };
  const DOM_NAMES = [
    "AbortError",
    "DataCloneError",
    "DataError",
    "InvalidAccessError",
    "InvalidCharacterError",
    "InvalidStateError",
    "NetworkError",
    "NotFoundError",
    "NotSupportedError",
    "OperationError",
    "QuotaExceededError",
    "TimeoutError",
    "TypeMismatchError",
  ];
  boot.errorFrom = ({ name = "Error", message = "", properties = undefined } = {}) => {
    const text = `${message}`;
    if (DOM_NAMES.includes(name)) return new DOMException(text, name);
    const error = new (CLASSES[name] ?? Error)(text);
    const define = (key, value, enumerable) =>
      Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true });
    if (CLASSES[name] === undefined) define("name", `${name}`, false);
    for (const key of Object.keys(properties ?? {})) define(key, properties[key], true);
    return error;
  };
  onReject((payload) => boot.errorFrom(payload));
})();
