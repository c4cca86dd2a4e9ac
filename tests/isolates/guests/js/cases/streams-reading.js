// ReadableStream and its readers.
import { all, bytes, count, text, throws } from "./given.js";

export default {
  "read to the end": [
    async () => {
      const r = count(2).getReader();
      return [await r.read(), await r.read(), await r.read(), await r.closed];
    },
    [{ value: 0, done: false }, { value: 1, done: false }, { done: true }, "(undefined)"],
  ],
  "async iteration": [
    () => {
      return all(count(3));
    },
    [0, 1, 2],
  ],
  "leaving the loop cancels": [
    async () => {
      const log = [];
      const s = count(9, log);
      for await (const x of s) if (x === 1) break;
      return [log.length, s.locked];
    },
    [1, false],
  ],
  preventCancel: [
    async () => {
      const s = count(4);
      for await (const x of s.values({ preventCancel: true })) if (x === 1) break;
      return all(s);
    },
    [2, 3],
  ],
  "from an iterable": [
    () => {
      return all(ReadableStream.from([1, Promise.resolve(2), 3]));
    },
    [1, 2, 3],
  ],
  "from an async generator, cancelled": [
    async () => {
      let closed = false;
      async function* g() {
        try {
          yield 1;
          yield 2;
        } finally {
          closed = true;
        }
      }
      const r = ReadableStream.from(g()).getReader();
      const first = await r.read();
      await r.cancel();
      return [first.value, closed];
    },
    [1, true],
  ],
  "start, pull and backpressure": [
    async () => {
      const log = [];
      const s = new ReadableStream(
        {
          start(c) {
            log.push("s", c.desiredSize);
          },
          pull(c) {
            log.push("p", c.desiredSize);
            c.enqueue(1);
          },
        },
        { highWaterMark: 2 },
      );
      await 0;
      await 0;
      await 0;
      await new Promise((d) => setTimeout(d));
      return log;
    },
    ["s", 2, "p", 2, "p", 1],
  ],
  "a size function": [
    () => {
      let c;
      new ReadableStream(
        {
          start(x) {
            c = x;
          },
        },
        new ByteLengthQueuingStrategy({ highWaterMark: 10 }),
      );
      c.enqueue(new Uint8Array(4));
      return c.desiredSize;
    },
    6,
  ],
  "an error reaches reader and closed": [
    async () => {
      const s = new ReadableStream({
        pull() {
          throw new RangeError("x");
        },
      });
      const r = s.getReader();
      const a = await r.read().catch((e) => e.name);
      const b = await r.closed.catch((e) => e.message);
      return [a, b];
    },
    ["RangeError", "x"],
  ],
  "start may throw": [
    () =>
      new ReadableStream({
        start() {
          throw new RangeError("x");
        },
      }),
    throws("RangeError", "x"),
  ],
  "a stream has one reader": [
    () => {
      const s = new ReadableStream();
      s.getReader();
      s.getReader();
    },
    throws("TypeError", "This ReadableStream is currently locked to a reader."),
  ],
  "a released reader rejects its reads": [
    async () => {
      const s = new ReadableStream();
      const r = s.getReader();
      const p = r.read();
      r.releaseLock();
      const a = await p.catch((e) => e.name);
      const b = await r.read().catch((e) => e.name);
      return [a, b, s.locked];
    },
    ["TypeError", "TypeError", false],
  ],
  "enqueue after close": [
    () => {
      let c;
      new ReadableStream({
        start(x) {
          c = x;
        },
      });
      c.close();
      c.enqueue(1);
    },
    throws("TypeError"),
  ],
  tee: [
    async () => {
      const [a, b] = count(3).tee();
      return [await all(a), await all(b)];
    },
    [
      [0, 1, 2],
      [0, 1, 2],
    ],
  ],
  "tee cancels its source when both have": [
    async () => {
      const log = [];
      const [a, b] = count(3, log).tee();
      const p = a.cancel("a");
      await b.cancel("b");
      await p;
      return log;
    },
    [["a", "b"]],
  ],
  "tee errors both": [
    () => {
      const [a, b] = new ReadableStream({
        pull() {
          throw new RangeError();
        },
      }).tee();
      return Promise.all(
        [a, b].map((s) =>
          s
            .getReader()
            .read()
            .catch((e) => e.name),
        ),
      );
    },
    ["RangeError", "RangeError"],
  ],
  "tee of bytes gives each its own": [
    async () => {
      const [a, b] = new Response("ab").body.tee();
      const x = (await a.getReader().read()).value;
      x[0] = 0;
      return [x, (await b.getReader().read()).value];
    },
    [{ bytes: [0, 98] }, { bytes: [97, 98] }],
  ],
  "a byte stream fills the reader's buffer": [
    async () => {
      const s = new ReadableStream({
        type: "bytes",
        pull(c) {
          const v = c.byobRequest.view;
          v[0] = 1;
          v[1] = 2;
          c.byobRequest.respond(2);
        },
      });
      const r = s.getReader({ mode: "byob" });
      const { value, done } = await r.read(new Uint8Array(8));
      return [value, done, value.buffer.byteLength];
    },
    [{ bytes: [1, 2] }, false, 8],
  ],
  "enqueued bytes fill the reader's buffer": [
    async () => {
      const r = new Response("abcdef").body.getReader({ mode: "byob" });
      const a = await r.read(new Uint8Array(4));
      const b = await r.read(new Uint8Array(4));
      const c = await r.read(new Uint8Array(4));
      return [text(a.value), text(b.value), c.done, c.value.byteLength];
    },
    ["abcd", "ef", true, 0],
  ],
  "min waits for enough": [
    async () => {
      let c;
      const s = new ReadableStream({
        type: "bytes",
        start(x) {
          c = x;
        },
      });
      const p = s.getReader({ mode: "byob" }).read(new Uint8Array(8), { min: 3 });
      c.enqueue(bytes("ab"));
      c.enqueue(bytes("cd"));
      return text((await p).value);
    },
    "abcd",
  ],
  "wider views": [
    async () => {
      let c;
      const s = new ReadableStream({
        type: "bytes",
        start(x) {
          c = x;
        },
      });
      const p = s.getReader({ mode: "byob" }).read(new Uint16Array(4));
      c.enqueue(new Uint8Array([1, 0, 2]));
      c.enqueue(new Uint8Array([0]));
      return [...(await p).value];
    },
    [1],
  ],
  autoAllocateChunkSize: [
    async () => {
      const s = new ReadableStream({
        type: "bytes",
        autoAllocateChunkSize: 4,
        pull(c) {
          c.byobRequest.view[0] = 9;
          c.byobRequest.respond(1);
        },
      });
      return (await s.getReader().read()).value;
    },
    { bytes: [9] },
  ],
  "enqueue takes the buffer": [
    () => {
      let c;
      new ReadableStream({
        type: "bytes",
        start(x) {
          c = x;
        },
      });
      const b = bytes("abc");
      c.enqueue(b);
      return b.byteLength;
    },
    0,
  ],
  "a byte stream takes views only": [
    () => {
      let c;
      new ReadableStream({
        type: "bytes",
        start(x) {
          c = x;
        },
      });
      c.enqueue("x");
    },
    throws("TypeError"),
  ],
  "closing with a BYOB read open": [
    async () => {
      let c;
      const s = new ReadableStream({
        type: "bytes",
        start(x) {
          c = x;
        },
      });
      const p = s.getReader({ mode: "byob" }).read(new Uint8Array(3));
      c.close();
      c.byobRequest.respond(0);
      const { value, done } = await p;
      return [value.byteLength, done];
    },
    [0, true],
  ],
  "byob needs a byte stream": [
    () => new ReadableStream().getReader({ mode: "byob" }),
    throws("TypeError"),
  ],
};
