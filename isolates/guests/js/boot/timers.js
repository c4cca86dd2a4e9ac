// setTimeout and its family, scheduler.wait: each wait is an op of the host, each callback runs on
// behalf of the request that set the timer.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { lastOp, send } = boot.host;
  const { CANCEL } = boot.ToHost;
  const LONGEST_MS = 2 ** 31 - 1;
  const NO_OP = 0;

  const timers = boot.newMap();
  let lastId = 0;

  const delayOf = (delay) => {
    const ms = Math.trunc(Number(delay));
    return ms > 0 ? Math.min(ms, LONGEST_MS) : 0; // NaN too is 0
  };
  // Run `action` in so many milliseconds; returns the op, for cancelWait.
  const wait = (ms, action, abandoned = boot.noop) => {
    let asleep;
    try {
      asleep = boot.op(["timer", "sleep", [ms]], undefined);
    } catch (error) {
      boot.then(boot.rejected(error), action, abandoned); // too many are pending
      return NO_OP;
    }
    boot.then(asleep, action, abandoned);
    return lastOp();
  };
  const cancelWait = (op) => {
    if (op !== NO_OP) send(CANCEL, op, undefined, undefined);
  };

  const arm = (timer) => {
    timer.op = wait(
      timer.ms,
      () => fire(timer),
      () => timers.delete(timer.id),
    );
  };
  const fire = (timer) => {
    if (timers.get(timer.id) !== timer) return;
    if (!timer.repeats) timers.delete(timer.id);
    try {
      Reflect.apply(timer.callback, undefined, timer.args);
    } catch (error) {
      boot.reportError(error);
    }
    if (timer.repeats && timers.get(timer.id) === timer) arm(timer);
  };
  const set = (name, callback, delay, args, repeats) => {
    boot.requireServing();
    if (typeof callback !== "function") {
      throw new TypeError(
        `Failed to execute '${name}' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'Function'.`,
      );
    }
    lastId += 1;
    const timer = { id: lastId, op: 0, callback, ms: delayOf(delay), args, repeats };
    timers.set(timer.id, timer);
    arm(timer);
    return timer.id;
  };
  const clear = (id) => {
    const timer = timers.get(Number(id));
    if (timer === undefined) return;
    timers.delete(timer.id);
    cancelWait(timer.op);
  };

  const functions = {
    setTimeout(callback, delay = 0, ...args) {
      return set("setTimeout", callback, delay, args, false);
    },
    setInterval(callback, delay = 0, ...args) {
      return set("setInterval", callback, delay, args, true);
    },
    clearTimeout(id = undefined) {
      clear(id);
    },
    clearInterval(id = undefined) {
      clear(id);
    },
  };
  for (const name of Object.keys(functions)) boot.defineGlobal(name, functions[name], true);

  class Scheduler {
    constructor(token) {
      if (token !== boot.INTERNAL) throw boot.illegalConstructor();
    }
    async wait(delay, options = undefined) {
      boot.requireServing();
      const given = options?.signal;
      const signal = given === undefined ? undefined : boot.signalState(given);
      if (given !== undefined && signal === undefined) {
        throw new TypeError("The signal of scheduler.wait() is not an AbortSignal.");
      }
      if (signal?.aborted) throw signal.reason;
      const { promise, resolve, reject } = boot.withResolvers();
      let forget = boot.noop;
      const done = () => {
        forget();
        resolve(undefined);
      };
      const op = wait(delayOf(delay), done, reject);
      if (signal !== undefined) {
        forget = boot.onAbort(signal, (reason) => {
          reject(reason);
          cancelWait(op);
        });
      }
      return promise;
    }
  }
  boot.shape(Scheduler);
  boot.defineGlobal("scheduler", new Scheduler(boot.INTERNAL), true);

  boot.sleep = (ms, action) => wait(delayOf(ms), action);
})();
