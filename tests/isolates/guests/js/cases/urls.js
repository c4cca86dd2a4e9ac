// URL and URLSearchParams; the expected values are Node's.
import { throws } from "./given.js";

export default {
  "all parts": [
    () => {
      const u = new URL("https://me:pw@example.com:8080/a/b?c=d#e");
      return [
        u.href,
        u.origin,
        u.protocol,
        u.username,
        u.password,
        u.host,
        u.hostname,
        u.port,
        u.pathname,
        u.search,
        u.hash,
      ];
    },
    [
      "https://me:pw@example.com:8080/a/b?c=d#e",
      "https://example.com:8080",
      "https:",
      "me",
      "pw",
      "example.com:8080",
      "example.com",
      "8080",
      "/a/b",
      "?c=d",
      "#e",
    ],
  ],
  "no parts": [
    () => {
      const u = new URL("http://a");
      return [
        u.href,
        u.origin,
        u.protocol,
        u.username,
        u.password,
        u.host,
        u.hostname,
        u.port,
        u.pathname,
        u.search,
        u.hash,
      ];
    },
    ["http://a/", "http://a", "http:", "", "", "a", "a", "", "/", "", ""],
  ],
  "user without password": [
    () => {
      const u = new URL("http://me@a/?#");
      return [
        u.href,
        u.origin,
        u.protocol,
        u.username,
        u.password,
        u.host,
        u.hostname,
        u.port,
        u.pathname,
        u.search,
        u.hash,
      ];
    },
    ["http://me@a/?#", "http://a", "http:", "me", "", "a", "a", "", "/", "", ""],
  ],
  "opaque path": [
    () => {
      const u = new URL("mailto:a@b?c");
      return [
        u.href,
        u.origin,
        u.protocol,
        u.username,
        u.password,
        u.host,
        u.hostname,
        u.port,
        u.pathname,
        u.search,
        u.hash,
      ];
    },
    ["mailto:a@b?c", "null", "mailto:", "", "", "", "", "", "a@b", "?c", ""],
  ],
  file: [
    () => {
      const u = new URL("file:///C:/x/../y");
      return [
        u.href,
        u.origin,
        u.protocol,
        u.username,
        u.password,
        u.host,
        u.hostname,
        u.port,
        u.pathname,
        u.search,
        u.hash,
      ];
    },
    ["file:///C:/y", "null", "file:", "", "", "", "", "", "/C:/y", "", ""],
  ],
  "blob origin": [() => new URL("blob:https://a.test/b").origin, "https://a.test"],
  "default port is dropped": [() => new URL("https://a:443/").host, "a"],
  "relative to a base": [() => new URL("../x?y", "http://h/a/b/c").href, "http://h/a/x?y"],
  "idna and escapes": [
    () => new URL("http://EXÄMPLE.com/ü b").href,
    "http://xn--exmple-cua.com/%C3%BC%20b",
  ],
  setters: [
    () => {
      const u = new URL("http://a/b");
      u.protocol = "https";
      u.host = "x:1";
      u.pathname = "p q";
      u.search = "s=1";
      u.hash = "h";
      u.username = "me";
      u.password = "pw";
      return u.href;
    },
    "https://me:pw@x:1/p%20q?s=1#h",
  ],
  "a port that does not fit is ignored": [
    () => {
      const u = new URL("http://a:1/");
      u.port = "x";
      return u.port;
    },
    "1",
  ],
  "hostname and port": [
    () => {
      const u = new URL("http://a:1/");
      u.hostname = "b";
      u.port = "";
      return u.href;
    },
    "http://b/",
  ],
  "not a URL": [() => new URL("nope"), throws("TypeError", "Invalid URL string.")],
  "canParse and parse": [
    () => [
      URL.canParse("a"),
      URL.canParse("a", "http://b"),
      URL.parse("a"),
      URL.parse("a", "http://b/").href,
    ],
    [false, true, null, "http://b/a"],
  ],
  "to JSON and text": [
    () => {
      const u = new URL("http://a");
      return [JSON.stringify({ u }), `${u}`, String(Object.prototype.toString.call(u))];
    },
    ['{"u":"http://a/"}', "http://a/", "[object URL]"],
  ],
  "searchParams write through": [
    () => {
      const u = new URL("http://a/?b=1");
      u.searchParams.append("c", "d e");
      u.searchParams.delete("b");
      return u.href;
    },
    "http://a/?c=d+e",
  ],
  "search writes through to searchParams": [
    () => {
      const u = new URL("http://a/?b=1");
      const p = u.searchParams;
      u.search = "?x=2";
      u.href = u.href + "&y=3";
      return [p === u.searchParams, [...p]];
    },
    [
      true,
      [
        ["x", "2"],
        ["y", "3"],
      ],
    ],
  ],
  "removing the last parameter removes the question mark": [
    () => {
      const u = new URL("http://a/?b=1#h");
      u.searchParams.delete("b");
      return u.href;
    },
    "http://a/#h",
  ],
  "params from text": [
    () => [...new URLSearchParams("?a=1&b=%20x+y&&c&=d&e=%zz%C3%A4%ff")],
    [
      ["a", "1"],
      ["b", " x y"],
      ["c", ""],
      ["", "d"],
      ["e", "%zzä\ufffd"],
    ],
  ],
  "params from pairs, a record and params": [
    () => [
      [
        ...new URLSearchParams([
          ["a", 1],
          ["a", "2"],
        ]),
      ],
      [...new URLSearchParams({ b: "x", c: null })],
      new URLSearchParams(new URLSearchParams("d=e")).toString(),
    ],
    [
      [
        ["a", "1"],
        ["a", "2"],
      ],
      [
        ["b", "x"],
        ["c", "null"],
      ],
      "d=e",
    ],
  ],
  "params serialise": [
    () => new URLSearchParams({ "a b!'()~*-._": "ä&=+%\ud800" }).toString(),
    "a+b%21%27%28%29%7E*-._=%C3%A4%26%3D%2B%25%EF%BF%BD",
  ],
  "params get, getAll, has, size": [
    () => {
      const p = new URLSearchParams("a=1&a=2&b=3");
      return [p.get("a"), p.get("x"), p.getAll("a"), p.has("a", "2"), p.has("a", "3"), p.size];
    },
    ["1", null, ["1", "2"], true, false, 3],
  ],
  "params set and delete by value": [
    () => {
      const p = new URLSearchParams("a=1&b=2&a=3&c=4&c=5");
      p.set("a", "9");
      p.delete("c", "4");
      p.set("d", "0");
      return p.toString();
    },
    "a=9&b=2&c=5&d=0",
  ],
  "params sort is stable, by code units": [
    () => {
      const p = new URLSearchParams("z=1&\ufffd=2&\ud83d\ude00=3&a=4&z=0");
      p.sort();
      return [...p.keys()];
    },
    ["a", "z", "z", "😀", "\ufffd"],
  ],
  "params iterate live": [
    () => {
      const p = new URLSearchParams("a=1&b=2");
      const seen = [];
      for (const [k] of p) {
        seen.push(k);
        if (k === "a") p.append("c", "3");
      }
      return seen;
    },
    ["a", "b", "c"],
  ],
  "params forEach": [
    () => {
      const s = [];
      new URLSearchParams("a=1").forEach((v, k) => s.push(k, v));
      return s;
    },
    ["a", "1"],
  ],
  "params need their arguments": [() => new URLSearchParams().append("a"), throws("TypeError")],
  "a getter on another object": [
    () => Object.getOwnPropertyDescriptor(URL.prototype, "href").get.call({}),
    throws("TypeError"),
  ],
};
