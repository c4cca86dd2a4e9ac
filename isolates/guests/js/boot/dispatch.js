// Records of the host: events become calls of the worker's handler, what it returns becomes a
// reply.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { context, ToGuest } = boot;
  const { mainNamespace, onRecord, onServe, replyText, responseOf, send } = boot.host;
  const { REPLY, THROW } = boot.ToHost;
  const SHORT_LENGTH = 1024 * 1024;

  // ---- the fetch event ----

  // For all but a main module that exports an object, which is called natively.
  const callHandler = (request, executionContext) => {
    const entry = mainNamespace()?.default;
    if (typeof entry === "function" && entry.prototype !== undefined) {
      const instance = new entry(executionContext, boot.env);
      if (typeof instance.fetch === "function") return instance.fetch(request);
    } else if (boot.hasGlobalListener("fetch")) {
      return callListeners(request, context.current);
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

  const wait = (state, result) => {
    boot.then(
      boot.resolved(result),
      (response) => {
        context.current = state;
        reply(state.id, responseOf(response), state);
      },
      (error) => {
        context.current = state;
        fail(state, error);
      },
    );
  };

  // ---- its reply ----

  // Without a state there is nothing that the request could wait for: see native/fetch_event.c.
  const reply = (id, record, state) => {
    try {
      sendReply(id, record, state);
    } catch (error) {
      fail(state ?? context.current, error);
    }
  };
  // `record` is undefined for what is no Response.
  const sendReply = (id, record, known) => {
    if (record === undefined) {
      throw new TypeError("Incorrect type for Promise: the Promise did not resolve to 'Response'.");
    }
    if (record.type === "error") {
      throw new TypeError(
        "Return value from serve handler must not be an error response (like Response.error())",
      );
    }
    const { body } = record;
    if (known === undefined && body !== null && isShortText(body)) {
      // Most replies by far, and the shortest way for them.
      body.used = true;
      replyText(id, record.status, boot.reasonOf(record), record.headers.toRaw(), body.text);
      return;
    }
    const state = known ?? context.current;
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

  // But for fetch, which is taken natively.
  const onEvent = (id, text) => {
    const end = text.indexOf("\n");
    const name = end === -1 ? text : text.slice(0, end);
    if (name === "handlers") onHandlers(id);
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

  onServe(boot.env, [
    boot.newRequestState,
    boot.incomingRecord,
    boot.textRecord,
    callHandler,
    reply,
    fail,
    wait,
  ]);
  onRecord((kind, id, value) => {
    switch (kind) {
      case ToGuest.EVENT:
        onEvent(id, value);
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
