// Writable streams as plain records; public classes are in streams-writable.js. Names and order of
// steps follow the Streams standard, except that a writer's `ready` and `closed` promises are made
// when somebody asks for them.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { handled, rejected, resolved, then, withResolvers } = boot;
  const CLOSE = Symbol("close");

  const isLocked = (stream) => stream.writer !== null;
  const closeQueuedOrInFlight = (stream) =>
    stream.closeRequest !== null || stream.inFlightClose !== null;

  const settledRejection = (reason) => {
    const settled = withResolvers();
    settled.reject(reason);
    handled(settled.promise);
    return settled;
  };
  const settledResolution = () => {
    const settled = withResolvers();
    settled.resolve(undefined);
    return settled;
  };

  // ---- writers ----

  const releasedError = () => new TypeError("This WritableStream writer has been released.");

  const acquireWriter = (stream) => {
    if (isLocked(stream)) {
      throw new TypeError("This WritableStream is currently locked to a writer.");
    }
    const writer = { stream, ready: null, closed: null };
    stream.writer = writer;
    return writer;
  };
  const releaseWriter = (writer) => {
    const { stream } = writer;
    if (stream === null) return;
    stream.writer = null;
    writer.stream = null;
    for (const key of ["ready", "closed"]) {
      if (writer[key] !== null) {
        writer[key].reject(releasedError());
        handled(writer[key].promise);
        writer[key] = null;
      }
    }
  };
  const readyPromise = (writer) => {
    if (writer.ready === null) {
      const { stream } = writer;
      if (stream === null) writer.ready = settledRejection(releasedError());
      else if (stream.state === "erroring" || stream.state === "errored") {
        writer.ready = settledRejection(stream.storedError);
      } else if (
        stream.state === "writable" &&
        stream.backpressure &&
        !closeQueuedOrInFlight(stream)
      ) {
        writer.ready = withResolvers();
      } else writer.ready = settledResolution();
    }
    return writer.ready.promise;
  };
  const closedPromise = (writer) => {
    if (writer.closed === null) {
      const { stream } = writer;
      if (stream === null) writer.closed = settledRejection(releasedError());
      else if (stream.state === "errored") writer.closed = settledRejection(stream.storedError);
      else if (stream.state === "closed") writer.closed = settledResolution();
      else writer.closed = withResolvers();
    }
    return writer.closed.promise;
  };
  const rejectReady = (writer, reason) => {
    if (writer.ready === null) return;
    handled(writer.ready.promise);
    writer.ready.reject(reason);
    writer.ready = null; // asked again, it is made anew from the stream's state
  };

  // ---- streams ----

  const abortStream = (stream, reason) => {
    if (stream.state === "closed" || stream.state === "errored") return resolved(undefined);
    stream.controller.abortSignal(reason);
    const { state } = stream; // the signal's listeners may have changed it
    if (state === "closed" || state === "errored") return resolved(undefined);
    if (stream.pendingAbort !== null) return stream.pendingAbort.promise;
    const wasErroring = state === "erroring";
    stream.pendingAbort = {
      ...withResolvers(),
      reason: wasErroring ? undefined : reason,
      wasErroring,
    };
    const { promise } = stream.pendingAbort;
    if (!wasErroring) startErroring(stream, reason);
    return promise;
  };
  const closeStream = (stream) => {
    if (stream.state === "closed" || stream.state === "errored") {
      return rejected(new TypeError("This WritableStream has been closed."));
    }
    if (closeQueuedOrInFlight(stream)) {
      return rejected(new TypeError("This WritableStream is closing already."));
    }
    const { writer } = stream;
    stream.closeRequest = withResolvers();
    const { promise } = stream.closeRequest;
    if (writer !== null && writer.ready !== null && stream.state === "writable") {
      writer.ready.resolve(undefined);
    }
    stream.controller.push(CLOSE, 0);
    stream.controller.advance();
    return promise;
  };
  const closeWithErrorPropagation = (writer) => {
    const { stream } = writer;
    if (closeQueuedOrInFlight(stream) || stream.state === "closed") return resolved(undefined);
    if (stream.state === "errored") return rejected(stream.storedError);
    return closeStream(stream);
  };
  const startErroring = (stream, reason) => {
    stream.state = "erroring";
    stream.storedError = reason;
    if (stream.writer !== null) rejectReady(stream.writer, reason);
    if (stream.inFlightWrite === null && stream.inFlightClose === null) {
      if (stream.controller.started) finishErroring(stream);
    }
  };
  const finishErroring = (stream) => {
    stream.state = "errored";
    stream.controller.reset();
    const waiting = stream.writeRequests;
    stream.writeRequests = [];
    for (const request of waiting) request.reject(stream.storedError);
    const abort = stream.pendingAbort;
    stream.pendingAbort = null;
    if (abort === null) {
      rejectClose(stream);
    } else if (abort.wasErroring) {
      abort.reject(stream.storedError);
      rejectClose(stream);
    } else {
      then(
        stream.controller.abortSteps(abort.reason),
        () => {
          abort.resolve(undefined);
          rejectClose(stream);
        },
        (reason) => {
          abort.reject(reason);
          rejectClose(stream);
        },
      );
    }
  };
  const rejectClose = (stream) => {
    if (stream.closeRequest !== null) {
      stream.closeRequest.reject(stream.storedError);
      stream.closeRequest = null;
    }
    const { writer } = stream;
    if (writer !== null && writer.closed !== null) {
      handled(writer.closed.promise);
      writer.closed.reject(stream.storedError);
    }
  };
  const dealWithRejection = (stream, error) => {
    if (stream.state === "writable") startErroring(stream, error);
    else if (stream.state === "erroring") finishErroring(stream);
  };
  const finishClose = (stream) => {
    stream.inFlightClose.resolve(undefined);
    stream.inFlightClose = null;
    if (stream.state === "erroring") {
      stream.storedError = undefined;
      if (stream.pendingAbort !== null) {
        stream.pendingAbort.resolve(undefined);
        stream.pendingAbort = null;
      }
    }
    stream.state = "closed";
    if (stream.writer !== null && stream.writer.closed !== null) {
      stream.writer.closed.resolve(undefined);
    }
  };
  const failClose = (stream, error) => {
    stream.inFlightClose.reject(error);
    stream.inFlightClose = null;
    if (stream.pendingAbort !== null) {
      stream.pendingAbort.reject(error);
      stream.pendingAbort = null;
    }
    dealWithRejection(stream, error);
  };
  const updateBackpressure = (stream, backpressure) => {
    const { writer } = stream;
    if (writer !== null && backpressure !== stream.backpressure && writer.ready !== null) {
      if (backpressure) writer.ready = null;
      else writer.ready.resolve(undefined);
    }
    stream.backpressure = backpressure;
  };
  const write = (writer, chunk) => {
    const { stream } = writer;
    const { controller } = stream;
    const size = controller.chunkSize(chunk);
    if (stream !== writer.stream) return rejected(releasedError());
    if (stream.state === "errored") return rejected(stream.storedError);
    if (closeQueuedOrInFlight(stream) || stream.state === "closed") {
      return rejected(new TypeError("This WritableStream has been closed."));
    }
    if (stream.state === "erroring") return rejected(stream.storedError);
    const request = withResolvers();
    stream.writeRequests.push(request);
    controller.write(chunk, size);
    return request.promise;
  };

  // ---- controller ----

  class Controller {
    constructor(stream, sink, highWaterMark, size) {
      this.stream = stream;
      this.wrapper = null;
      this.queue = [];
      this.total = 0;
      this.started = false;
      this.highWaterMark = highWaterMark;
      this.size = size;
      this.sink = sink; // {write(chunk)?, close()?, abort(reason)?}: functions that return promises
      this.aborter = null;
      this.aborted = null;
      stream.controller = this;
    }
    get backpressure() {
      return this.highWaterMark - this.total <= 0;
    }
    // The signal is made when the sink asks for it; an abort before that is remembered.
    get signal() {
      if (this.aborter === null) {
        this.aborter = boot.newAbortState();
        if (this.aborted !== null) boot.signalAbort(this.aborter, this.aborted.reason);
      }
      return boot.wrapSignal(this.aborter);
    }
    abortSignal(reason) {
      this.aborted ??= { reason };
      if (this.aborter !== null) boot.signalAbort(this.aborter, reason);
    }
    chunkSize(chunk) {
      if (this.size === undefined) return 1;
      try {
        return boot.checkedSize(this.size(chunk));
      } catch (error) {
        this.errorIfNeeded(error);
        return 1;
      }
    }
    push(value, size) {
      this.queue.push({ value, size });
      this.total += size;
    }
    shift() {
      const { size } = this.queue.shift();
      this.total = this.queue.length === 0 ? 0 : Math.max(this.total - size, 0);
    }
    reset() {
      this.queue = [];
      this.total = 0;
    }
    forget() {
      this.sink = {};
      this.size = undefined;
    }
    write(chunk, size) {
      this.push(chunk, size);
      const { stream } = this;
      if (!closeQueuedOrInFlight(stream) && stream.state === "writable") {
        updateBackpressure(stream, this.backpressure);
      }
      this.advance();
    }
    errorIfNeeded(error) {
      if (this.stream.state !== "writable") return;
      this.forget();
      startErroring(this.stream, error);
    }
    abortSteps(reason) {
      const { abort } = this.sink;
      this.forget();
      return abort === undefined ? resolved(undefined) : abort(reason);
    }
    advance() {
      const { stream } = this;
      if (!this.started || stream.inFlightWrite !== null) return;
      if (stream.state === "closed" || stream.state === "errored") return;
      if (stream.state === "erroring") {
        finishErroring(stream);
        return;
      }
      if (this.queue.length === 0) return;
      const { value } = this.queue[0];
      if (value === CLOSE) this.processClose();
      else this.processWrite(value);
    }
    processClose() {
      const { stream } = this;
      stream.inFlightClose = stream.closeRequest;
      stream.closeRequest = null;
      this.shift();
      const { close } = this.sink;
      const closing = close === undefined ? resolved(undefined) : close();
      this.forget();
      then(
        closing,
        () => finishClose(stream),
        (error) => failClose(stream, error),
      );
    }
    processWrite(chunk) {
      const { stream } = this;
      stream.inFlightWrite = stream.writeRequests.shift();
      const { write: writeToSink } = this.sink;
      then(
        writeToSink === undefined ? resolved(undefined) : writeToSink(chunk),
        () => {
          stream.inFlightWrite.resolve(undefined);
          stream.inFlightWrite = null;
          this.shift();
          if (!closeQueuedOrInFlight(stream) && stream.state === "writable") {
            updateBackpressure(stream, this.backpressure);
          }
          this.advance();
        },
        (error) => {
          if (stream.state === "writable") this.forget();
          stream.inFlightWrite.reject(error);
          stream.inFlightWrite = null;
          dealWithRejection(stream, error);
        },
      );
    }
  }

  const newWritable = () => ({
    state: "writable",
    storedError: undefined,
    writer: null,
    controller: null,
    wrapper: null,
    writeRequests: [],
    inFlightWrite: null,
    closeRequest: null,
    inFlightClose: null,
    pendingAbort: null,
    backpressure: false,
  });

  // `start` returns what to wait for before the first write.
  const startController = (controller, start) => {
    const { stream } = controller;
    updateBackpressure(stream, controller.backpressure);
    const finish = (failure) => {
      controller.started = true;
      if (failure === undefined) controller.advance();
      else dealWithRejection(stream, failure.error);
    };
    then(
      resolved(start(controller)),
      () => finish(undefined),
      (error) => finish({ error }),
    );
  };

  boot.writable = {
    abortStream,
    acquireWriter,
    closedPromise,
    closeQueuedOrInFlight,
    closeStream,
    closeWithErrorPropagation,
    Controller,
    isLocked,
    newWritable,
    readyPromise,
    releaseWriter,
    startController,
    write,
  };
})();
