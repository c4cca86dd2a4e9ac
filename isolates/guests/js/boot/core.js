// The first boot script: takes the native API away from the global object and makes `__boot`, the
// object through which boot scripts share what they define. `seal.js` removes it again before any
// code of a worker is evaluated. Everything on it stays inside closures of the boot code.
(() => {
  "use strict";
  const host = globalThis.__host;
  delete globalThis.__host;
  const boot = { __proto__: null, host };
  Object.defineProperty(globalThis, "__boot", { value: boot, configurable: true });

  // Methods that boot code depends on for order and safety, captured before a worker can patch
  // them.
  const { apply, ownKeys, defineProperty } = Reflect;
  const promiseThen = Promise.prototype.then;
  boot.then = (promise, fulfilled, rejected) => apply(promiseThen, promise, [fulfilled, rejected]);
  const resolve = Promise.resolve;
  const reject = Promise.reject;
  const withResolvers = Promise.withResolvers;
  boot.resolved = (value) => apply(resolve, Promise, [value]);
  boot.rejected = (reason) => apply(reject, Promise, [reason]);
  boot.withResolvers = () => apply(withResolvers, Promise, []);
  boot.noop = () => {};
  boot.microtask = globalThis.queueMicrotask;
  // Maps and sets whose methods no worker can patch: they have prototypes of their own.
  const { setPrototypeOf } = Object;
  const withOwnMethods = (constructor) => {
    const methods = Object.freeze(
      Object.create(null, Object.getOwnPropertyDescriptors(constructor.prototype)),
    );
    return (items) => setPrototypeOf(new constructor(items), methods);
  };
  boot.newMap = withOwnMethods(Map);
  boot.newSet = withOwnMethods(Set);
  // The rejection is somebody's business already: keep it from being reported as unhandled.
  boot.handled = (promise) => {
    boot.then(promise, undefined, boot.noop);
    return promise;
  };

  // Only the classes' own modules can make instances past their public constructors: they compare
  // the first argument with this token.
  boot.INTERNAL = Symbol("internal");

  // Records made for every request keep what is rarely set on their prototype: to make an object
  // costs about as many times 0.1 us as it has properties of its own.
  boot.record = (constructor, defaults) => {
    Object.setPrototypeOf(constructor.prototype, null);
    Object.assign(constructor.prototype, defaults);
    return constructor;
  };

  const lengthOf = Object.getOwnPropertyDescriptor(
    Object.getPrototypeOf(Uint8Array.prototype),
    "byteLength",
  ).get;
  boot.byteLength = (bytes) => apply(lengthOf, bytes, []);

  boot.isObject = (value) =>
    (typeof value === "object" && value !== null) || typeof value === "function";
  boot.illegal = () =>
    new TypeError(
      "Illegal invocation: function called with incorrect `this` reference. See " +
        "https://developers.cloudflare.com/workers/observability/errors/#illegal-invocation-errors " +
        "for details.",
    );
  boot.illegalConstructor = () => new TypeError("Illegal constructor");
  boot.usvString = (value) => `${value}`.toWellFormed();

  // What "in a request" means to the code that runs now. `current` is the state of the request
  // (see dispatch.js) whose event, op, timer or stream woke the guest: made when it is first asked
  // for.
  const { currentState, hasBegun, setCurrent } = host;
  const context = {
    __proto__: null,
    get current() {
      return currentState();
    },
    set current(state) {
      setCurrent(state);
    },
  };
  boot.context = context;
  boot.requestId = host.requestId;
  // False until the first event, while images are made and a worker's top level is evaluated.
  boot.requireServing = () => {
    if (!hasBegun()) {
      throw new Error(
        "Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or " +
          "connect()), setting a timeout, and generating random values are not allowed within " +
          "global scope. To fix this error, perform this operation within a handler.",
      );
    }
  };

  const hostOp = host.op;
  // Ask the host. What continues after the answer runs on behalf of the request that asked.
  boot.op = (args, extra) => {
    boot.requireServing();
    const state = context.current;
    return boot.then(
      hostOp([args[0], args[1], args[2], boot.requestId()], extra),
      (answer) => {
        context.current = state;
        return answer;
      },
      (error) => {
        context.current = state;
        throw error;
      },
    );
  };

  // Web IDL makes operations and attributes enumerable; class syntax does not.
  const publish = (target, skipped) => {
    for (const key of ownKeys(target)) {
      if (typeof key === "symbol" || skipped.includes(key)) continue;
      const property = Object.getOwnPropertyDescriptor(target, key);
      if (property.configurable) defineProperty(target, key, { ...property, enumerable: true });
    }
  };
  boot.shape = (constructor, name = constructor.name) => {
    publish(constructor.prototype, ["constructor"]);
    publish(constructor, ["prototype", "name", "length"]);
    defineProperty(constructor.prototype, Symbol.toStringTag, { value: name, configurable: true });
    return constructor;
  };
  // A class whose objects hold their records natively. `members` is a class with its methods, of
  // which no instance is ever made; `build` makes a record of the constructor's arguments.
  boot.Kind = { REQUEST: 0, RESPONSE: 1, HEADERS: 2, CONTEXT: 3, URL: 4 };
  boot.defineClass = (kind, members, length, build) => {
    const { name, prototype } = members;
    const constructor = host.defineClass(kind, prototype, name, length, build);
    for (const key of ownKeys(members)) {
      if (key === "prototype" || key === "name" || key === "length") continue;
      defineProperty(constructor, key, Object.getOwnPropertyDescriptor(members, key));
    }
    return constructor;
  };
  boot.defineGlobal = (name, value, enumerable = false) =>
    defineProperty(globalThis, name, { value, enumerable, writable: true, configurable: true });
  boot.expose = (...constructors) => {
    for (const constructor of constructors) {
      boot.defineGlobal(constructor.name, boot.shape(constructor));
      boot.addPlatform(constructor);
      host.markPlatform(constructor.prototype);
    }
  };

  // A copy-free view of any buffer source as bytes, or undefined for anything else.
  const getBuffer = Object.getOwnPropertyDescriptor(
    Object.getPrototypeOf(Uint8Array.prototype),
    "buffer",
  ).get;
  const isBuffer = (value) => value instanceof ArrayBuffer;
  boot.bytesOf = (value) => {
    if (value instanceof Uint8Array) return value;
    if (ArrayBuffer.isView(value)) {
      const buffer = value instanceof DataView ? value.buffer : apply(getBuffer, value, []);
      return new Uint8Array(buffer, value.byteOffset, value.byteLength);
    }
    return isBuffer(value) ? new Uint8Array(value) : undefined;
  };
  boot.copyBytes = (bytes) => new Uint8Array(bytes);
  boot.concatBytes = (chunks, size) => {
    if (chunks.length === 1) return chunks[0];
    const whole = new Uint8Array(size);
    let offset = 0;
    for (let i = 0; i < chunks.length; i++) {
      whole.set(chunks[i], offset);
      offset += chunks[i].byteLength;
    }
    return whole;
  };
  // The exact buffer of bytes that nobody else holds.
  boot.exactBuffer = (bytes) =>
    bytes.byteLength === bytes.buffer.byteLength
      ? bytes.buffer
      : bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);

  // This engine's stacks have frames only; everybody expects the error above them. Frames of the
  // boot code (its scripts are named "belem:…") say nothing to the worker's author.
  const fullStack = (name, message, stack) => {
    if (typeof stack !== "string" || stack === "") return "";
    const title = message === "" ? name : `${name}: ${message}`;
    const frames = stack
      .trimEnd()
      .replace(/^ +at .*\(?belem:[^\n]*\)?(?:\n|$)/gm, "")
      .replace(/(?:\n? +at \S+ \(native\))+\s*$/, "") // how the boot code called the handler
      .trimEnd();
    return frames.startsWith(title) ? frames : `${title}\n${frames}`;
  };

  // What a thrown value says about itself in a record; getters of hostile errors must not escape.
  boot.describeError = (error) => {
    try {
      if (error instanceof Error || error instanceof DOMException) {
        const name = `${error.name}`;
        const message = `${error.message}`;
        return { name, message, stack: fullStack(name, message, error.stack) };
      }
      const message = typeof error === "string" ? error : boot.inspect(error);
      return { name: "Error", message, stack: "" };
    } catch {
      return { name: "Error", message: "unprintable error", stack: "" };
    }
  };

  delete globalThis.SharedArrayBuffer; // a clock for timing attacks, and nothing shares memory here
  boot.defineGlobal("self", globalThis);
})();
