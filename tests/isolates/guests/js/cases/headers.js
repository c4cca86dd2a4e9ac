// Headers.
import { throws } from "./given.js";

export default {
  "names are lower case and sorted, values combined": [
    () => {
      return [
        ...new Headers([
          ["B", "2"],
          ["a", "1"],
          ["b", "3"],
        ]),
      ];
    },
    [
      ["a", "1"],
      ["b", "2, 3"],
    ],
  ],
  "from a record": [
    () => {
      return [...new Headers({ A: "x", b: 5 })];
    },
    [
      ["a", "x"],
      ["b", "5"],
    ],
  ],
  "from headers": [
    () => {
      const h = new Headers({ a: "x" });
      const c = new Headers(h);
      c.set("a", "y");
      return [h.get("a"), c.get("a")];
    },
    ["x", "y"],
  ],
  "values are trimmed": [
    () => {
      return new Headers({ a: "\t x \r\n" }).get("A");
    },
    "x",
  ],
  "a missing header is null": [
    () => {
      return new Headers().get("a");
    },
    null,
  ],
  "has and delete": [
    () => {
      const h = new Headers({ a: "1", b: "2" });
      h.delete("A");
      return [h.has("a"), h.has("B")];
    },
    [false, true],
  ],
  "cookies stay apart": [
    () => {
      const h = new Headers();
      h.append("Set-Cookie", "a=1");
      h.append("set-cookie", "b=2");
      return [h.getSetCookie(), h.get("set-cookie"), [...h]];
    },
    [
      ["a=1", "b=2"],
      "a=1, b=2",
      [
        ["set-cookie", "a=1"],
        ["set-cookie", "b=2"],
      ],
    ],
  ],
  "set replaces all": [
    () => {
      const h = new Headers([
        ["a", "1"],
        ["a", "2"],
      ]);
      h.set("a", "3");
      return [...h];
    },
    [["a", "3"]],
  ],
  "an iterator sees later changes": [
    () => {
      const h = new Headers({ a: "1", c: "3" });
      const i = h.keys();
      i.next();
      h.set("b", "2");
      return [i.next().value, i.next().value, i.next().done];
    },
    ["b", "c", true],
  ],
  "forEach passes value, name, headers": [
    () => {
      const seen = [];
      const h = new Headers({ a: "1" });
      h.forEach((v, k, o) => seen.push(v, k, o === h));
      return seen;
    },
    ["1", "a", true],
  ],
  "looks native": [
    () => {
      return [
        String(new Headers()),
        Object.keys(new Headers()),
        Object.keys(Headers.prototype),
        String(new Headers().entries()),
      ];
    },
    [
      "[object Headers]",
      [],
      [
        "append",
        "delete",
        "get",
        "getAll",
        "getSetCookie",
        "has",
        "set",
        "entries",
        "forEach",
        "keys",
        "values",
      ],
      "[object Headers Iterator]",
    ],
  ],
  "the request's headers are read lazily and right": [
    ({ request }) => {
      return [request.headers.get("X-A"), [...request.headers]];
    },
    [
      "1, 2",
      [
        ["cookie", "c=d"],
        ["x-a", "1, 2"],
      ],
    ],
  ],
  "a bad name": [() => new Headers({ "a b": "x" }), throws("TypeError", "Invalid header name.")],
  "a bad value": [() => new Headers({ a: "x\ny" }), throws("TypeError", "Invalid header value.")],
  "headers of a redirect are immutable": [
    () => Response.redirect("http://a/").headers.set("a", "b"),
    throws("TypeError", "Can't modify immutable headers."),
  ],
  "the incoming request's headers are immutable, a copy's are not": [
    ({ request }) => {
      const copy = new Request(request);
      copy.headers.set("x-a", "9");
      try {
        request.headers.set("x-a", "9");
      } catch (e) {
        return [e.message, copy.headers.get("x-a")];
      }
    },
    ["Can't modify immutable headers.", "9"],
  ],
  "a short pair": [
    () => new Headers([["a"]]),
    throws(
      "TypeError",
      "To initialize a Headers object from a sequence, each inner sequence must have exactly two elements.",
    ),
  ],
};
