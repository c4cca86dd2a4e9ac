// WritableStream, its writer and its controller: the public face of streams-writable-core.js.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { INTERNAL, illegal, rejected } = boot;
  const core = boot.writable;

  let streamState;

  class WritableStream {
    #stream;
    static {
      streamState = (value) =>
        boot.isObject(value) && #stream in value ? value.#stream : undefined;
    }

    constructor(sink = undefined, strategy = undefined) {
      if (sink === INTERNAL) {
        this.#stream = strategy;
        return;
      }
      if (sink === null) throw new TypeError("The underlying sink is null.");
      this.#stream = writableFromSink(sink, strategy);
      this.#stream.wrapper = this;
    }
    get locked() {
      const stream = streamState(this);
      if (stream === undefined) throw illegal();
      return core.isLocked(stream);
    }
    abort(reason = undefined) {
      return unlocked(this, (stream) => core.abortStream(stream, reason));
    }
    close() {
      return unlocked(this, core.closeStream);
    }
    getWriter() {
      return new WritableStreamDefaultWriter(this);
    }
  }

  const unlocked = (value, action) => {
    const stream = streamState(value);
    if (stream === undefined) return rejected(illegal());
    if (core.isLocked(stream)) {
      return rejected(new TypeError("This WritableStream is currently locked to a writer."));
    }
    return action(stream);
  };

  const writableFromSink = (sink, strategy) => {
    if (sink?.type !== undefined) throw new RangeError("Invalid underlying sink type.");
    const size = boot.sizeAlgorithm(strategy);
    const highWaterMark = boot.highWaterMark(strategy, 1);
    const write = boot.promiseMethod(sink, "write");
    const close = boot.promiseMethod(sink, "close");
    const abort = boot.promiseMethod(sink, "abort");
    const start = boot.optionalMethod(sink, "start");
    const stream = core.newWritable();
    const steps = { close, abort, write: undefined };
    const state = new core.Controller(stream, steps, highWaterMark, size);
    state.wrapper = new WritableStreamDefaultController(INTERNAL, state);
    if (write !== undefined) steps.write = (chunk) => write(chunk, state.wrapper);
    core.startController(state, () =>
      start === undefined ? undefined : Reflect.apply(start, sink, [state.wrapper]),
    );
    return stream;
  };

  class WritableStreamDefaultWriter {
    #writer;
    static #of(value) {
      return boot.isObject(value) && #writer in value ? value.#writer : undefined;
    }
    static #open(value, action) {
      const writer = WritableStreamDefaultWriter.#of(value);
      if (writer === undefined) return rejected(illegal());
      if (writer.stream === null) {
        return rejected(new TypeError("This WritableStream writer has been released."));
      }
      return action(writer);
    }
    constructor(stream) {
      const state = streamState(stream);
      if (state === undefined) throw new TypeError("A writer needs a WritableStream.");
      this.#writer = core.acquireWriter(state);
    }
    get closed() {
      const writer = WritableStreamDefaultWriter.#of(this);
      return writer === undefined ? rejected(illegal()) : core.closedPromise(writer);
    }
    get desiredSize() {
      const writer = WritableStreamDefaultWriter.#of(this);
      if (writer === undefined) throw illegal();
      if (writer.stream === null) {
        throw new TypeError("This WritableStream writer has been released.");
      }
      const { state, controller } = writer.stream;
      if (state === "errored" || state === "erroring") return null;
      return state === "closed" ? 0 : controller.highWaterMark - controller.total;
    }
    get ready() {
      const writer = WritableStreamDefaultWriter.#of(this);
      return writer === undefined ? rejected(illegal()) : core.readyPromise(writer);
    }
    abort(reason = undefined) {
      return WritableStreamDefaultWriter.#open(this, (writer) =>
        core.abortStream(writer.stream, reason),
      );
    }
    close() {
      return WritableStreamDefaultWriter.#open(this, (writer) => core.closeStream(writer.stream));
    }
    releaseLock() {
      const writer = WritableStreamDefaultWriter.#of(this);
      if (writer === undefined) throw illegal();
      core.releaseWriter(writer);
    }
    write(chunk = undefined) {
      return WritableStreamDefaultWriter.#open(this, (writer) => core.write(writer, chunk));
    }
  }

  class WritableStreamDefaultController {
    #state;
    static #of(value) {
      if (boot.isObject(value) && #state in value) return value.#state;
      throw illegal();
    }
    constructor(token, state) {
      if (token !== INTERNAL) throw boot.illegalConstructor();
      this.#state = state;
    }
    get signal() {
      return WritableStreamDefaultController.#of(this).signal;
    }
    error(error = undefined) {
      WritableStreamDefaultController.#of(this).errorIfNeeded(error);
    }
  }

  boot.writableState = streamState;
  boot.wrapWritable = (stream) => {
    stream.wrapper ??= new WritableStream(INTERNAL, stream);
    return stream.wrapper;
  };
  boot.expose(WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController);
})();
