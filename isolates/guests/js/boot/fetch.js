// fetch() out of the worker.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { lastOp } = boot.host;

  const fetchRecord = (record) => {
    const { signal } = record;
    if (signal !== null && signal.aborted) throw signal.reason;
    const scheme = record.url.slice(0, record.url.indexOf(":"));
    if (scheme !== "http" && scheme !== "https") {
      throw new TypeError(`Fetch API cannot load: ${record.url}`);
    }
    const { method, url, redirect, cache, cf } = record;
    const headers = boot.wirePairs(record.headers);
    const state = boot.context.current;
    let attached = { extra: undefined, start: boot.noop };
    if (record.body !== null) {
      const content = boot.body.takeBody(record.body);
      attached = boot.attach(content, state);
    }
    const args = [{ method, url, headers, redirect, cache, cf }];
    const answer = boot.op(["fetch", "fetch", args], attached.extra);
    const op = lastOp();
    attached.start();
    const response = boot.then(answer, (pair) => readResponse(boot.readAnswer(pair), signal));
    return signal === null ? response : boot.abortable(response, op, signal);
  };

  const readResponse = ({ value, body }, signal) => {
    const stream = body !== undefined && !(body instanceof Uint8Array);
    if (stream && signal !== null) {
      const { inbound } = body;
      inbound.forget = boot.onAbort(signal, (reason) => inbound.abort(reason));
    }
    const { status, statusText, headers, url, redirected } = value;
    const head = {
      status,
      statusText: `${statusText}`,
      headers: boot.rawHeaders(headers),
      url: `${url}`,
      redirected: Boolean(redirected),
      type: "default",
    };
    const isNullBody = status === 204 || status === 205 || status === 304;
    if (isNullBody && stream) body.inbound.stop();
    return boot.newResponse(head, isNullBody ? undefined : body);
  };

  boot.defineGlobal(
    "fetch",
    async function fetch(input, init = undefined) {
      if (arguments.length === 0) throw new TypeError("fetch() needs a URL or a Request.");
      boot.requireServing();
      return fetchRecord(boot.requestRecord(input, init));
    },
    true,
  );
})();
