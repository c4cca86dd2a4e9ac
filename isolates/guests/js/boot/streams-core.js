// Readable streams as plain records, and the default controller. Public classes are thin wrappers
// (streams-readable.js), so that bodies which no user code looks at cost no objects of theirs and
// nothing a worker patches can reach these records.
//
//   stream     {state, reader, storedError, disturbed, controller, wrapper, inbound,
//               expectedLength}
//   reader     {kind: "default" | "byob", stream, requests, closed}
//   request    {chunk(value), close(value?), error(reason)}: one read that waits
//   controller {pullSteps(request), cancelSteps(reason), releaseSteps(), ...}
//
// Names and order of steps follow the Streams standard. One liberty: `pull` of a source made by
// boot code may return undefined for "done at once", which spares a promise per chunk.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { handled, rejected, resolved, then, withResolvers } = boot;

  const newReadable = () => ({
    state: "readable",
    reader: null,
    storedError: undefined,
    disturbed: false,
    controller: null,
    wrapper: null, // the ReadableStream object, made when somebody asks for it
    inbound: null, // the host's stream behind it, while nobody has read from it (inbound.js)
    expectedLength: undefined, // bytes that a FixedLengthStream promises
  });

  const isLocked = (stream) => stream.reader !== null;

  const acquireReader = (stream, kind = "default") => {
    if (isLocked(stream)) {
      throw new TypeError("This ReadableStream is currently locked to a reader.");
    }
    if (stream.inbound !== null) stream.inbound.attachStream(stream);
    const reader = { kind, stream, requests: [], closed: null };
    stream.reader = reader;
    return reader;
  };

  // What the stream holds goes past it: for everybody else it is locked for good, and disturbed.
  const lockForGood = (stream) => {
    stream.disturbed = true;
    stream.reader = { kind: "default", stream, requests: [], closed: null };
  };

  const releasedError = () => new TypeError("This ReadableStream reader has been released.");

  // `closed` promises are made when asked for: readers inside boot code never ask.
  const closedPromise = (reader) => {
    if (reader.closed === null) {
      const { stream } = reader;
      reader.closed = withResolvers();
      if (stream === null) {
        reader.closed.reject(releasedError());
        handled(reader.closed.promise);
      } else if (stream.state === "closed") {
        reader.closed.resolve(undefined);
      } else if (stream.state === "errored") {
        reader.closed.reject(stream.storedError);
        handled(reader.closed.promise);
      }
    }
    return reader.closed.promise;
  };

  const releaseReader = (reader) => {
    const { stream } = reader;
    if (stream === null) return;
    const error = releasedError();
    if (reader.closed !== null) {
      if (stream.state !== "readable") reader.closed = withResolvers();
      reader.closed.reject(error);
      handled(reader.closed.promise);
    }
    stream.controller.releaseSteps();
    stream.reader = null;
    reader.stream = null;
    const waiting = reader.requests;
    reader.requests = [];
    for (const request of waiting) request.error(error);
  };

  const closeStream = (stream) => {
    stream.state = "closed";
    const { reader } = stream;
    if (reader === null) return;
    if (reader.closed !== null) reader.closed.resolve(undefined);
    if (reader.kind === "default") {
      const waiting = reader.requests;
      reader.requests = [];
      for (const request of waiting) request.close();
    }
  };

  const errorStream = (stream, error) => {
    stream.state = "errored";
    stream.storedError = error;
    const { reader } = stream;
    if (reader === null) return;
    if (reader.closed !== null) {
      reader.closed.reject(error);
      handled(reader.closed.promise);
    }
    const waiting = reader.requests;
    reader.requests = [];
    for (const request of waiting) request.error(error);
  };

  const cancelStream = (stream, reason) => {
    stream.disturbed = true;
    if (stream.state === "closed") return resolved(undefined);
    if (stream.state === "errored") return rejected(stream.storedError);
    if (stream.inbound !== null) stream.inbound.attachStream(stream);
    closeStream(stream);
    const { reader } = stream;
    if (reader !== null && reader.kind === "byob") {
      const waiting = reader.requests;
      reader.requests = [];
      for (const request of waiting) request.close(undefined);
    }
    return then(stream.controller.cancelSteps(reason), boot.noop);
  };

  const read = (reader, request) => {
    const { stream } = reader;
    stream.disturbed = true;
    if (stream.state === "closed") request.close();
    else if (stream.state === "errored") request.error(stream.storedError);
    else stream.controller.pullSteps(request);
  };

  // ---- the part of a controller's life that both kinds share ----

  const callPullIfNeeded = (controller) => {
    if (!controller.shouldCallPull()) return;
    if (controller.pulling) {
      controller.pullAgain = true;
      return;
    }
    do {
      controller.pulling = true;
      controller.pullAgain = false;
      const pulled = controller.pull();
      if (pulled !== undefined) {
        then(
          pulled,
          () => {
            controller.pulling = false;
            if (controller.pullAgain) {
              controller.pullAgain = false;
              callPullIfNeeded(controller);
            }
          },
          (error) => controller.error(error),
        );
        return;
      }
      controller.pulling = false;
    } while (controller.pullAgain && controller.shouldCallPull());
  };

  const startController = (controller, start) => {
    if (start === undefined) {
      controller.started = true;
      callPullIfNeeded(controller);
      return;
    }
    then(
      resolved(start(controller)),
      () => {
        controller.started = true;
        callPullIfNeeded(controller);
      },
      (error) => controller.error(error),
    );
  };

  // ---- default controller ----

  class DefaultController {
    constructor(stream, source, highWaterMark, size) {
      this.stream = stream;
      this.wrapper = null;
      this.queue = [];
      this.total = 0;
      this.started = false;
      this.closeRequested = false;
      this.pulling = false;
      this.pullAgain = false;
      this.highWaterMark = highWaterMark;
      this.size = size;
      this.pull = source.pull ?? boot.noop;
      this.cancel = source.cancel;
      stream.controller = this;
    }
    get desiredSize() {
      const { state } = this.stream;
      if (state === "errored") return null;
      return state === "closed" ? 0 : this.highWaterMark - this.total;
    }
    get canCloseOrEnqueue() {
      return !this.closeRequested && this.stream.state === "readable";
    }
    shouldCallPull() {
      if (!this.canCloseOrEnqueue || !this.started) return false;
      const { reader } = this.stream;
      if (reader !== null && reader.requests.length > 0) return true;
      return this.highWaterMark - this.total > 0;
    }
    enqueue(chunk) {
      if (!this.canCloseOrEnqueue) return;
      const { reader } = this.stream;
      if (reader !== null && reader.requests.length > 0) {
        reader.requests.shift().chunk(chunk);
      } else {
        let size = 1;
        if (this.size !== undefined) {
          try {
            size = boot.checkedSize(this.size(chunk));
          } catch (error) {
            this.error(error);
            throw error;
          }
        }
        this.queue.push({ value: chunk, size });
        this.total += size;
      }
      callPullIfNeeded(this);
    }
    close() {
      if (!this.canCloseOrEnqueue) return;
      this.closeRequested = true;
      if (this.queue.length === 0) this.finish();
    }
    finish() {
      this.forget();
      closeStream(this.stream);
    }
    error(error) {
      if (this.stream.state !== "readable") return;
      this.reset();
      this.forget();
      errorStream(this.stream, error);
    }
    reset() {
      this.queue = [];
      this.total = 0;
    }
    // Drop the source's functions, so that what they hold can be collected.
    forget() {
      this.pull = boot.noop;
      this.cancel = undefined;
      this.size = undefined;
    }
    pullSteps(request) {
      if (this.queue.length > 0) {
        const { value, size } = this.queue.shift();
        this.total = this.queue.length === 0 ? 0 : Math.max(this.total - size, 0);
        if (this.closeRequested && this.queue.length === 0) this.finish();
        else callPullIfNeeded(this);
        request.chunk(value);
      } else {
        this.stream.reader.requests.push(request);
        callPullIfNeeded(this);
      }
    }
    cancelSteps(reason) {
      this.reset();
      const { cancel } = this;
      this.forget();
      return cancel === undefined ? resolved(undefined) : resolved(cancel(reason));
    }
    releaseSteps() {}
  }

  // `source` is {start(controller)?, pull()?, cancel(reason)?} with functions that return promises.
  const createReadable = (source, highWaterMark = 1, size = undefined) => {
    const stream = newReadable();
    const controller = new DefaultController(stream, source, highWaterMark, size);
    startController(controller, source.start);
    return stream;
  };

  boot.readable = {
    acquireReader,
    callPullIfNeeded,
    cancelStream,
    closedPromise,
    closeStream,
    createReadable,
    DefaultController,
    errorStream,
    isLocked,
    lockForGood,
    newReadable,
    read,
    releaseReader,
    startController,
  };
})();
