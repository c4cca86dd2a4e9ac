// Event, CustomEvent and EventTarget. There is no tree of targets here: no capture phase, no
// bubbling.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { illegal } = boot;

  let eventState;

  class Event {
    static NONE = 0;
    static CAPTURING_PHASE = 1;
    static AT_TARGET = 2;
    static BUBBLING_PHASE = 3;
    #state;
    static {
      eventState = (value) => {
        if (boot.isObject(value) && #state in value) return value.#state;
        throw illegal();
      };
    }
    constructor(type, init = undefined) {
      if (arguments.length === 0) throw new TypeError("An event needs a type.");
      this.#state = {
        type: `${type}`,
        bubbles: Boolean(init?.bubbles),
        cancelable: Boolean(init?.cancelable),
        composed: Boolean(init?.composed),
        timeStamp: Date.now(),
        target: null,
        currentTarget: null,
        dispatching: false,
        passive: false,
        prevented: false,
        stopped: false,
        stoppedAtOnce: false,
        trusted: false,
      };
    }
    get type() {
      return eventState(this).type;
    }
    get bubbles() {
      return eventState(this).bubbles;
    }
    get cancelable() {
      return eventState(this).cancelable;
    }
    get composed() {
      return eventState(this).composed;
    }
    get timeStamp() {
      return eventState(this).timeStamp;
    }
    get target() {
      return eventState(this).target;
    }
    get srcElement() {
      return eventState(this).target;
    }
    get currentTarget() {
      return eventState(this).currentTarget;
    }
    get defaultPrevented() {
      return eventState(this).prevented;
    }
    get returnValue() {
      return !eventState(this).prevented;
    }
    get isTrusted() {
      return eventState(this).trusted;
    }
    get eventPhase() {
      return eventState(this).dispatching ? 2 : 0;
    }
    get cancelBubble() {
      return eventState(this).stopped;
    }
    set cancelBubble(value) {
      if (value) eventState(this).stopped = true;
    }
    composedPath() {
      const { currentTarget } = eventState(this);
      return currentTarget === null ? [] : [currentTarget];
    }
    preventDefault() {
      const state = eventState(this);
      if (!state.passive) state.prevented = true; // whether cancelable or not, as on Workers
    }
    stopImmediatePropagation() {
      const state = eventState(this);
      state.stopped = true;
      state.stoppedAtOnce = true;
    }
    stopPropagation() {
      eventState(this).stopped = true;
    }
  }

  class CustomEvent extends Event {
    #detail;
    constructor(type, init = undefined) {
      super(type, init);
      this.#detail = init?.detail === undefined ? null : init.detail;
    }
    get detail() {
      return this.#detail;
    }
  }

  class ErrorEvent extends Event {
    #init;
    constructor(type, init = undefined) {
      super(type, init);
      this.#init = init ?? {};
    }
    get message() {
      return `${this.#init.message ?? ""}`;
    }
    get filename() {
      return `${this.#init.filename ?? ""}`;
    }
    get lineno() {
      return Number(this.#init.lineno ?? 0);
    }
    get colno() {
      return Number(this.#init.colno ?? 0);
    }
    get error() {
      return this.#init.error;
    }
  }

  class PromiseRejectionEvent extends Event {
    #promise;
    #reason;
    constructor(type, init) {
      super(type, init);
      this.#promise = init.promise;
      this.#reason = init.reason;
    }
    get promise() {
      return this.#promise;
    }
    get reason() {
      return this.#reason;
    }
  }
  boot.newRejectionEvent = (type, promise, reason) =>
    new PromiseRejectionEvent(type, { promise, reason, cancelable: true });

  // ---- targets ----

  const findListener = (listeners, type, callback, capture) =>
    listeners.findIndex(
      (known) => known.type === type && known.callback === callback && known.capture === capture,
    );
  const captureOf = (options) =>
    typeof options === "object" && options !== null ? Boolean(options.capture) : Boolean(options);

  const addListener = (listeners, type, callback, options) => {
    if (callback === null || callback === undefined) return;
    if (!boot.isObject(callback)) throw new TypeError("The listener is not an object.");
    const settings = typeof options === "object" && options !== null ? options : {};
    const { signal } = settings;
    if (signal !== undefined) {
      if (boot.signalState(signal) === undefined)
        throw new TypeError("signal is not an AbortSignal.");
      if (signal.aborted) return;
    }
    const capture = captureOf(options);
    if (findListener(listeners, type, callback, capture) !== -1) return;
    const listener = {
      type,
      callback,
      capture,
      once: Boolean(settings.once),
      passive: Boolean(settings.passive),
      removed: false,
    };
    listeners.push(listener);
    if (signal !== undefined) {
      signal.addEventListener("abort", () => dropListener(listeners, listener), { once: true });
    }
  };
  const dropListener = (listeners, listener) => {
    listener.removed = true;
    const index = listeners.indexOf(listener);
    if (index !== -1) listeners.splice(index, 1);
  };
  const removeListener = (listeners, type, callback, options) => {
    const index = findListener(listeners, type, callback, captureOf(options));
    if (index === -1) return;
    listeners[index].removed = true;
    listeners.splice(index, 1);
  };

  const dispatch = (target, listeners, event, handler = null) => {
    const state = eventState(event);
    if (state.dispatching) {
      throw new DOMException("The event is being dispatched already.", "InvalidStateError");
    }
    state.dispatching = true;
    state.target = target;
    state.currentTarget = target;
    const invoke = (call) => {
      try {
        call();
      } catch (error) {
        boot.reportError(error);
      }
    };
    if (typeof handler === "function") invoke(() => Reflect.apply(handler, target, [event]));
    for (const listener of listeners.slice()) {
      if (state.stoppedAtOnce) break;
      if (listener.type !== state.type || listener.removed) continue;
      if (listener.once) dropListener(listeners, listener);
      state.passive = listener.passive;
      const { callback } = listener;
      invoke(() => {
        if (typeof callback === "function") Reflect.apply(callback, target, [event]);
        else callback.handleEvent(event);
      });
      state.passive = false;
    }
    state.dispatching = false;
    state.currentTarget = null;
    state.stopped = false;
    state.stoppedAtOnce = false;
    return !state.prevented;
  };

  let listenersOf;
  class EventTarget {
    #listeners = null;
    static {
      listenersOf = (value) => {
        if (boot.isObject(value) && #listeners in value) return (value.#listeners ??= []);
        throw illegal();
      };
    }
    addEventListener(type, callback, options = undefined) {
      addListener(listenersOf(this), `${type}`, callback, options);
    }
    removeEventListener(type, callback, options = undefined) {
      removeListener(listenersOf(this), `${type}`, callback, options);
    }
    dispatchEvent(event) {
      const listeners = listenersOf(this);
      const handler = boot.handlerAttribute(this, eventState(event).type);
      return dispatch(this, listeners, event, handler);
    }
  }
  // AbortSignal adds its `onabort`; nothing else here has handler attributes.
  boot.handlerAttribute = () => null;

  boot.dispatchTrusted = (target, event) => {
    eventState(event).trusted = true;
    return target.dispatchEvent(event);
  };

  // The global scope is a target too, with listeners of its own.
  const globalListeners = [];
  boot.hasGlobalListener = (type) => globalListeners.some((listener) => listener.type === type);
  boot.dispatchGlobal = (event) => dispatch(globalThis, globalListeners, event);
  const globals = {
    addEventListener(type, callback, options = undefined) {
      addListener(globalListeners, `${type}`, callback, options);
    },
    removeEventListener(type, callback, options = undefined) {
      removeListener(globalListeners, `${type}`, callback, options);
    },
    dispatchEvent(event) {
      return dispatch(globalThis, globalListeners, event);
    },
  };
  for (const name of Object.keys(globals)) boot.defineGlobal(name, globals[name], true);

  boot.Event = Event;
  boot.ErrorEvent = ErrorEvent;
  boot.EventTarget = EventTarget;
  boot.eventState = eventState;
  boot.expose(Event, CustomEvent, ErrorEvent, PromiseRejectionEvent, EventTarget);
})();
