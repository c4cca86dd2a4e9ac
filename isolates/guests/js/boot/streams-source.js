// The user's side of a readable stream: underlying sources and their controller objects, and
// ReadableStream.from().
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { INTERNAL, illegal } = boot;
  const core = boot.readable;

  // Controllers answer only to their own class's methods.
  const requiredState = (state) => {
    if (state === undefined) throw illegal();
    return state;
  };

  class ReadableStreamDefaultController {
    #state;
    static #of(value) {
      return requiredState(boot.isObject(value) && #state in value ? value.#state : undefined);
    }
    constructor(token, state) {
      if (token !== INTERNAL) throw boot.illegalConstructor();
      this.#state = state;
    }
    get desiredSize() {
      return ReadableStreamDefaultController.#of(this).desiredSize;
    }
    close() {
      const state = ReadableStreamDefaultController.#of(this);
      if (!state.canCloseOrEnqueue) throw new TypeError("Cannot close: the stream is not open.");
      state.close();
    }
    enqueue(chunk = undefined) {
      const state = ReadableStreamDefaultController.#of(this);
      if (!state.canCloseOrEnqueue) throw new TypeError("Cannot enqueue: the stream is not open.");
      state.enqueue(chunk);
    }
    error(error = undefined) {
      ReadableStreamDefaultController.#of(this).error(error);
    }
  }

  class ReadableByteStreamController {
    #state;
    static #of(value) {
      return requiredState(boot.isObject(value) && #state in value ? value.#state : undefined);
    }
    constructor(token, state) {
      if (token !== INTERNAL) throw boot.illegalConstructor();
      this.#state = state;
    }
    get byobRequest() {
      const state = ReadableByteStreamController.#of(this);
      if (state.byobRequest === null && state.pending.length > 0) {
        const first = state.pending[0];
        const offset = first.byteOffset + first.bytesFilled;
        const record = {
          controller: state,
          view: new Uint8Array(first.buffer, offset, first.byteLength - first.bytesFilled),
          wrapper: null,
        };
        record.wrapper = new ReadableStreamBYOBRequest(INTERNAL, record);
        state.byobRequest = record;
      }
      return state.byobRequest === null ? null : state.byobRequest.wrapper;
    }
    get desiredSize() {
      return ReadableByteStreamController.#of(this).desiredSize;
    }
    close() {
      const state = ReadableByteStreamController.#of(this);
      if (!state.canCloseOrEnqueue) throw new TypeError("Cannot close: the stream is not open.");
      state.close();
    }
    enqueue(chunk) {
      const state = ReadableByteStreamController.#of(this);
      if (!ArrayBuffer.isView(chunk)) {
        throw new TypeError("A byte stream accepts only ArrayBufferViews.");
      }
      if (chunk.byteLength === 0) throw new TypeError("The chunk is empty or detached.");
      if (!state.canCloseOrEnqueue) throw new TypeError("Cannot enqueue: the stream is not open.");
      state.enqueue(chunk);
    }
    error(error = undefined) {
      ReadableByteStreamController.#of(this).error(error);
    }
  }

  class ReadableStreamBYOBRequest {
    #record;
    static #of(value) {
      return requiredState(boot.isObject(value) && #record in value ? value.#record : undefined);
    }
    constructor(token, record) {
      if (token !== INTERNAL) throw boot.illegalConstructor();
      this.#record = record;
    }
    get view() {
      return ReadableStreamBYOBRequest.#of(this).view;
    }
    respond(bytesWritten) {
      const record = ReadableStreamBYOBRequest.#of(this);
      if (record.controller === null) throw new TypeError("This BYOB request is over.");
      const count = Number(bytesWritten);
      if (!Number.isInteger(count) || count < 0) {
        throw new TypeError("bytesWritten must be a whole number.");
      }
      record.controller.respond(count);
    }
    respondWithNewView(view) {
      const record = ReadableStreamBYOBRequest.#of(this);
      if (!ArrayBuffer.isView(view)) throw new TypeError("A view is needed.");
      if (record.controller === null) throw new TypeError("This BYOB request is over.");
      record.controller.respondWithNewView(view);
    }
  }

  const startOf = (source, wrapperOf) => {
    const start = boot.optionalMethod(source, "start");
    return (state) =>
      start === undefined ? undefined : Reflect.apply(start, source, [wrapperOf(state)]);
  };
  const wrapDefault = (state) =>
    (state.wrapper ??= new ReadableStreamDefaultController(INTERNAL, state));
  const wrapByte = (state) => (state.wrapper ??= new ReadableByteStreamController(INTERNAL, state));

  boot.readableFromSource = (source = undefined, strategy = undefined) => {
    const type = source?.type;
    const pull = boot.promiseMethod(source, "pull");
    const cancel = boot.promiseMethod(source, "cancel");
    const stream = core.newReadable();
    if (type === undefined) {
      const size = boot.sizeAlgorithm(strategy);
      const highWaterMark = boot.highWaterMark(strategy, 1);
      const state = new core.DefaultController(stream, { cancel }, highWaterMark, size);
      if (pull !== undefined) state.pull = () => pull(wrapDefault(state));
      core.startController(state, startOf(source, wrapDefault));
      return stream;
    }
    if (`${type}` !== "bytes") throw new TypeError(`Invalid stream type: ${type}.`);
    if (strategy?.size !== undefined) throw new RangeError("A byte stream has no size function.");
    const highWaterMark = boot.highWaterMark(strategy, 0);
    let autoAllocate = source.autoAllocateChunkSize;
    if (autoAllocate !== undefined) {
      autoAllocate = Math.trunc(Number(autoAllocate));
      if (!(autoAllocate > 0)) throw new TypeError("autoAllocateChunkSize must be positive.");
    }
    const state = new core.ByteController(stream, { cancel }, highWaterMark, autoAllocate);
    if (pull !== undefined) state.pull = () => pull(wrapByte(state));
    core.startController(state, startOf(source, wrapByte));
    return stream;
  };

  boot.readableFromIterable = (iterable) => {
    if (iterable === null || iterable === undefined) {
      throw new TypeError("ReadableStream.from() needs an iterable.");
    }
    const asyncMethod = iterable[Symbol.asyncIterator];
    const method = asyncMethod ?? iterable[Symbol.iterator];
    if (typeof method !== "function") {
      throw new TypeError("ReadableStream.from() needs an iterable.");
    }
    const iterator = Reflect.apply(method, iterable, []);
    if (!boot.isObject(iterator)) throw new TypeError("The iterator is not an object.");
    const { next } = iterator;
    const isAsync = asyncMethod !== undefined && asyncMethod !== null;

    const pull = async () => {
      const result = await Reflect.apply(next, iterator, []);
      if (!boot.isObject(result)) throw new TypeError("The iterator's result is not an object.");
      if (result.done) controller.close();
      else controller.enqueue(isAsync ? result.value : await result.value);
    };
    const cancel = async (reason) => {
      const method = iterator.return;
      if (method === undefined || method === null) return;
      const result = await Reflect.apply(method, iterator, [reason]);
      if (!boot.isObject(result)) throw new TypeError("The iterator's result is not an object.");
    };
    const stream = core.newReadable();
    const controller = new core.DefaultController(stream, { pull, cancel }, 0, undefined);
    core.startController(controller, undefined);
    return stream;
  };

  boot.expose(
    ReadableStreamDefaultController,
    ReadableByteStreamController,
    ReadableStreamBYOBRequest,
  );
})();
