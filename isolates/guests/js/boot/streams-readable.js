// ReadableStream and its readers: the public face of the records in streams-core.js.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { INTERNAL, illegal, rejected, resolved } = boot;
  const core = boot.readable;

  let streamState;
  let readerState;
  let byobReaderState;

  class ReadableStream {
    #stream;
    static {
      streamState = (value) =>
        boot.isObject(value) && #stream in value ? value.#stream : undefined;
      // The record leaves the object that showed it, which is left with a closed and locked one.
      boot.detachStream = (stream) => {
        const { wrapper } = stream;
        if (wrapper === null) return;
        const rest = { ...core.newReadable(), state: "closed", wrapper };
        core.lockForGood(rest);
        wrapper.#stream = rest;
        stream.wrapper = null;
      };
    }

    constructor(source, strategy) {
      if (source === INTERNAL) {
        this.#stream = strategy;
        return;
      }
      if (source === null) throw new TypeError("The underlying source is null.");
      this.#stream = boot.readableFromSource(source, strategy);
      this.#stream.wrapper = this;
    }
    static from(iterable) {
      return wrap(boot.readableFromIterable(iterable));
    }
    get locked() {
      return core.isLocked(required(this));
    }
    cancel(reason = undefined) {
      const stream = streamState(this);
      if (stream === undefined) return rejected(illegal());
      if (core.isLocked(stream)) {
        return rejected(new TypeError("This ReadableStream is currently locked to a reader."));
      }
      return core.cancelStream(stream, reason);
    }
    getReader(options = undefined) {
      required(this);
      const mode = options?.mode;
      if (mode === undefined) return new ReadableStreamDefaultReader(this);
      if (`${mode}` === "byob") return new ReadableStreamBYOBReader(this);
      throw new TypeError(`Unknown reader mode: ${mode}.`);
    }
    pipeThrough(transform, options = undefined) {
      const stream = required(this);
      if (!boot.isObject(transform)) throw new TypeError("pipeThrough() needs a transform.");
      const readable = transform.readable;
      if (streamState(readable) === undefined) {
        throw new TypeError("The transform's readable is not a ReadableStream.");
      }
      const target = boot.writableState(transform.writable);
      if (target === undefined) {
        throw new TypeError("The transform's writable is not a WritableStream.");
      }
      const settings = boot.pipeSettings(options);
      if (core.isLocked(stream)) {
        throw new TypeError("This ReadableStream is currently locked to a reader.");
      }
      if (boot.writable.isLocked(target)) {
        throw new TypeError("This WritableStream is currently locked to a writer.");
      }
      boot.handled(boot.pipe(stream, target, settings));
      return readable;
    }
    pipeTo(destination, options = undefined) {
      const stream = streamState(this);
      if (stream === undefined) return rejected(illegal());
      const target = boot.writableState(destination);
      if (target === undefined) {
        return rejected(new TypeError("The destination is not a WritableStream."));
      }
      let settings;
      try {
        settings = boot.pipeSettings(options);
      } catch (error) {
        return rejected(error);
      }
      if (core.isLocked(stream)) {
        return rejected(new TypeError("This ReadableStream is currently locked to a reader."));
      }
      if (boot.writable.isLocked(target)) {
        return rejected(new TypeError("This WritableStream is currently locked to a writer."));
      }
      return boot.pipe(stream, target, settings);
    }
    tee() {
      const [one, two] = boot.tee(required(this));
      return [wrap(one), wrap(two)];
    }
    values(options = undefined) {
      const stream = required(this);
      const preventCancel = Boolean(options?.preventCancel);
      return new StreamIterator(INTERNAL, core.acquireReader(stream), preventCancel);
    }
  }
  Object.defineProperty(ReadableStream.prototype, Symbol.asyncIterator, {
    value: ReadableStream.prototype.values,
    writable: true,
    configurable: true,
  });

  const required = (value) => {
    const stream = streamState(value);
    if (stream === undefined) throw illegal();
    return stream;
  };
  const wrap = (stream) => {
    if (stream.wrapper === null) stream.wrapper = new ReadableStream(INTERNAL, stream);
    return stream.wrapper;
  };

  // ---- async iteration ----

  class StreamIterator {
    #reader;
    #preventCancel;
    #ongoing = null;
    #finished = false;
    constructor(token, reader, preventCancel) {
      if (token !== INTERNAL) throw boot.illegalConstructor();
      this.#reader = reader;
      this.#preventCancel = preventCancel;
    }
    next() {
      const step = () => this.#next();
      this.#ongoing = this.#ongoing === null ? step() : boot.then(this.#ongoing, step, step);
      return this.#ongoing;
    }
    return(value) {
      const step = () => this.#return(value);
      this.#ongoing = this.#ongoing === null ? step() : boot.then(this.#ongoing, step, step);
      return this.#ongoing;
    }
    #next() {
      if (this.#finished) return resolved({ value: undefined, done: true });
      const { promise, resolve, reject } = boot.withResolvers();
      const finish = () => {
        this.#finished = true;
        core.releaseReader(this.#reader);
      };
      core.read(this.#reader, {
        chunk: (value) => resolve({ value, done: false }),
        close: () => {
          finish();
          resolve({ value: undefined, done: true });
        },
        error: (error) => {
          finish();
          reject(error);
        },
      });
      return promise;
    }
    async #return(value) {
      if (this.#finished) return { value, done: true };
      this.#finished = true;
      const { stream } = this.#reader;
      const canceled = this.#preventCancel ? undefined : core.cancelStream(stream, value);
      core.releaseReader(this.#reader);
      await canceled;
      return { value, done: true };
    }
  }
  Object.setPrototypeOf(
    StreamIterator.prototype,
    Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}).prototype),
  );
  boot.shape(StreamIterator, "ReadableStream AsyncIterator");
  delete StreamIterator.prototype.constructor;

  // ---- readers ----

  // One promise-making read request for both kinds of reader.
  const promiseRead = (start) => {
    const { promise, resolve, reject } = boot.withResolvers();
    start({
      chunk: (value) => resolve({ value, done: false }),
      close: (value) => resolve({ value, done: true }),
      error: reject,
    });
    return promise;
  };
  const closedOf = (reader) =>
    reader === undefined ? rejected(illegal()) : core.closedPromise(reader);
  const cancelOf = (reader, reason) => {
    if (reader === undefined) return rejected(illegal());
    if (reader.stream === null) return rejected(released());
    return core.cancelStream(reader.stream, reason);
  };
  const released = () => new TypeError("This ReadableStream reader has been released.");

  class ReadableStreamDefaultReader {
    #reader;
    static {
      readerState = (value) =>
        boot.isObject(value) && #reader in value ? value.#reader : undefined;
    }
    constructor(stream) {
      const state = streamState(stream);
      if (state === undefined) throw new TypeError("A reader needs a ReadableStream.");
      this.#reader = core.acquireReader(state);
    }
    get closed() {
      return closedOf(readerState(this));
    }
    cancel(reason = undefined) {
      return cancelOf(readerState(this), reason);
    }
    read() {
      const reader = readerState(this);
      if (reader === undefined) return rejected(illegal());
      if (reader.stream === null) return rejected(released());
      return promiseRead((request) => core.read(reader, request));
    }
    releaseLock() {
      const reader = readerState(this);
      if (reader === undefined) throw illegal();
      core.releaseReader(reader);
    }
  }

  class ReadableStreamBYOBReader {
    #reader;
    static {
      byobReaderState = (value) =>
        boot.isObject(value) && #reader in value ? value.#reader : undefined;
    }
    constructor(stream) {
      const state = streamState(stream);
      if (state === undefined) throw new TypeError("A reader needs a ReadableStream.");
      if (state.inbound !== null) state.inbound.attachStream(state);
      if (!(state.controller instanceof core.ByteController)) {
        throw new TypeError("This ReadableStream does not support BYOB reads.");
      }
      this.#reader = core.acquireReader(state, "byob");
    }
    get closed() {
      return closedOf(byobReaderState(this));
    }
    cancel(reason = undefined) {
      return cancelOf(byobReaderState(this), reason);
    }
    read(view, options = undefined) {
      const reader = byobReaderState(this);
      if (reader === undefined) return rejected(illegal());
      try {
        const minimum = checkView(view, options?.min ?? 1);
        if (reader.stream === null) return rejected(released());
        return promiseRead((request) => readInto(reader, view, minimum, request));
      } catch (error) {
        return rejected(error);
      }
    }
    // Workers' older spelling of read(view, {min}).
    readAtLeast(minimum, view) {
      return this.read(view, { min: minimum });
    }
    releaseLock() {
      const reader = byobReaderState(this);
      if (reader === undefined) throw illegal();
      core.releaseReader(reader);
    }
  }

  const checkView = (view, min) => {
    if (!ArrayBuffer.isView(view)) throw new TypeError("read() needs an ArrayBufferView.");
    if (view.byteLength === 0) throw new TypeError("read() needs a view of at least one byte.");
    if (view.buffer.byteLength === 0) throw new TypeError("The view's buffer is detached.");
    const minimum = Math.trunc(Number(min));
    if (!(minimum > 0)) throw new TypeError("'min' must be greater than 0.");
    if (minimum > (view.length ?? view.byteLength)) {
      throw new RangeError("'min' is larger than the view.");
    }
    return minimum;
  };
  const readInto = (reader, view, minimum, request) => {
    const { stream } = reader;
    stream.disturbed = true;
    if (stream.state === "errored") request.error(stream.storedError);
    else stream.controller.pullInto(view, minimum, request);
  };

  boot.streamState = streamState;
  boot.wrapStream = wrap;
  boot.expose(ReadableStream, ReadableStreamDefaultReader, ReadableStreamBYOBReader);
})();
