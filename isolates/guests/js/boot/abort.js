// AbortController and AbortSignal. A signal is a record that costs nothing until somebody asks for
// its object: every request has one (request.signal), few handlers look at it.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { INTERNAL, illegal } = boot;

  const newAbortState = () => ({
    aborted: false,
    reason: undefined,
    wrapper: null,
    steps: null, // functions of boot code to run on abort, before listeners
    dependents: null, // signals made by AbortSignal.any
    onabort: null,
  });

  let signalState;
  class AbortSignal extends boot.EventTarget {
    #state;
    static {
      signalState = (value) => (boot.isObject(value) && #state in value ? value.#state : undefined);
    }
    constructor(token, state) {
      if (token !== INTERNAL) throw boot.illegalConstructor();
      super();
      this.#state = state;
    }
    static abort(reason = undefined) {
      const state = newAbortState();
      state.aborted = true;
      state.reason = reason === undefined ? abortError() : reason;
      return wrap(state);
    }
    static timeout(milliseconds) {
      const delay = Number(milliseconds);
      if (!(delay >= 0 && delay <= Number.MAX_SAFE_INTEGER)) {
        throw new TypeError("AbortSignal.timeout() needs a delay in milliseconds.");
      }
      const state = newAbortState();
      boot.sleep(delay, () => {
        const message = "The operation was aborted due to timeout";
        signalAbort(state, new DOMException(message, "TimeoutError"));
      });
      return wrap(state);
    }
    static any(signals) {
      const states = Array.from(signals, required);
      const result = newAbortState();
      const source = states.find((state) => state.aborted);
      if (source !== undefined) {
        result.aborted = true;
        result.reason = source.reason;
      } else {
        for (const state of states) (state.dependents ??= []).push(result);
      }
      return wrap(result);
    }
    get aborted() {
      return required(this).aborted;
    }
    get reason() {
      return required(this).reason;
    }
    get onabort() {
      return required(this).onabort;
    }
    set onabort(handler) {
      required(this).onabort = boot.isObject(handler) ? handler : null;
    }
    throwIfAborted() {
      const state = required(this);
      if (state.aborted) throw state.reason;
    }
  }

  class AbortController {
    #state = newAbortState();
    static #of(value) {
      if (boot.isObject(value) && #state in value) return value.#state;
      throw illegal();
    }
    get signal() {
      return wrap(AbortController.#of(this));
    }
    abort(reason = undefined) {
      signalAbort(AbortController.#of(this), reason);
    }
  }

  const abortError = () => new DOMException("The operation was aborted", "AbortError");
  const required = (value) => {
    const state = signalState(value);
    if (state === undefined) throw illegal();
    return state;
  };
  const wrap = (state) => {
    state.wrapper ??= new AbortSignal(INTERNAL, state);
    return state.wrapper;
  };

  const signalAbort = (state, reason) => {
    if (state.aborted) return;
    const reached = [];
    mark(state, reason === undefined ? abortError() : reason, reached);
    for (const one of reached) {
      const { steps } = one;
      one.steps = null;
      if (steps !== null) for (const step of steps) step(one.reason);
      if (one.wrapper !== null) boot.dispatchTrusted(one.wrapper, new boot.Event("abort"));
    }
  };
  // All dependents are marked before any listener runs.
  const mark = (state, reason, reached) => {
    state.aborted = true;
    state.reason = reason;
    reached.push(state);
    const { dependents } = state;
    state.dependents = null;
    if (dependents === null) return;
    for (const dependent of dependents) if (!dependent.aborted) mark(dependent, reason, reached);
  };

  boot.handlerAttribute = (target, type) => {
    if (type !== "abort") return null;
    const state = signalState(target);
    return state === undefined ? null : state.onabort;
  };

  // Run `step(reason)` when the signal aborts; returns the function that takes it back.
  boot.onAbort = (state, step) => {
    (state.steps ??= boot.newSet()).add(step);
    return () => state.steps?.delete(step);
  };
  boot.newAbortState = newAbortState;
  boot.signalAbort = signalAbort;
  boot.signalState = signalState;
  boot.wrapSignal = wrap;
  boot.expose(AbortSignal, AbortController);
})();
