// TransformStream, and Workers' byte pipes IdentityTransformStream and FixedLengthStream.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { INTERNAL, illegal, rejected, resolved, then, withResolvers } = boot;
  const { readable: sources, writable: sinks } = boot;

  // A transform as a record: its two streams, and the backpressure between them.
  // `steps` is {transform(chunk)?, flush()?, cancel(reason)?} with functions that return promises.
  class Transform {
    constructor(
      steps,
      { bytes = false, writableMark = 1, writableSize, readableMark = 0, readableSize },
    ) {
      this.steps = steps;
      this.backpressure = true;
      this.change = withResolvers();
      this.finish = null;
      this.wrapper = null;
      this.startPromise = withResolvers();
      this.writable = sinks.newWritable();
      const sink = {
        write: (chunk) => this.sinkWrite(chunk),
        close: () => this.sinkClose(),
        abort: (reason) => this.sinkAbort(reason),
      };
      this.sink = new sinks.Controller(this.writable, sink, writableMark, writableSize);
      sinks.startController(this.sink, () => this.startPromise.promise);
      this.readable = sources.newReadable();
      const source = {
        pull: () => {
          this.setBackpressure(false);
          return this.change.promise;
        },
        cancel: (reason) => this.sourceCancel(reason),
      };
      this.source = bytes
        ? new sources.ByteController(this.readable, source, readableMark, undefined)
        : new sources.DefaultController(this.readable, source, readableMark, readableSize);
      sources.startController(this.source, () => this.startPromise.promise);
    }
    setBackpressure(backpressure) {
      this.change.resolve(undefined);
      this.change = withResolvers();
      this.backpressure = backpressure;
    }
    enqueue(chunk) {
      if (!this.source.canCloseOrEnqueue) {
        throw new TypeError("The readable side of this TransformStream is not open.");
      }
      try {
        this.source.enqueue(chunk, false);
      } catch (error) {
        this.errorWritable(error);
        throw this.readable.storedError;
      }
      if (!this.source.shouldCallPull() && !this.backpressure) this.setBackpressure(true);
    }
    error(error) {
      this.source.error(error);
      this.errorWritable(error);
    }
    errorWritable(error) {
      this.steps = {};
      this.sink.errorIfNeeded(error);
      if (this.backpressure) this.setBackpressure(false);
    }
    terminate() {
      this.source.close();
      this.errorWritable(new TypeError("This TransformStream has been terminated."));
    }
    transform(chunk) {
      const { transform } = this.steps;
      if (transform === undefined) {
        try {
          this.enqueue(chunk);
          return resolved(undefined);
        } catch (error) {
          return rejected(error);
        }
      }
      return then(transform(chunk), undefined, (error) => {
        this.error(error);
        throw error;
      });
    }
    sinkWrite(chunk) {
      const { check } = this.steps;
      if (check !== undefined) {
        const checked = check(chunk); // before the wait for room: a wrong chunk never gets any
        return then(
          checked,
          () => this.write(chunk),
          (error) => {
            this.error(error);
            throw error;
          },
        );
      }
      return this.write(chunk);
    }
    write(chunk) {
      if (!this.backpressure) return this.transform(chunk);
      return then(this.change.promise, () => {
        if (this.writable.state === "erroring") throw this.writable.storedError;
        return this.transform(chunk);
      });
    }
    // Close, abort and cancel end the transform once; whoever comes second waits for the first.
    finishWith(step, argument, succeed, fail) {
      if (this.finish !== null) return this.finish.promise;
      this.finish = withResolvers();
      const { finish } = this;
      const action = this.steps[step];
      const done = action === undefined ? resolved(undefined) : action(argument);
      this.steps = {};
      then(
        done,
        () => {
          const failure = succeed();
          if (failure === undefined) finish.resolve(undefined);
          else finish.reject(failure.error);
        },
        (error) => {
          fail(error);
          finish.reject(error);
        },
      );
      return finish.promise;
    }
    sinkClose() {
      const { readable, source } = this;
      return this.finishWith(
        "flush",
        undefined,
        () => {
          if (readable.state === "errored") return { error: readable.storedError };
          source.close();
          return undefined;
        },
        (error) => source.error(error),
      );
    }
    sinkAbort(reason) {
      const { readable, source } = this;
      return this.finishWith(
        "cancel",
        reason,
        () => {
          if (readable.state === "errored") return { error: readable.storedError };
          source.error(reason);
          return undefined;
        },
        (error) => source.error(error),
      );
    }
    sourceCancel(reason) {
      const { writable, sink } = this;
      const unblock = (error) => {
        sink.errorIfNeeded(error);
        if (this.backpressure) this.setBackpressure(false);
      };
      return this.finishWith(
        "cancel",
        reason,
        () => {
          if (writable.state === "errored") return { error: writable.storedError };
          unblock(reason);
          return undefined;
        },
        unblock,
      );
    }
  }

  class TransformStream {
    #transform;
    static #of(value) {
      if (boot.isObject(value) && #transform in value) return value.#transform;
      throw illegal();
    }
    constructor(transformer = undefined, writableStrategy = {}, readableStrategy = {}) {
      if (transformer === INTERNAL) {
        this.#transform = writableStrategy;
        return;
      }
      if (transformer === null) throw new TypeError("The transformer is null.");
      if (transformer?.readableType !== undefined) throw new RangeError("Invalid readableType.");
      if (transformer?.writableType !== undefined) throw new RangeError("Invalid writableType.");
      const steps = {};
      const transform = new Transform(steps, {
        readableMark: boot.highWaterMark(readableStrategy, 0),
        readableSize: boot.sizeAlgorithm(readableStrategy),
        writableMark: boot.highWaterMark(writableStrategy, 1),
        writableSize: boot.sizeAlgorithm(writableStrategy),
      });
      const controller = new TransformStreamDefaultController(INTERNAL, transform);
      const method = (name, pass) => {
        const call = boot.promiseMethod(transformer, name);
        return call === undefined ? undefined : pass(call);
      };
      steps.transform = method("transform", (call) => (chunk) => call(chunk, controller));
      steps.flush = method("flush", (call) => () => call(controller));
      steps.cancel = method("cancel", (call) => (reason) => call(reason));
      const start = boot.optionalMethod(transformer, "start");
      this.#transform = transform;
      transform.startPromise.resolve(
        start === undefined ? undefined : Reflect.apply(start, transformer, [controller]),
      );
    }
    get readable() {
      return boot.wrapStream(TransformStream.#of(this).readable);
    }
    get writable() {
      return boot.wrapWritable(TransformStream.#of(this).writable);
    }
  }

  class TransformStreamDefaultController {
    #transform;
    static #of(value) {
      if (boot.isObject(value) && #transform in value) return value.#transform;
      throw illegal();
    }
    constructor(token, transform) {
      if (token !== INTERNAL) throw boot.illegalConstructor();
      this.#transform = transform;
    }
    get desiredSize() {
      return TransformStreamDefaultController.#of(this).source.desiredSize;
    }
    enqueue(chunk = undefined) {
      TransformStreamDefaultController.#of(this).enqueue(chunk);
    }
    error(reason = undefined) {
      TransformStreamDefaultController.#of(this).error(reason);
    }
    terminate() {
      TransformStreamDefaultController.#of(this).terminate();
    }
  }

  // A transform of boot code: `define(enqueue)` gives its steps; they may throw.
  boot.createTransform = (define, options = {}) => {
    const steps = {};
    const transform = new Transform(steps, options);
    const settled = (method) => (argument) => {
      try {
        return resolved(method(argument));
      } catch (error) {
        return rejected(error);
      }
    };
    const defined = define((chunk) => transform.enqueue(chunk));
    for (const name of Object.keys(defined)) steps[name] = settled(defined[name]);
    transform.startPromise.resolve(undefined);
    return transform;
  };

  const bytesOnly = (chunk) => {
    const bytes = boot.bytesOf(chunk);
    if (bytes !== undefined) return bytes;
    throw new TypeError(
      typeof chunk === "string"
        ? "This TransformStream is being used as a byte stream, but received a string on its " +
            "writable side. If you wish to write a string, you'll probably want to explicitly " +
            "UTF-8-encode it with TextEncoder."
        : "This TransformStream is being used as a byte stream, but received an object of " +
            "non-ArrayBuffer/ArrayBufferView type on its writable side.",
    );
  };

  class IdentityTransformStream extends TransformStream {
    constructor(options = undefined) {
      if (options === INTERNAL) {
        super(INTERNAL, arguments[1]);
        return;
      }
      const define = (enqueue) => ({
        check: bytesOnly,
        transform(chunk) {
          const bytes = bytesOnly(chunk);
          if (bytes.byteLength > 0) enqueue(boot.copyBytes(bytes));
        },
      });
      super(INTERNAL, boot.createTransform(define, { bytes: true }));
    }
  }

  class FixedLengthStream extends IdentityTransformStream {
    constructor(expectedLength, options = undefined) {
      const expected = Number(expectedLength);
      if (!Number.isSafeInteger(expected) || expected < 0) {
        throw new TypeError("FixedLengthStream requires a length that is a whole number.");
      }
      let written = 0;
      const define = (enqueue) => ({
        check: bytesOnly,
        transform(chunk) {
          const bytes = bytesOnly(chunk);
          written += bytes.byteLength;
          if (written > expected) {
            throw new TypeError("Attempt to write too many bytes through a FixedLengthStream.");
          }
          if (bytes.byteLength > 0) enqueue(boot.copyBytes(bytes));
        },
        flush() {
          if (written < expected) {
            throw new TypeError("FixedLengthStream did not see all expected bytes before close().");
          }
        },
      });
      const transform = boot.createTransform(define, { bytes: true });
      transform.readable.expectedLength = expected;
      super(INTERNAL, transform);
    }
  }

  boot.TransformStream = TransformStream;
  boot.expose(
    TransformStream,
    TransformStreamDefaultController,
    IdentityTransformStream,
    FixedLengthStream,
  );
})();
