export default {
  clone: () => structuredClone({ a: [1, , 3], d: new Date(5), n: null, u: undefined, r: /x/gi, big: 5n.toString() }),
  clone_cycle: () => {
    const value = { name: "x" };
    value.self = value;
    const copy = structuredClone(value);
    return [copy !== value, copy.self === copy];
  },
  clone_map_and_set: () => {
    const { map, set } = structuredClone({ map: new Map([[1, { a: 2 }]]), set: new Set(["x"]) });
    return [map.get(1).a, set.has("x")];
  },
  clone_error: () => {
    const copy = structuredClone(new RangeError("far"));
    return [copy instanceof RangeError, copy.name, copy.message];
  },
  clone_function: () => structuredClone(() => 1),
  clone_symbol: () => structuredClone(Symbol("s")),
  clone_transfer: () => {
    const buffer = new Uint8Array([1, 2, 3]).buffer;
    const copy = structuredClone(buffer, { transfer: [buffer] });
    return [buffer.byteLength, copy.byteLength];
  },
  eval_is_refused: () => (0, eval)("1"),
  function_is_refused: () => new Function("return 1")(),
  user_agent: () => navigator.userAgent,
  self_is_global: () => self === globalThis,
  clock_moves_with_timers: async () => {
    const before = Date.now();
    await new Promise((resolve) => setTimeout(resolve, 20));
    return Date.now() - before >= 19;
  },
  timers_in_order: async () => {
    const seen = [];
    setTimeout(() => seen.push("late"), 10);
    setTimeout((a, b) => seen.push(a + b), 0, "so", "on");
    clearTimeout(setTimeout(() => seen.push("never"), 0));
    await new Promise((resolve) => setTimeout(resolve, 30));
    return seen;
  },
  interval: async () => {
    let count = 0;
    await new Promise((resolve) => {
      const id = setInterval(() => {
        if (++count === 3) {
          clearInterval(id);
          resolve();
        }
      }, 1);
    });
    return count;
  },
  microtasks_before_timers: async () => {
    const seen = [];
    await new Promise((resolve) => {
      setTimeout(() => {
        seen.push("timer");
        resolve();
      }, 0);
      queueMicrotask(() => seen.push("microtask"));
      seen.push("now");
    });
    return seen;
  },
  scheduler_wait: async () => (await scheduler.wait(1)) === undefined,
  wait_until_needs_this: ({ ctx }) => {
    const { waitUntil } = ctx;
    waitUntil(Promise.resolve());
  },
  dom_exception: () => {
    const error = new DOMException("m", "NotFoundError");
    return [error instanceof Error, error.name, error.code, error.message];
  },
  performance: () => [typeof performance.now(), performance.timeOrigin],
  fetch_needs_a_url: () => fetch("/relative"),
  fetch_needs_http: () => fetch("ftp://example.com/"),
  env_is_plain: ({ env }) => [Object.prototype.toString.call(env), Object.keys(env).sort()],
};
