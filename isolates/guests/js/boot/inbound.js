// Streams that the host sends. What comes is kept, unacknowledged, until somebody takes it; who
// takes it is a ReadableStream, a collector (text() and its like), or an outbound stream that
// passes it on.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { send } = boot.host;
  const { ACK, STOP } = boot.ToHost;
  const core = boot.readable;

  const open = boot.newMap();

  class Inbound {
    constructor(id, state) {
      this.id = id;
      this.state = state; // the request it belongs to, or null
      this.chunks = [];
      this.sink = null; // {chunk(bytes), end(), fail(error)}
      this.ended = false; // the host has said its last
      this.failure = null;
      this.over = false; // nobody will take any more
      this.forget = boot.noop;
      open.set(id, this);
      if (state !== null) (state.inbounds ??= boot.newSet()).add(this);
    }

    // ---- from the host ----
    arrive(bytes) {
      if (this.sink === null) this.chunks.push(bytes);
      else this.sink.chunk(bytes);
    }
    end() {
      this.ended = true;
      open.delete(this.id);
      if (this.sink !== null) this.sink.end();
    }
    fail(error) {
      this.ended = true;
      open.delete(this.id);
      this.failure = { error };
      this.finish();
      if (this.sink !== null) this.sink.fail(error);
    }

    // ---- to the host ----
    acknowledge(count) {
      if (!this.ended && count > 0) send(ACK, this.id, count, undefined);
    }
    stop() {
      this.chunks = [];
      if (!this.ended) {
        this.ended = true;
        open.delete(this.id);
        send(STOP, this.id, undefined, undefined);
      }
      this.finish();
    }
    // Stop it, and tell whoever waits for more why.
    abort(error) {
      if (this.over) return;
      this.stop();
      this.failure = { error };
      if (this.sink !== null) this.sink.fail(error);
    }
    finish() {
      if (this.over) return;
      this.over = true;
      this.forget();
      if (this.state !== null) this.state.inbounds.delete(this);
    }

    // ---- takers ----
    // Hand over what has come; `sink` gets the rest as it comes.
    take(sink) {
      this.sink = sink;
      const { chunks } = this;
      this.chunks = [];
      for (const bytes of chunks) sink.chunk(bytes);
      if (this.failure !== null) sink.fail(this.failure.error);
      else if (this.ended) sink.end();
    }
    collect() {
      const { promise, resolve, reject } = boot.withResolvers();
      const chunks = [];
      let size = 0;
      this.take({
        chunk: (bytes) => {
          chunks.push(bytes);
          size += bytes.byteLength;
          this.acknowledge(bytes.byteLength);
        },
        end: () => {
          this.finish();
          resolve(boot.concatBytes(chunks, size));
        },
        fail: reject,
      });
      return promise;
    }
    // Become the source of a byte stream, because somebody wants to read it.
    attachStream(stream) {
      stream.inbound = null;
      let waiting = null;
      const deliver = () => {
        const bytes = this.chunks.shift();
        controller.enqueue(bytes, true);
        this.acknowledge(bytes.byteLength);
      };
      const closeIfDone = () => {
        if (!this.ended || this.chunks.length > 0 || this.over) return;
        this.finish();
        controller.close();
        if (controller.pending.length > 0) controller.respond(0);
      };
      const wake = () => {
        const waiter = waiting;
        waiting = null;
        if (waiter !== null) waiter.resolve(undefined);
      };
      const source = {
        pull: () => {
          if (this.chunks.length > 0) {
            deliver();
            closeIfDone();
            return undefined;
          }
          closeIfDone();
          if (this.ended) return undefined;
          waiting = boot.withResolvers();
          return waiting.promise;
        },
        cancel: () => this.stop(),
      };
      const controller = new core.ByteController(stream, source, 0, undefined);
      this.sink = {
        chunk: (bytes) => {
          this.chunks.push(bytes);
          if (waiting !== null) {
            deliver();
            wake();
          }
        },
        end: () => {
          closeIfDone();
          wake();
        },
        fail: (error) => {
          controller.error(error);
          wake();
        },
      };
      core.startController(controller, undefined);
      if (this.failure !== null) controller.error(this.failure.error);
      else closeIfDone();
    }
  }

  // A readable record of a stream of the host; nothing more is made before somebody reads it.
  boot.inboundReadable = (id, state) => {
    const stream = core.newReadable();
    stream.inbound = new Inbound(id, state);
    return stream;
  };
  boot.findInbound = (id) => open.get(id);
  boot.abandonInbounds = (state) => {
    if (state.inbounds === null) return;
    for (const inbound of [...state.inbounds]) {
      inbound.abort(new TypeError("Can't read from request stream after response has been sent."));
    }
  };
})();
