// Splitting a stream in two, and reading one to its end.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const core = boot.readable;

  // The branches of a byte stream get bytes of their own, so that one may transfer its buffers.
  // Unlike the standard's, a BYOB read on a branch is filled from the queue, never passed through.
  boot.tee = (stream) => {
    const bytes = isByteStream(stream);
    const reader = core.acquireReader(stream);
    const { promise: cancelPromise, resolve: resolveCancel } = boot.withResolvers();
    const branches = [undefined, undefined];
    const canceled = [false, false];
    const reasons = [undefined, undefined];
    let reading = false;
    let readAgain = false;

    const pull = () => {
      if (reading) {
        readAgain = true;
        return undefined;
      }
      reading = true;
      core.read(reader, { chunk, close, error });
      return undefined;
    };
    const chunk = (value) => {
      // The standard waits a microtask here, so that both branches see an error at once.
      boot.microtask(() => {
        readAgain = false;
        const values = [value, bytes && !canceled[1] ? boot.copyBytes(value) : value];
        for (let i = 0; i < 2; i++) {
          if (!canceled[i]) branches[i].controller.enqueue(values[i], true);
        }
        reading = false;
        if (readAgain) pull();
      });
    };
    const close = () => {
      reading = false;
      for (let i = 0; i < 2; i++) if (!canceled[i]) branches[i].controller.close();
      if (!canceled[0] || !canceled[1]) resolveCancel(undefined);
    };
    const error = (reason) => {
      reading = false;
      for (let i = 0; i < 2; i++) branches[i].controller.error(reason);
      if (!canceled[0] || !canceled[1]) resolveCancel(undefined);
    };
    const cancel = (index) => (reason) => {
      canceled[index] = true;
      reasons[index] = reason;
      if (canceled[1 - index]) resolveCancel(core.cancelStream(stream, reasons));
      return cancelPromise;
    };
    for (let i = 0; i < 2; i++) {
      const source = { start: boot.noop, pull, cancel: cancel(i) };
      branches[i] = bytes ? core.createByteReadable(source, 0) : core.createReadable(source, 1);
    }
    // An error while nobody reads reaches the branches too.
    boot.then(core.closedPromise(reader), boot.noop, error);
    return branches;
  };

  const isByteStream = (stream) => {
    if (stream.inbound !== null) return true;
    return stream.controller instanceof core.ByteController;
  };

  // Collect a stream of bytes. What counts as bytes, and the texts of the errors, are Workers'.
  boot.readAll = (stream) => {
    if (stream.inbound !== null && !core.isLocked(stream)) {
      const { inbound } = stream;
      stream.inbound = null;
      core.lockForGood(stream);
      return boot.then(inbound.collect(), (bytes) => {
        core.closeStream(stream);
        return bytes;
      });
    }
    const { promise, resolve, reject } = boot.withResolvers();
    const reader = core.acquireReader(stream);
    const chunks = [];
    let size = 0;
    boot.forEachChunk(reader, {
      chunk: (bytes) => {
        chunks.push(bytes);
        size += bytes.byteLength;
      },
      close: () =>
        resolve(chunks.length === 1 ? boot.copyBytes(chunks[0]) : boot.concatBytes(chunks, size)),
      error: reject,
    });
    return promise;
  };

  // Call `sink.chunk(bytes)` for each chunk; it returns undefined, or a promise to wait for. A
  // loop, not recursion: a source may answer each read at once.
  boot.forEachChunk = (reader, sink) => {
    let waiting = false;
    let answered = true;
    const resume = () => {
      waiting = false;
      if (answered) loop();
    };
    const request = {
      chunk: (value) => {
        answered = true;
        const bytes = boot.bytesOf(value);
        if (bytes === undefined) {
          const error = new TypeError(
            "This ReadableStream did not return bytes: a body's chunks must be ArrayBuffers or " +
              "ArrayBufferViews. If you wish to send a string, encode it with TextEncoder.",
          );
          boot.handled(core.cancelStream(reader.stream, error));
          over = true;
          sink.error(error);
          return;
        }
        const pause = sink.chunk(bytes);
        if (pause !== undefined) {
          waiting = true;
          boot.then(pause, resume, boot.noop);
        }
        if (!looping && !waiting) loop();
      },
      close: () => {
        over = true;
        sink.close();
      },
      error: (error) => {
        over = true;
        sink.error(error);
      },
    };
    let over = false;
    let looping = false;
    const loop = () => {
      looping = true;
      while (answered && !waiting && !over) {
        answered = false;
        core.read(reader, request);
      }
      looping = false;
    };
    loop();
  };
})();
