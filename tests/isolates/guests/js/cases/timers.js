// setTimeout and its family, scheduler.wait, queueMicrotask, performance, structuredClone, navigator.
import { throws } from "./given.js";

export default {
  "arguments are passed on, the number is positive": [
    () => {
      return new Promise((done) => {
        const id = setTimeout((...args) => done([id > 0, args]), 1, "a", "b");
      });
    },
    [true, ["a", "b"]],
  ],
  "shorter waits end first": [
    async () => {
      const log = [];
      setTimeout(() => log.push(30), 30);
      setTimeout(() => log.push(1), 1);
      await scheduler.wait(60);
      return log;
    },
    [1, 30],
  ],
  "a cleared timeout never fires": [
    async () => {
      let fired = false;
      clearTimeout(
        setTimeout(() => {
          fired = true;
        }, 1),
      );
      clearTimeout(999);
      clearTimeout();
      await scheduler.wait(10);
      return fired;
    },
    false,
  ],
  "an interval repeats until it is cleared": [
    async () => {
      let n = 0;
      await new Promise((done) => {
        const id = setInterval(() => {
          if (++n === 3) {
            clearInterval(id);
            done();
          }
        }, 1);
      });
      await scheduler.wait(10);
      return n;
    },
    3,
  ],
  "odd delays": [
    async () => {
      const log = [];
      for (const ms of [undefined, -5, NaN, "x", null, "1"])
        await new Promise((d) => setTimeout(d, ms)).then(() => log.push(1));
      return log.length;
    },
    6,
  ],
  "an infinite delay is held and can be cleared": [
    () => {
      const id = setTimeout(() => {}, Infinity);
      clearTimeout(id);
      return true;
    },
    true,
  ],
  "a timer needs a function": [
    () => setTimeout("code", 1),
    throws(
      "TypeError",
      "Failed to execute 'setTimeout' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'Function'.",
    ),
  ],
  "a waiting scheduler is aborted": [
    () => {
      const c = new AbortController();
      const p = scheduler.wait(60000, { signal: c.signal });
      c.abort();
      return p.catch((e) => e.name);
    },
    "AbortError",
  ],
  "an aborted signal does not wait": [
    () => {
      return scheduler.wait(60000, { signal: AbortSignal.abort(5) }).catch((e) => e);
    },
    5,
  ],
  "microtasks run in order": [
    async () => {
      const log = [];
      queueMicrotask(() => log.push(1));
      Promise.resolve().then(() => log.push(2));
      log.push(0);
      await 0;
      await 0;
      return log;
    },
    [0, 1, 2],
  ],
  "time stands still while code runs": [
    () => {
      const before = [Date.now(), performance.now()];
      for (let i = 0; i < 100000; i++);
      return [before[0] === Date.now(), before[1] === performance.now(), performance.timeOrigin];
    },
    [true, true, 0],
  ],
  "time moves with I/O": [
    async () => {
      const before = Date.now();
      await scheduler.wait(20);
      return Date.now() > before;
    },
    true,
  ],
  structuredClone: [
    () => {
      const o = {
        d: new Date(5),
        m: new Map([[1, { a: [1n] }]]),
        s: new Set(["x"]),
        r: /a/g,
        e: new RangeError("x"),
        u: undefined,
      };
      o.self = o;
      const c = structuredClone(o);
      return [
        c !== o,
        c.self === c,
        c.d.getTime(),
        c.m.get(1).a[0] === 1n,
        c.s.has("x"),
        c.r.flags,
        c.e.name,
        "u" in c,
      ];
    },
    [true, true, 5, true, true, "g", "RangeError", true],
  ],
  "structuredClone transfers": [
    () => {
      const b = new ArrayBuffer(4);
      const c = structuredClone(b, { transfer: [b] });
      return [b.byteLength, c.byteLength];
    },
    [0, 4],
  ],
  "structuredClone refuses functions": [() => structuredClone(() => {}), throws("DataCloneError")],
  "structuredClone refuses platform objects": [
    () => structuredClone(new Headers()),
    throws("DataCloneError"),
  ],
  navigator: [
    () => {
      return [navigator.userAgent, String(navigator)];
    },
    ["Cloudflare-Workers", "[object Navigator]"],
  ],
  self: [
    () => {
      return [self === globalThis, typeof self.fetch];
    },
    [true, "function"],
  ],
  "code from strings is refused": [() => eval("1"), throws("EvalError")],
};
