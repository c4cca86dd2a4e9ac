// Streams that the guest sends: response bodies, and streamed arguments of ops.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { send } = boot.host;
  const { CHUNK, END, FAIL } = boot.ToHost;
  const WINDOW_BYTES = boot.HOST_STREAM_WINDOW_BYTES;
  const core = boot.readable;

  const open = boot.newMap();
  let lastId = 0;

  class Outbound {
    constructor(state, done) {
      lastId += 1;
      this.id = lastId;
      this.state = state;
      this.done = done;
      this.inFlight = 0;
      this.waiting = null;
      this.over = false;
      this.cancel = boot.noop;
      this.acknowledged = boot.noop;
      open.set(this.id, this);
    }
    // To be called after the record that tells the host of this stream.
    start(stream) {
      if (stream.inbound !== null && !core.isLocked(stream)) this.passOn(stream);
      else this.pump(stream);
    }
    // From host to host: chunks go out as they come in, and so do the acknowledgements.
    passOn(stream) {
      const { inbound } = stream;
      stream.inbound = null;
      core.lockForGood(stream);
      this.cancel = () => inbound.stop();
      this.acknowledged = (count) => inbound.acknowledge(count);
      inbound.take({
        chunk: (bytes) => this.send(bytes),
        end: () => {
          inbound.finish();
          this.end();
        },
        fail: (error) => this.fail(error),
      });
    }
    pump(stream) {
      let reader;
      try {
        reader = core.acquireReader(stream);
      } catch (error) {
        this.fail(error);
        return;
      }
      this.cancel = (reason) => boot.handled(core.cancelStream(stream, reason));
      boot.forEachChunk(reader, {
        chunk: (bytes) => this.sendPieces(bytes, 0),
        close: () => this.end(),
        error: (error) => this.fail(error),
      });
    }
    send(bytes) {
      if (this.over || bytes.byteLength === 0) return;
      this.inFlight += bytes.byteLength;
      send(CHUNK, this.id, bytes, undefined);
    }
    // Sends what the window allows; returns a promise if the rest has to wait.
    sendPieces(bytes, offset) {
      while (offset < bytes.byteLength && !this.over) {
        if (this.inFlight >= WINDOW_BYTES) {
          const rest = offset;
          return boot.then(this.room(), () => this.sendPieces(bytes, rest));
        }
        this.send(
          bytes.byteLength <= WINDOW_BYTES ? bytes : bytes.subarray(offset, offset + WINDOW_BYTES),
        );
        offset += WINDOW_BYTES;
      }
      return this.inFlight >= WINDOW_BYTES && !this.over ? this.room() : undefined;
    }
    room() {
      this.waiting ??= boot.withResolvers();
      return this.waiting.promise;
    }
    end() {
      if (this.over) return;
      send(END, this.id, undefined, undefined);
      this.finish();
    }
    fail(error) {
      if (this.over) return;
      send(FAIL, this.id, boot.describeError(error), undefined);
      this.finish();
    }
    // The reader is gone.
    stop(reason) {
      if (this.over) return;
      this.finish();
      this.cancel(reason);
    }
    acknowledge(count) {
      this.inFlight -= count;
      this.acknowledged(count);
      if (this.waiting !== null && this.inFlight < WINDOW_BYTES) this.wake();
    }
    wake() {
      const { waiting } = this;
      this.waiting = null;
      waiting.resolve(undefined);
    }
    finish() {
      this.over = true;
      open.delete(this.id);
      if (this.waiting !== null) this.wake();
      this.done();
    }
  }

  boot.newOutbound = (state, done) => new Outbound(state, done);
  boot.findOutbound = (id) => open.get(id);
})();
