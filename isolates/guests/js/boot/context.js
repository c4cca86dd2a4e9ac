// A request's life in the guest, and `ctx`. A request is settled when its reply and every promise
// given to waitUntil are over; the host then forgets it.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { INTERNAL } = boot;
  const { contextOf, send } = boot.host;
  const { SETTLED } = boot.ToHost;

  const requests = boot.newMap();

  class RequestState {
    constructor(id, record, settled) {
      this.id = id;
      if (record !== undefined) this.record = record;
      if (settled) this.settled = true;
      else requests.set(id, this);
    }
    waitUntil(promise) {
      this.pending += 1;
      boot.then(
        boot.resolved(promise),
        () => this.release(),
        (error) => {
          boot.context.current = this;
          boot.logError(`Uncaught (in promise) ${boot.inspect(error)}`);
          this.release();
        },
      );
    }
    release() {
      if (this.settled) return;
      if (this.pending > 1) {
        this.pending -= 1;
        return;
      }
      this.settled = true;
      requests.delete(this.id);
      boot.abandonInbounds(this);
      send(SETTLED, this.id, undefined, undefined);
    }
    // The client went away. The handler goes on for the sake of waitUntil.
    cancel() {
      if (this.canceled) return;
      this.canceled = true;
      const reason = disconnected();
      if (this.outbound !== null) this.outbound.stop(reason);
      if (this.record !== null) boot.signalAbort(boot.requestSignal(this.record), reason);
    }
  }

  const disconnected = () => new DOMException("The client has disconnected.", "AbortError");

  boot.record(RequestState, {
    pending: 1, // the reply
    settled: false,
    canceled: false,
    logUnits: 0, // see console.js
    passThrough: false,
    record: null, // the Request's, once it was asked for
    outbound: null, // the stream of the reply
    inbounds: null, // streams of the host that have not ended
    props: undefined,
    exports: undefined,
  });

  const stateOf = (value) => {
    const state = contextOf(value);
    if (state === undefined) throw boot.illegal();
    return state;
  };
  class ExecutionContext {
    get props() {
      return (stateOf(this).props ??= {});
    }
    get exports() {
      return (stateOf(this).exports ??= {});
    }
    waitUntil(promise) {
      stateOf(this).waitUntil(promise);
    }
    passThroughOnException() {
      stateOf(this).passThrough = true;
    }
  }
  boot.shape(
    boot.defineClass(boot.Kind.CONTEXT, ExecutionContext, 0, () => {
      throw boot.illegalConstructor();
    }),
  );

  class FetchEvent extends boot.Event {
    #state;
    #request;
    #response = undefined;
    #closed = false;
    constructor(token, state, request) {
      if (token !== INTERNAL) throw boot.illegalConstructor();
      super("fetch", { cancelable: true });
      this.#state = state;
      this.#request = request;
    }
    static take(event) {
      event.#closed = true;
      return event.#response;
    }
    get request() {
      return this.#request;
    }
    respondWith(response) {
      if (this.#response !== undefined) {
        throw new DOMException(
          "FetchEvent.respondWith() has already been called; it can only be called once.",
          "InvalidStateError",
        );
      }
      if (this.#closed) {
        throw new DOMException(
          "Too late to call FetchEvent.respondWith(). It must be called synchronously in the event " +
            "handler.",
          "InvalidStateError",
        );
      }
      this.preventDefault();
      this.stopImmediatePropagation();
      this.#response = boot.resolved(response);
    }
    waitUntil(promise) {
      this.#state.waitUntil(promise);
    }
    passThroughOnException() {
      this.#state.passThrough = true;
    }
  }
  const takeResponse = FetchEvent.take;
  delete FetchEvent.take;

  boot.newRequestState = (id, record, settled) => new RequestState(id, record, settled);
  boot.findRequest = (id) => requests.get(id);
  boot.disconnected = disconnected;
  boot.newFetchEvent = (state, request) => new FetchEvent(INTERNAL, state, request);
  boot.takeResponse = takeResponse;
  boot.expose(FetchEvent);
})();
