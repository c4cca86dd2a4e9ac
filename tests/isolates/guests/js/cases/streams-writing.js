// WritableStream, pipes and transforms; strategies.
import { all, bytes, count, text, throws } from "./given.js";

export default {
  "writes are in order, one at a time": [
    async () => {
      const log = [];
      const s = new WritableStream({
        async write(x) {
          log.push("+" + x);
          await 0;
          log.push("-" + x);
        },
        close() {
          log.push("c");
        },
      });
      const w = s.getWriter();
      w.write(1);
      w.write(2);
      await w.close();
      return log;
    },
    ["+1", "-1", "+2", "-2", "c"],
  ],
  "ready and desiredSize": [
    async () => {
      let go;
      const s = new WritableStream(
        {
          write() {
            return new Promise((d) => {
              go = d;
            });
          },
        },
        { highWaterMark: 1 },
      );
      const w = s.getWriter();
      await w.ready;
      const before = w.desiredSize;
      w.write(1);
      const during = w.desiredSize;
      await 0;
      await 0;
      go();
      await w.ready;
      return [before, during, w.desiredSize];
    },
    [1, 0, 1],
  ],
  "a failing write errors the stream": [
    async () => {
      const w = new WritableStream({
        write() {
          throw new RangeError("x");
        },
      }).getWriter();
      const a = await w.write(1).catch((e) => e.name);
      const b = await w.write(2).catch((e) => e.message);
      const c = await w.closed.catch((e) => e.message);
      return [a, b, c];
    },
    ["RangeError", "x", "x"],
  ],
  abort: [
    async () => {
      const log = [];
      let signal;
      const s = new WritableStream({
        start(c) {
          signal = c.signal;
        },
        abort(r) {
          log.push(r);
        },
      });
      const w = s.getWriter();
      await 0;
      const closed = w.closed.catch((e) => e);
      await w.abort("why");
      return [log, signal.aborted, signal.reason, await closed];
    },
    [["why"], true, "why", "why"],
  ],
  "close twice": [
    async () => {
      const w = new WritableStream().getWriter();
      await w.close();
      return w.close().catch((e) => e.name);
    },
    "TypeError",
  ],
  "controller.error": [
    () => {
      let c;
      const w = new WritableStream({
        start(x) {
          c = x;
        },
      }).getWriter();
      c.error(new RangeError("x"));
      return w.write(1).catch((e) => e.message);
    },
    "x",
  ],
  "pipeTo moves and closes": [
    async () => {
      const log = [];
      await count(3).pipeTo(
        new WritableStream({
          write(x) {
            log.push(x);
          },
          close() {
            log.push("c");
          },
        }),
      );
      return log;
    },
    [0, 1, 2, "c"],
  ],
  "pipeTo passes an error on": [
    async () => {
      const log = [];
      const s = new ReadableStream({
        pull() {
          throw new RangeError("x");
        },
      });
      const e = await s
        .pipeTo(
          new WritableStream({
            abort(r) {
              log.push(r.message);
            },
          }),
        )
        .catch((e) => e.name);
      return [e, log];
    },
    ["RangeError", ["x"]],
  ],
  "pipeTo cancels its source when the sink fails": [
    async () => {
      const log = [];
      const e = await count(9, log)
        .pipeTo(
          new WritableStream({
            write() {
              throw new RangeError("x");
            },
          }),
        )
        .catch((e) => e.name);
      return [e, log.map((r) => r.message)];
    },
    ["RangeError", ["x"]],
  ],
  "pipeTo stops on a signal": [
    async () => {
      const c = new AbortController();
      const log = [];
      const s = new ReadableStream({
        cancel(r) {
          log.push("c" + r);
        },
      });
      const p = s.pipeTo(
        new WritableStream({
          abort(r) {
            log.push("a" + r);
          },
        }),
        { signal: c.signal },
      );
      c.abort(1);
      const e = await p.catch((e) => e);
      return [e, log.sort()];
    },
    [1, ["a1", "c1"]],
  ],
  "prevent options": [
    async () => {
      const log = [];
      const t = new WritableStream({
        write(x) {
          log.push(x);
        },
        close() {
          log.push("c");
        },
      });
      await count(1).pipeTo(t, { preventClose: true });
      await count(1).pipeTo(t);
      return log;
    },
    [0, 0, "c"],
  ],
  "pipeThrough a transform with flush": [
    () => {
      return all(
        count(3).pipeThrough(
          new TransformStream({
            start(c) {
              c.enqueue("s");
            },
            transform(x, c) {
              if (x !== 1) c.enqueue(x * 10);
            },
            flush(c) {
              c.enqueue("f");
            },
          }),
        ),
      );
    },
    ["s", 0, 20, "f"],
  ],
  "a transform that throws errors both sides": [
    async () => {
      const t = new TransformStream({
        transform() {
          throw new RangeError("x");
        },
      });
      const w = t.writable.getWriter();
      const r = t.readable.getReader();
      const p = w.write(1).catch((e) => e.name);
      const q = r.read().catch((e) => e.message);
      return [await p, await q];
    },
    ["RangeError", "x"],
  ],
  terminate: [
    async () => {
      const t = new TransformStream({
        transform(x, c) {
          c.enqueue(x);
          c.terminate();
        },
      });
      const w = t.writable.getWriter();
      w.write(1).catch(() => {});
      w.closed.catch(() => {});
      const out = await all(t.readable);
      return [out, await w.write(2).catch((e) => e.name)];
    },
    [[1], "TypeError"],
  ],
  "cancelling the readable side tells the transformer": [
    async () => {
      const log = [];
      const t = new TransformStream({
        cancel(r) {
          log.push(r);
        },
      });
      await t.readable.cancel("why");
      return [
        log,
        await t.writable
          .getWriter()
          .write(1)
          .catch((e) => e),
      ];
    },
    [["why"], "why"],
  ],
  "a transform holds back its writer": [
    async () => {
      const t = new TransformStream();
      const w = t.writable.getWriter();
      let written = false;
      const p = w.write(1).then(() => {
        written = true;
      });
      await 0;
      await 0;
      await 0;
      const before = written;
      await t.readable.getReader().read();
      await p;
      return [before, written];
    },
    [false, true],
  ],
  "an identity transform takes bytes only": [
    async () => {
      const { writable } = new IdentityTransformStream();
      await writable.getWriter().write("text");
    },
    throws("TypeError"),
  ],
  "an identity transform reads by BYOB": [
    async () => {
      const { readable, writable } = new IdentityTransformStream();
      const w = writable.getWriter();
      const p = w.write(bytes("hello"));
      const r = readable.getReader({ mode: "byob" });
      const a = await r.read(new Uint8Array(3));
      const b = await r.read(new Uint8Array(3));
      await p;
      return [text(a.value), text(b.value)];
    },
    ["hel", "lo"],
  ],
  "too many bytes for a fixed length": [
    async () => {
      const { readable, writable } = new FixedLengthStream(2);
      readable
        .getReader()
        .read()
        .catch(() => {});
      await writable.getWriter().write(bytes("abc"));
    },
    throws("TypeError", "Attempt to write too many bytes through a FixedLengthStream."),
  ],
  "too few bytes for a fixed length": [
    async () => {
      const { readable, writable } = new FixedLengthStream(2);
      new Response(readable).text().catch(() => {});
      await writable.getWriter().close();
    },
    throws("TypeError", "FixedLengthStream did not see all expected bytes before close()."),
  ],
  strategies: [
    () => {
      const c = new CountQueuingStrategy({ highWaterMark: 3 });
      const b = new ByteLengthQueuingStrategy({ highWaterMark: 4 });
      return [
        c.highWaterMark,
        c.size(),
        b.highWaterMark,
        b.size(new Uint8Array(7)),
        c.size === new CountQueuingStrategy({ highWaterMark: 1 }).size,
      ];
    },
    [3, 1, 4, 7, true],
  ],
  "bad high water mark": [
    () => new ReadableStream({}, { highWaterMark: -1 }),
    throws("RangeError"),
  ],
  "many chunks do not recurse": [
    async () => {
      let n = 0;
      const s = new ReadableStream({
        start(c) {
          for (let i = 0; i < 20000; i++) c.enqueue(new Uint8Array(1));
          c.close();
        },
      });
      return (await new Response(s).bytes()).length;
    },
    20000,
  ],
  "classes look native": [
    () => [
      String(new ReadableStream()),
      String(new WritableStream()),
      String(new TransformStream()),
      Object.keys(new ReadableStream()),
      Object.keys(WritableStream.prototype),
    ],
    [
      "[object ReadableStream]",
      "[object WritableStream]",
      "[object TransformStream]",
      [],
      ["locked", "abort", "close", "getWriter"],
    ],
  ],
  "illegal invocations": [
    () =>
      [
        () => ReadableStream.prototype.getReader.call({}),
        () => Object.getOwnPropertyDescriptor(WritableStream.prototype, "locked").get.call(1),
        () => new ReadableStreamDefaultController(),
        () => new ReadableStreamBYOBRequest(),
      ].map((f) => {
        try {
          f();
        } catch (e) {
          return e.name;
        }
      }),
    ["TypeError", "TypeError", "TypeError", "TypeError"],
  ],
};
