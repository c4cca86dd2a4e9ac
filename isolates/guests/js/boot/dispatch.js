// Records of the host: events become calls of the worker's handler, what it returns becomes a
// reply.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { context, ToGuest } = boot;
  const { mainNamespace, onRecord, send, utf8Encode } = boot.host;
  const { REPLY, THROW } = boot.ToHost;
  const { newBody } = boot.body;
  const SHORT_LENGTH = 1024 * 1024;

  // ---- the fetch event ----

  // `text` is "METHOD URL\nname:value\n…" from `start` on.
  const parseRequest = (text, start, extra, state) => {
    const space = text.indexOf(" ", start);
    let end = text.indexOf("\n", space);
    if (end === -1) end = text.length;
    const headers = new boot.HeaderList(boot.fromWire(text.slice(end + 1)));
    const url = text.slice(space + 1, end);
    let body = null;
    if (typeof extra === "number") body = newBody(null, null, boot.inboundReadable(extra, state));
    else if (extra !== undefined) body = newBody(null, extra, null);
    return boot.newRequest(state, text.slice(start, space), url, headers, body);
  };

  const callHandler = (request, state) => {
    const entry = mainNamespace()?.default;
    if (typeof entry === "function" && entry.prototype !== undefined) {
      const instance = new entry(boot.newExecutionContext(state), boot.env);
      if (typeof instance.fetch === "function") return instance.fetch(request);
    } else if (boot.isObject(entry)) {
      const { fetch } = entry;
      if (typeof fetch === "function") {
        return Reflect.apply(fetch, entry, [request, boot.env, boot.newExecutionContext(state)]);
      }
    } else if (boot.hasGlobalListener("fetch")) {
      return callListeners(request, state);
    }
    throw new Error("Handler does not export a fetch() function.");
  };
  const callListeners = (request, state) => {
    const event = boot.newFetchEvent(state, request);
    boot.dispatchGlobal(event);
    const response = boot.takeResponse(event);
    if (response !== undefined) return response;
    // On Workers such a request goes on to the origin; here the worker is the origin.
    state.passThrough = true;
    throw new Error("No listener of the fetch event called respondWith().");
  };

  const onFetch = (id, text, start, extra) => {
    context.serving = true;
    const state = boot.newRequestState(id);
    context.current = state;
    let result;
    try {
      result = callHandler(parseRequest(text, start, extra, state), state);
    } catch (error) {
      fail(state, error);
      return;
    }
    const record = boot.recordOf(result, "response");
    if (record !== undefined) reply(state, record);
    else {
      boot.then(
        boot.resolved(result),
        (response) => {
          context.current = state;
          reply(state, boot.recordOf(response, "response"));
        },
        (error) => {
          context.current = state;
          fail(state, error);
        },
      );
    }
  };

  // ---- its reply ----

  const reply = (state, record) => {
    try {
      sendReply(state, record);
    } catch (error) {
      fail(state, error);
    }
  };
  // `record` is undefined for what is no Response.
  const sendReply = (state, record) => {
    if (record === undefined) {
      throw new TypeError("Incorrect type for Promise: the Promise did not resolve to 'Response'.");
    }
    if (record.type === "error") {
      throw new TypeError(
        "Return value from serve handler must not be an error response (like Response.error())",
      );
    }
    const { body } = record;
    if (body !== null && isShortText(body) && !state.canceled) {
      // Most replies by far, and the shortest way for them.
      body.used = true;
      send(REPLY, state.id, boot.responseHead(record), utf8Encode(body.text));
      state.release();
      return;
    }
    const content = body === null ? null : boot.body.takeBody(body);
    if (state.canceled) {
      if (content !== null && content.stream !== null) {
        boot.handled(boot.readable.cancelStream(content.stream, undefined));
      }
      state.release();
      return;
    }
    if (content === null) {
      send(REPLY, state.id, boot.responseHead(record), undefined);
      state.release();
      return;
    }
    const length = content.stream?.expectedLength;
    if (length !== undefined && !record.headers.has("content-length")) {
      record.headers.append("content-length", `${length}`);
    }
    const { extra, start, outbound } = boot.attach(content, state, () => state.release());
    send(REPLY, state.id, boot.responseHead(record), extra);
    if (outbound === undefined) {
      state.release();
    } else {
      state.outbound = outbound;
      start();
    }
  };
  const isShortText = ({ text, stream, used }) =>
    text !== null && text.length <= SHORT_LENGTH && stream === null && !used;
  const fail = (state, error) => {
    const { name, message, stack } = boot.describeError(error);
    const thrown = { name, message, stack, pass_through: state.passThrough };
    send(THROW, state.id, thrown, undefined);
    state.release();
  };

  // ---- the handlers event: what the worker can answer, one name a line ----

  const HANDLERS = ["fetch", "scheduled", "queue", "email", "tail", "trace"];

  const handlerNames = () => {
    const entry = mainNamespace()?.default;
    if (boot.isObject(entry) && typeof entry !== "function") {
      return HANDLERS.filter((name) => typeof entry[name] === "function");
    }
    // An instance of a class may have what its prototype has not.
    const classes = Object.values(mainNamespace() ?? {}).filter((it) => typeof it === "function");
    if (classes.length > 0) return ["class"];
    return HANDLERS.filter((name) => boot.hasGlobalListener(name));
  };
  const onHandlers = (id) => {
    const state = boot.newRequestState(id);
    try {
      send(REPLY, id, boot.toWire(handlerNames().join("\n")), undefined);
      state.release();
    } catch (error) {
      fail(state, error);
    }
  };

  // ---- all records ----

  const onEvent = (id, text, extra) => {
    const end = text.indexOf("\n");
    const name = end === -1 ? text : text.slice(0, end);
    if (name === "fetch") onFetch(id, text, end + 1, extra);
    else if (name === "handlers") onHandlers(id);
    else if (name === "configure") boot.configure(JSON.parse(text.slice(end + 1)));
    else throw new Error(`The guest does not know the event "${name}".`);
  };

  const withInbound = (id, action) => {
    const inbound = boot.findInbound(id);
    if (inbound === undefined) return; // over already, for this side
    context.current = inbound.state;
    action(inbound);
  };
  const withOutbound = (id, action) => {
    const outbound = boot.findOutbound(id);
    if (outbound === undefined) return;
    context.current = outbound.state;
    action(outbound);
  };

  onRecord((kind, id, value, extra) => {
    switch (kind) {
      case ToGuest.EVENT:
        onEvent(id, value, extra);
        break;
      case ToGuest.CHUNK:
        withInbound(id, (inbound) => inbound.arrive(value));
        break;
      case ToGuest.END:
        withInbound(id, (inbound) => inbound.end());
        break;
      case ToGuest.FAIL:
        withInbound(id, (inbound) => inbound.fail(boot.errorFrom(value)));
        break;
      case ToGuest.CANCEL: {
        const state = boot.findRequest(id);
        if (state === undefined) break;
        context.current = state;
        state.cancel();
        break;
      }
      case ToGuest.ACK:
        withOutbound(id, (outbound) => outbound.acknowledge(value));
        break;
      case ToGuest.STOP:
        withOutbound(id, (outbound) => outbound.stop(undefined));
        break;
      default:
        throw new Error(`The guest does not know records of kind ${kind}.`);
    }
  });
})();
