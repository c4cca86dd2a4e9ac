// The byte controller: a queue of buffers, and reads into the reader's own buffers (BYOB). The
// steps and their order are those of the Streams standard.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { callPullIfNeeded, closeStream, errorStream, newReadable, startController } =
    boot.readable;
  const { apply } = Reflect;
  const arrayBufferTransfer = ArrayBuffer.prototype.transfer;
  const isDetached = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "detached").get;
  const transfer = (buffer) => apply(arrayBufferTransfer, buffer, []);

  class ByteController {
    constructor(stream, source, highWaterMark, autoAllocateChunkSize) {
      this.stream = stream;
      this.wrapper = null;
      this.byobRequest = null; // {controller, view}: the open request's record
      this.queue = []; // Uint8Arrays that belong to this stream
      this.total = 0;
      this.pending = []; // pull-into descriptors
      this.started = false;
      this.closeRequested = false;
      this.pulling = false;
      this.pullAgain = false;
      this.highWaterMark = highWaterMark;
      this.autoAllocateChunkSize = autoAllocateChunkSize;
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
    get hasDefaultReader() {
      const { reader } = this.stream;
      return reader !== null && reader.kind === "default";
    }
    get hasByobReader() {
      const { reader } = this.stream;
      return reader !== null && reader.kind === "byob";
    }
    shouldCallPull() {
      if (!this.canCloseOrEnqueue || !this.started) return false;
      const { reader } = this.stream;
      if (reader !== null && reader.requests.length > 0) return true;
      return this.highWaterMark - this.total > 0;
    }

    // `owned` bytes come from boot code and are nobody else's: their buffer needs no transfer.
    enqueue(view, owned = false) {
      if (!this.canCloseOrEnqueue) return;
      const { byteOffset, byteLength } = view;
      const bytes = owned ? view : new Uint8Array(transfer(view.buffer), byteOffset, byteLength);
      if (this.pending.length > 0) {
        const first = this.pending[0];
        if (apply(isDetached, first.buffer, [])) {
          throw new TypeError("The buffer of the pending read is detached.");
        }
        this.invalidateByobRequest();
        first.buffer = transfer(first.buffer);
        if (first.readerKind === "none") this.enqueueDetached(first);
      }
      if (this.hasDefaultReader) {
        this.serveReadsFromQueue();
        const { requests } = this.stream.reader;
        if (requests.length === 0) {
          this.push(bytes);
        } else {
          if (this.pending.length > 0) this.pending.shift();
          requests.shift().chunk(bytes);
        }
      } else {
        this.push(bytes);
        if (this.hasByobReader) this.commitAll(this.fillPendingFromQueue());
      }
      callPullIfNeeded(this);
    }
    push(bytes) {
      this.queue.push(bytes);
      this.total += bytes.byteLength;
    }
    close() {
      if (!this.canCloseOrEnqueue) return;
      if (this.total > 0) {
        this.closeRequested = true;
        return;
      }
      if (this.pending.length > 0) {
        const first = this.pending[0];
        if (first.bytesFilled % first.elementSize !== 0) {
          const error = new TypeError("Insufficient bytes to fill elements in the given buffer.");
          this.error(error);
          throw error;
        }
      }
      this.forget();
      closeStream(this.stream);
    }
    error(error) {
      if (this.stream.state !== "readable") return;
      this.clearPending();
      this.reset();
      this.forget();
      errorStream(this.stream, error);
    }
    reset() {
      this.queue = [];
      this.total = 0;
    }
    forget() {
      this.pull = boot.noop;
      this.cancel = undefined;
    }
    clearPending() {
      this.invalidateByobRequest();
      this.pending = [];
    }
    invalidateByobRequest() {
      if (this.byobRequest === null) return;
      this.byobRequest.controller = null;
      this.byobRequest.view = null;
      this.byobRequest = null;
    }

    pullSteps(request) {
      if (this.total > 0) {
        this.serveRead(request);
        return;
      }
      if (this.autoAllocateChunkSize !== undefined) {
        let buffer;
        try {
          buffer = new ArrayBuffer(this.autoAllocateChunkSize);
        } catch (error) {
          request.error(error);
          return;
        }
        this.pending.push(descriptor(buffer, 0, buffer.byteLength, 1, 1, Uint8Array, "default"));
      }
      this.stream.reader.requests.push(request);
      callPullIfNeeded(this);
    }
    pullInto(view, minimum, request) {
      const elementSize = view.BYTES_PER_ELEMENT ?? 1;
      const constructor = view.constructor;
      const { byteOffset, byteLength } = view;
      let buffer;
      try {
        buffer = transfer(view.buffer);
      } catch (error) {
        request.error(error);
        return;
      }
      const fill = minimum * elementSize;
      const into = descriptor(
        buffer,
        byteOffset,
        byteLength,
        fill,
        elementSize,
        constructor,
        "byob",
      );
      if (this.pending.length > 0) {
        this.pending.push(into);
        this.stream.reader.requests.push(request);
        return;
      }
      if (this.stream.state === "closed") {
        request.close(new constructor(buffer, byteOffset, 0));
        return;
      }
      if (this.total > 0) {
        if (this.fillFromQueue(into)) {
          const filled = convert(into);
          this.afterDrain();
          request.chunk(filled);
          return;
        }
        if (this.closeRequested) {
          const error = new TypeError("Insufficient bytes to fill elements in the given buffer.");
          this.error(error);
          request.error(error);
          return;
        }
      }
      this.pending.push(into);
      this.stream.reader.requests.push(request);
      callPullIfNeeded(this);
    }
    cancelSteps(reason) {
      this.clearPending();
      this.reset();
      const { cancel } = this;
      this.forget();
      return boot.resolved(cancel === undefined ? undefined : cancel(reason));
    }
    releaseSteps() {
      if (this.pending.length === 0) return;
      const first = this.pending[0];
      first.readerKind = "none";
      this.pending = [first];
    }

    // ---- answers of the source to a BYOB request ----
    respond(bytesWritten) {
      const first = this.pending[0];
      if (this.stream.state === "closed") {
        if (bytesWritten !== 0) throw new TypeError("The stream is closed: respond with 0 bytes.");
      } else {
        if (bytesWritten === 0) throw new TypeError("A response to an open read is not 0 bytes.");
        if (first.bytesFilled + bytesWritten > first.byteLength) {
          throw new RangeError("bytesWritten is larger than the view.");
        }
      }
      first.buffer = transfer(first.buffer);
      this.respondWith(bytesWritten);
    }
    respondWithNewView(view) {
      const first = this.pending[0];
      const { byteLength, byteOffset, buffer } = view;
      if (this.stream.state === "closed") {
        if (byteLength !== 0) throw new TypeError("The stream is closed: respond with 0 bytes.");
      } else if (byteLength === 0) {
        throw new TypeError("A response to an open read is not 0 bytes.");
      }
      const mismatch =
        first.byteOffset + first.bytesFilled !== byteOffset ||
        first.bufferByteLength !== buffer.byteLength ||
        first.bytesFilled + byteLength > first.byteLength;
      if (mismatch) throw new RangeError("The region of the view does not match the request.");
      first.buffer = transfer(buffer);
      this.respondWith(byteLength);
    }
    respondWith(bytesWritten) {
      const first = this.pending[0];
      this.invalidateByobRequest();
      if (this.stream.state === "closed") this.respondInClosedState(first);
      else this.respondInReadableState(bytesWritten, first);
      callPullIfNeeded(this);
    }
    respondInClosedState(first) {
      if (first.readerKind === "none") this.pending.shift();
      if (!this.hasByobReader) return;
      const filled = [];
      while (filled.length < this.stream.reader.requests.length) filled.push(this.pending.shift());
      this.commitAll(filled);
    }
    respondInReadableState(bytesWritten, first) {
      first.bytesFilled += bytesWritten;
      if (first.readerKind === "none") {
        this.enqueueDetached(first);
        this.commitAll(this.fillPendingFromQueue());
        return;
      }
      if (first.bytesFilled < first.minimumFill) return;
      this.pending.shift();
      const rest = first.bytesFilled % first.elementSize;
      if (rest > 0) {
        const end = first.byteOffset + first.bytesFilled;
        this.push(new Uint8Array(first.buffer.slice(end - rest, end)));
      }
      first.bytesFilled -= rest;
      const filled = this.fillPendingFromQueue();
      this.commit(first);
      this.commitAll(filled);
    }

    // ---- moving bytes from the queue to those who wait ----
    serveRead(request) {
      const bytes = this.queue.shift();
      this.total -= bytes.byteLength;
      this.afterDrain();
      request.chunk(bytes);
    }
    serveReadsFromQueue() {
      const { requests } = this.stream.reader;
      while (requests.length > 0 && this.total > 0) this.serveRead(requests.shift());
    }
    afterDrain() {
      if (this.total === 0 && this.closeRequested) {
        this.forget();
        closeStream(this.stream);
      } else {
        callPullIfNeeded(this);
      }
    }
    enqueueDetached(into) {
      if (into.bytesFilled > 0) {
        const end = into.byteOffset + into.bytesFilled;
        this.push(new Uint8Array(into.buffer.slice(into.byteOffset, end)));
      }
      this.pending.shift();
    }
    fillPendingFromQueue() {
      const filled = [];
      while (this.pending.length > 0 && this.total > 0) {
        if (this.fillFromQueue(this.pending[0])) filled.push(this.pending.shift());
        else break;
      }
      return filled;
    }
    fillFromQueue(into) {
      const most = Math.min(this.total, into.byteLength - into.bytesFilled);
      const aligned = into.bytesFilled + most - ((into.bytesFilled + most) % into.elementSize);
      const ready = aligned >= into.minimumFill;
      let rest = ready ? aligned - into.bytesFilled : most;
      while (rest > 0) {
        const head = this.queue[0];
        const count = Math.min(rest, head.byteLength);
        const target = new Uint8Array(into.buffer, into.byteOffset + into.bytesFilled, count);
        target.set(count === head.byteLength ? head : head.subarray(0, count));
        if (count === head.byteLength) this.queue.shift();
        else this.queue[0] = head.subarray(count);
        this.total -= count;
        into.bytesFilled += count;
        rest -= count;
      }
      return ready;
    }
    commitAll(filled) {
      for (const into of filled) this.commit(into);
    }
    commit(into) {
      const request = this.stream.reader.requests.shift();
      const view = convert(into);
      if (this.stream.state === "closed") request.close(view);
      else request.chunk(view);
    }
  }

  const descriptor = (
    buffer,
    byteOffset,
    byteLength,
    minimumFill,
    elementSize,
    constructor,
    readerKind,
  ) => ({
    buffer,
    bufferByteLength: buffer.byteLength,
    byteOffset,
    byteLength,
    bytesFilled: 0,
    minimumFill,
    elementSize,
    constructor,
    readerKind,
  });

  const convert = (into) =>
    new into.constructor(
      transfer(into.buffer),
      into.byteOffset,
      into.bytesFilled / into.elementSize,
    );

  const setUpByteController = (stream, source, highWaterMark, autoAllocateChunkSize) => {
    const controller = new ByteController(stream, source, highWaterMark, autoAllocateChunkSize);
    startController(controller, source.start);
    return controller;
  };

  boot.readable.ByteController = ByteController;
  boot.readable.setUpByteController = setUpByteController;
  boot.readable.createByteReadable = (source, highWaterMark = 0) => {
    const stream = newReadable();
    setUpByteController(stream, source, highWaterMark, undefined);
    return stream;
  };
  // A stream of bytes that are there already.
  boot.readable.readableOfBytes = (bytes) => {
    const stream = newReadable();
    const controller = setUpByteController(stream, {}, 0, undefined);
    if (bytes.byteLength > 0) controller.enqueue(bytes, true);
    controller.close();
    return stream;
  };
})();
