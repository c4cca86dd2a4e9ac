// Request, Response, Blob, File, FormData: bodies and what is around them.
import { bytes, throws } from "./given.js";

export default {
  "text, json, bytes": [
    async () => [
      await new Response("é").text(),
      await new Response('{"a":1}').json(),
      await new Response("hi").bytes(),
      await new Response("hi").arrayBuffer(),
    ],
    ["é", { a: 1 }, { bytes: [104, 105] }, { bytes: [104, 105] }],
  ],
  "an empty body": [
    async () => [
      await new Response().text(),
      new Response().body,
      await new Response(null).bytes(),
    ],
    ["", null, { bytes: [] }],
  ],
  "bad json": [async () => await new Response("{").json(), throws("SyntaxError")],
  bodyUsed: [
    async () => {
      const r = new Response("x");
      const before = r.bodyUsed;
      await r.text();
      return [before, r.bodyUsed];
    },
    [false, true],
  ],
  "a body is read once": [
    async () => {
      const r = new Response("x");
      await r.text();
      await r.json();
    },
    throws(
      "TypeError",
      "Body has already been used. It can only be used once. Use tee() first if you need to read it twice.",
    ),
  ],
  "reading through the stream uses the body": [
    async () => {
      const r = new Response("x");
      await r.body.getReader().read();
      return r.bodyUsed;
    },
    true,
  ],
  "looking at the stream does not": [
    async () => {
      const r = new Response("x");
      const b = r.body;
      return [r.bodyUsed, b === r.body, await r.text(), b.locked];
    },
    [false, true, "x", true],
  ],
  "content types": [
    () =>
      [
        new Response("a"),
        new Response(new URLSearchParams("a=b")),
        new Response(new Blob(["x"], { type: "A/B" })),
        new Response(bytes("x")),
        new Response("x", { headers: { "Content-Type": "x/y" } }),
      ].map((r) => r.headers.get("content-type")),
    [
      "text/plain;charset=UTF-8",
      "application/x-www-form-urlencoded;charset=UTF-8",
      "a/b",
      null,
      "x/y",
    ],
  ],
  "what is sent is what was given": [
    () => {
      const b = bytes("abc");
      const r = new Response(b);
      b[0] = 120;
      return r.text();
    },
    "abc",
  ],
  "anything else is text": [
    async () => [await new Response(5).text(), await new Response({}).text()],
    ["5", "[object Object]"],
  ],
  "a stream of bytes": [
    () =>
      new Response(
        new ReadableStream({
          start(c) {
            c.enqueue(bytes("a"));
            c.enqueue(bytes("b").buffer);
            c.close();
          },
        }),
      ).text(),
    "ab",
  ],
  "a stream of anything else fails": [
    async () =>
      await new Response(
        new ReadableStream({
          start(c) {
            c.enqueue("text");
          },
        }),
      ).text(),
    throws("TypeError"),
  ],
  "a locked stream is no body": [
    () => {
      const s = new ReadableStream();
      s.getReader();
      new Response(s);
    },
    throws("TypeError", "This ReadableStream is currently locked to a reader."),
  ],
  "a disturbed stream is no body": [
    async () => {
      const s = new Response("x").body;
      const r = s.getReader();
      await r.read();
      r.releaseLock();
      new Response(s);
    },
    throws(
      "TypeError",
      "This ReadableStream is disturbed (has already been read from), and cannot be used as a body.",
    ),
  ],
  "clones share nothing": [
    async () => {
      const r = new Response("x", { status: 201, headers: { a: "b" } });
      const c = r.clone();
      c.headers.set("a", "c");
      return [await r.text(), await c.text(), c.status, r.headers.get("a")];
    },
    ["x", "x", 201, "b"],
  ],
  "cloning a stream": [
    async () => {
      const r = new Response(
        new ReadableStream({
          start(c) {
            c.enqueue(bytes("ab"));
            c.close();
          },
        }),
      );
      const c = r.clone();
      return [await c.text(), await r.text()];
    },
    ["ab", "ab"],
  ],
  statuses: [
    () =>
      [199, 600, NaN].map((status) => {
        try {
          new Response("", { status });
        } catch (e) {
          return e.name + e.message;
        }
      }),
    [
      "RangeErrorResponses may only be constructed with status codes in the range 200 to 599, inclusive.",
      "RangeErrorResponses may only be constructed with status codes in the range 200 to 599, inclusive.",
      "RangeErrorResponses may only be constructed with status codes in the range 200 to 599, inclusive.",
    ],
  ],
  "null body statuses": [
    () =>
      [204, 205, 304].map((status) => {
        try {
          new Response("x", { status });
        } catch (e) {
          return e.message;
        }
      }),
    [
      "Response with null body status (101, 204, 205, or 304) cannot have a body.",
      "Response with null body status (101, 204, 205, or 304) cannot have a body.",
      "Response with null body status (101, 204, 205, or 304) cannot have a body.",
    ],
  ],
  "status texts": [
    () => [
      new Response(null, { status: 404 }).statusText,
      new Response("", { status: 299 }).statusText,
      new Response("", { statusText: "Mine" }).statusText,
    ],
    ["Not Found", "Successful", "Mine"],
  ],
  "bad status text": [() => new Response("", { statusText: "a\nb" }), throws("TypeError")],
  "Response.json": [
    async () => {
      const r = Response.json({ a: [1] }, { status: 201, headers: { x: "y" } });
      return [r.status, r.headers.get("content-type"), r.headers.get("x"), await r.text()];
    },
    [201, "application/json", "y", '{"a":[1]}'],
  ],
  "Response.json keeps a content type": [
    () =>
      Response.json(1, { headers: { "content-type": "application/problem+json" } }).headers.get(
        "content-type",
      ),
    "application/problem+json",
  ],
  "Response.redirect": [
    () => {
      const r = Response.redirect("http://a/b c", 308);
      return [r.status, r.headers.get("location"), r.body];
    },
    [308, "http://a/b%20c", null],
  ],
  "Response.redirect refuses": [
    () => Response.redirect("http://a/", 200),
    throws(
      "RangeError",
      "200 is not a redirect status code. It must be one of: 301, 302, 303, 307, or 308.",
    ),
  ],
  "Response.error": [
    () => {
      const r = Response.error();
      return [r.type, r.status, r.ok];
    },
    ["error", 0, false],
  ],
  "a response as init": [
    async () => {
      const r = new Response("new", new Response("old", { status: 202, headers: { a: "b" } }));
      return [r.status, r.headers.get("a"), await r.text()];
    },
    [202, "b", "new"],
  ],
  "request defaults": [
    () => {
      const r = new Request("http://a");
      return [r.method, r.url, r.redirect, r.body, r.signal.aborted, r.bodyUsed];
    },
    ["GET", "http://a/", "follow", null, false, false],
  ],
  "request methods": [
    () => [
      new Request("http://a", { method: "post" }).method,
      new Request("http://a", { method: "PATCH" }).method,
    ],
    ["POST", "PATCH"],
  ],
  "an unknown method": [
    () => new Request("http://a", { method: "nope" }),
    throws("TypeError", "Invalid HTTP method string: nope"),
  ],
  "a relative URL": [() => new Request("/a"), throws("TypeError", "Invalid URL: /a")],
  "a body on GET": [
    () => new Request("http://a", { body: "x" }),
    throws("TypeError", "Request with a GET or HEAD method cannot have a body."),
  ],
  "a request from a request takes its body": [
    async () => {
      const a = new Request("http://a", { method: "POST", body: "x", headers: { h: "1" } });
      const b = new Request(a, { headers: { h: "2" } });
      return [a.bodyUsed, await b.text(), b.method, b.headers.get("h"), a.headers.get("h")];
    },
    [true, "x", "POST", "2", "1"],
  ],
  "a request from a used request": [
    async () => {
      const a = new Request("http://a", { method: "POST", body: "x" });
      await a.text();
      new Request(a);
    },
    throws("TypeError", "Cannot reconstruct a Request with a used body."),
  ],
  "a request's stream moves on": [
    async () => {
      const stream = new ReadableStream({
        start(c) {
          c.enqueue(bytes("a"));
          c.close();
        },
      });
      const a = new Request("http://a", { method: "POST", body: stream });
      const b = new Request("http://b", a);
      return [await b.text(), a.bodyUsed, stream.locked];
    },
    ["a", true, true],
  ],
  blobs: [
    async () => {
      const b = new Blob(["a", bytes("bc"), new Blob(["d"])], { type: "X/Y" });
      const s = b.slice(1, -1, "z/z");
      return [
        b.size,
        b.type,
        await b.text(),
        await s.text(),
        s.type,
        await b.bytes(),
        await new Response(b.stream()).text(),
      ];
    },
    [4, "x/y", "abcd", "bc", "z/z", { bytes: [97, 98, 99, 100] }, "abcd"],
  ],
  files: [
    () => {
      const f = new File(["x"], "n.txt", { type: "a/b", lastModified: 7 });
      return [f.name, f.type, f.lastModified, f.size, f instanceof Blob, `${f}`];
    },
    ["n.txt", "a/b", 7, 1, true, "[object File]"],
  ],
  "response.blob": [
    async () => {
      const b = await new Response("x", { headers: { "content-type": "a/b" } }).blob();
      return [b.type, b.size];
    },
    ["a/b", 1],
  ],
  "form data": [
    () => {
      const f = new FormData();
      f.append("a", 1);
      f.append("a", "two");
      f.set("b", new Blob(["x"]), "x.bin");
      f.append("c", "d");
      f.delete("c");
      return [f.get("a"), f.getAll("a"), f.get("b").name, f.has("c"), [...f.keys()], f.get("zz")];
    },
    ["1", ["1", "two"], "x.bin", false, ["a", "a", "b"], null],
  ],
  "form data set replaces": [
    () => {
      const f = new FormData();
      f.append("a", "1");
      f.append("b", "2");
      f.append("a", "3");
      f.set("a", "4");
      return [...f];
    },
    [
      ["a", "4"],
      ["b", "2"],
    ],
  ],
  "urlencoded form in": [
    async () => {
      const f = await new Response(new URLSearchParams("a=1&b=x+y")).formData();
      return [...f];
    },
    [
      ["a", "1"],
      ["b", "x y"],
    ],
  ],
  "multipart in": [
    async () => {
      const body =
        '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n2\r\n--B\r\ncontent-disposition: form-data; name="f"; filename="ü.txt"\r\nContent-Type: text/x\r\n\r\nhé\r\n--B--\r\n';
      const form = await new Response(body, {
        headers: { "content-type": "multipart/form-data; boundary=B" },
      }).formData();
      const file = form.get("f");
      return [form.get("a"), file.name, file.type, await file.text(), file instanceof File];
    },
    ["1\r\n2", "ü.txt", "text/x", "hé", true],
  ],
  "multipart there and back": [
    async () => {
      const f = new FormData();
      f.append("t", "a\nb");
      f.append('q"\n', new File([new Uint8Array([13, 10, 0, 255])], 'é".bin'));
      const r = new Response(f);
      const back = await new Response((await r.text()) && r.clone ? f : f).formData();
      const file = [...back][1][1];
      return [
        back.get("t"),
        [...back.keys()][1],
        file.name,
        file.type,
        await file.bytes(),
        r.headers.get("content-type").startsWith("multipart/form-data; boundary="),
      ];
    },
    ["a\r\nb", 'q"\r\n', 'é".bin', "application/octet-stream", { bytes: [13, 10, 0, 255] }, true],
  ],
  "multipart that ends early": [
    async () =>
      await new Response("--B\r\nx", {
        headers: { "content-type": "multipart/form-data; boundary=B" },
      }).formData(),
    throws("TypeError"),
  ],
  "no form": [
    async () => await new Response(bytes("x")).formData(),
    throws("TypeError", "Parsing a Body as FormData requires a Content-Type header."),
  ],
  shapes: [
    () => [
      String(new Response()),
      String(new Request("http://a")),
      Object.keys(new Response()),
      new Response() instanceof Response,
    ],
    ["[object Response]", "[object Request]", [], true],
  ],
  "methods on other objects reject": [
    () => {
      const p = Response.prototype.text.call({});
      return p.then(
        () => "no",
        (e) => e.name,
      );
    },
    "TypeError",
  ],
};
