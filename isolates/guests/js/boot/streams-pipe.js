// pipeTo(): moves chunks from a readable to a writable record until either ends.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { then } = boot;

  boot.pipeSettings = (options) => {
    const signal = options?.signal;
    if (signal !== undefined && boot.signalState(signal) === undefined) {
      throw new TypeError("The pipe's signal is not an AbortSignal.");
    }
    return {
      preventAbort: Boolean(options?.preventAbort),
      preventCancel: Boolean(options?.preventCancel),
      preventClose: Boolean(options?.preventClose),
      signal,
    };
  };

  boot.pipe = (source, target, settings) => {
    const core = boot.readable;
    const sinks = boot.writable;
    const { signal, preventAbort, preventCancel, preventClose } = settings;
    const reader = core.acquireReader(source);
    const writer = sinks.acquireWriter(target);
    source.disturbed = true;
    const { promise, resolve, reject } = boot.withResolvers();
    let shuttingDown = false;
    let reading = false;
    let lastWrite = boot.resolved(undefined);

    const finalize = (failed, error) => {
      sinks.releaseWriter(writer);
      core.releaseReader(reader);
      if (signal !== undefined) signal.removeEventListener("abort", onAbort);
      if (failed) reject(error);
      else resolve(undefined);
    };
    // Everything that was read is written before the pipe ends.
    const writesDone = () => {
      const waited = lastWrite;
      return then(waited, () => (waited === lastWrite ? undefined : writesDone()), boot.noop);
    };
    const shutdown = (failed, error, action = undefined) => {
      if (shuttingDown) return;
      shuttingDown = true;
      const act = () => {
        if (action === undefined) {
          finalize(failed, error);
          return;
        }
        then(
          action(),
          () => finalize(failed, error),
          (reason) => finalize(true, reason),
        );
      };
      if (target.state === "writable" && !sinks.closeQueuedOrInFlight(target)) {
        then(writesDone(), act);
      } else {
        act();
      }
    };
    const onAbort = () => {
      const error = signal.reason;
      shutdown(true, error, () => {
        const actions = [];
        if (!preventAbort && target.state === "writable") {
          actions.push(sinks.abortStream(target, error));
        }
        if (!preventCancel && source.state === "readable") {
          actions.push(core.cancelStream(source, error));
        }
        return Promise.all(actions);
      });
    };

    const sourceClosed = () => {
      if (preventClose) shutdown(false, undefined);
      else shutdown(false, undefined, () => sinks.closeWithErrorPropagation(writer));
    };
    const sourceErrored = (error) => {
      if (preventAbort) shutdown(true, error);
      else shutdown(true, error, () => sinks.abortStream(target, error));
    };
    const targetErrored = (error) => {
      if (preventCancel) shutdown(true, error);
      else shutdown(true, error, () => core.cancelStream(source, error));
    };

    const step = () => {
      if (shuttingDown || reading) return;
      if (target.backpressure && target.state === "writable") {
        then(sinks.readyPromise(writer), step, boot.noop);
        return;
      }
      reading = true;
      core.read(reader, {
        chunk: (chunk) => {
          reading = false;
          lastWrite = boot.handled(sinks.write(writer, chunk));
          boot.microtask(step);
        },
        close: () => {
          reading = false;
        },
        error: () => {
          reading = false;
        },
      });
    };

    if (signal !== undefined) {
      if (signal.aborted) {
        onAbort();
        return promise;
      }
      signal.addEventListener("abort", onAbort);
    }
    if (source.state === "errored") sourceErrored(source.storedError);
    else if (target.state === "errored" || target.state === "erroring") {
      targetErrored(target.storedError);
    } else if (source.state === "closed") sourceClosed();
    else if (sinks.closeQueuedOrInFlight(target) || target.state === "closed") {
      targetErrored(new TypeError("The destination of the pipe is closed."));
    } else {
      then(core.closedPromise(reader), sourceClosed, sourceErrored);
      then(sinks.closedPromise(writer), boot.noop, targetErrored);
      step();
    }
    return promise;
  };
})();
