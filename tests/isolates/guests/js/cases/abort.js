// AbortController, AbortSignal, Event and EventTarget.
import { throws } from "./given.js";

export default {
  abort: [
    () => {
      const c = new AbortController();
      const seen = [];
      c.signal.onabort = (e) => seen.push(e.type, e.isTrusted, e.target === c.signal);
      c.signal.addEventListener("abort", () => seen.push(2));
      c.abort();
      c.abort();
      return [seen, c.signal.aborted, c.signal.reason.name];
    },
    [["abort", true, true, 2], true, "AbortError"],
  ],
  "abort with a reason": [
    () => {
      const c = new AbortController();
      c.abort("why");
      try {
        c.signal.throwIfAborted();
      } catch (e) {
        return e;
      }
    },
    "why",
  ],
  "AbortSignal.abort": [
    () => {
      const s = AbortSignal.abort();
      return [s.aborted, s.reason instanceof DOMException, s.reason.name, s.reason.code];
    },
    [true, true, "AbortError", 20],
  ],
  timeout: [
    async () => {
      const s = AbortSignal.timeout(1);
      await new Promise((done) => s.addEventListener("abort", done));
      return [s.reason.name, s.reason.message];
    },
    ["TimeoutError", "The operation was aborted due to timeout"],
  ],
  "any follows its sources": [
    () => {
      const a = new AbortController();
      const b = new AbortController();
      const s = AbortSignal.any([a.signal, b.signal]);
      const t = AbortSignal.any([s]);
      const before = t.aborted;
      b.abort(7);
      return [before, s.aborted, t.reason, a.signal.aborted];
    },
    [false, true, 7, false],
  ],
  "any of an aborted one": [() => AbortSignal.any([AbortSignal.abort(3)]).reason, 3],
  "signals are not constructed": [
    () => new AbortSignal(),
    throws("TypeError", "Illegal constructor"),
  ],
  "a listener goes with its signal": [
    () => {
      const c = new AbortController();
      const t = new EventTarget();
      let n = 0;
      t.addEventListener("x", () => n++, { signal: c.signal });
      t.dispatchEvent(new Event("x"));
      c.abort();
      t.dispatchEvent(new Event("x"));
      return n;
    },
    1,
  ],
  "once, duplicates, removal": [
    () => {
      const t = new EventTarget();
      const seen = [];
      const f = () => seen.push("f");
      const g = {
        handleEvent() {
          seen.push("g");
        },
      };
      t.addEventListener("x", f);
      t.addEventListener("x", f);
      t.addEventListener("x", g, { once: true });
      t.dispatchEvent(new Event("x"));
      t.removeEventListener("x", f);
      t.dispatchEvent(new Event("x"));
      return seen;
    },
    ["f", "g"],
  ],
  stopImmediatePropagation: [
    () => {
      const t = new EventTarget();
      const seen = [];
      t.addEventListener("x", (e) => {
        seen.push(1);
        e.stopImmediatePropagation();
      });
      t.addEventListener("x", () => seen.push(2));
      t.dispatchEvent(new Event("x"));
      return seen;
    },
    [1],
  ],
  "a listener that throws does not stop the others": [
    () => {
      const t = new EventTarget();
      let n = 0;
      t.addEventListener("x", () => {
        throw new Error("no");
      });
      t.addEventListener("x", () => n++);
      return [t.dispatchEvent(new Event("x")), n];
    },
    [true, 1],
  ],
  "events know their target": [
    () => {
      const t = new EventTarget();
      let seen;
      t.addEventListener("x", (e) => {
        seen = [e.target === t, e.currentTarget === t, e.eventPhase];
      });
      const e = new Event("x");
      t.dispatchEvent(e);
      return [...seen, e.currentTarget, e.eventPhase];
    },
    [true, true, 2, null, 0],
  ],
  "custom events carry a detail": [() => new CustomEvent("x", { detail: { a: 1 } }).detail.a, 1],
  subclasses: [
    () => {
      class T extends EventTarget {
        n = 0;
        go() {
          this.dispatchEvent(new Event("x"));
        }
      }
      const t = new T();
      t.addEventListener("x", function () {
        this.n++;
      });
      t.go();
      return t.n;
    },
    1,
  ],
  "an event is dispatched once at a time": [
    () => {
      const t = new EventTarget();
      let name;
      t.addEventListener("x", (e) => {
        try {
          t.dispatchEvent(e);
        } catch (error) {
          name = error.name;
        }
      });
      t.dispatchEvent(new Event("x"));
      return name;
    },
    "InvalidStateError",
  ],
  "the request has a signal that has not aborted": [
    ({ request }) => [request.signal instanceof AbortSignal, request.signal.aborted],
    [true, false],
  ],
  "toString tags": [
    () => [`${new Event("x")}`, `${new AbortController()}`, `${AbortSignal.abort()}`],
    ["[object Event]", "[object AbortController]", "[object AbortSignal]"],
  ],
};
