const make = (init) => [...new Headers(init)];

export default {
  from_object: () => make({ B: "2", a: " 1 " }),
  from_pairs: () => make([["a", "1"], ["A", "2"]]),
  from_headers: () => make(new Headers({ x: "y" })),
  from_nothing: () => make(),
  from_short_pair: () => make([["a"]]),
  from_number: () => make(5),
  bad_name: () => make([["a b", "x"]]),
  empty_name: () => make([["", "x"]]),
  bad_value: () => make([["a", "x\n\0"]]),
  trims: () => new Headers([["a", "\t x \r\n"]]).get("a"),
  get_missing: () => new Headers().get("a"),
  set_replaces: () => {
    const headers = new Headers([["a", "1"], ["a", "2"]]);
    headers.set("A", "3");
    return headers.get("a");
  },
  append_joins: () => {
    const headers = new Headers({ a: "1" });
    headers.append("a", "2");
    return headers.get("A");
  },
  delete_and_has: () => {
    const headers = new Headers({ a: "1" });
    const had = headers.has("A");
    headers.delete("a");
    return [had, headers.has("a")];
  },
  set_cookie: () => {
    const headers = new Headers();
    headers.append("set-cookie", "a=1");
    headers.append("Set-Cookie", "b=2");
    headers.append("z", "1");
    headers.append("b", "1");
    return [headers.getSetCookie(), headers.get("set-cookie"), [...headers]];
  },
  keys_values: () => {
    const headers = new Headers({ b: "2", a: "1" });
    return [[...headers.keys()], [...headers.values()], [...headers.entries()]];
  },
  for_each: () => {
    const seen = [];
    new Headers({ b: "2", a: "1" }).forEach((value, name) => seen.push(name + value));
    return seen;
  },
  get_without_name: () => new Headers().get(),
  value_coerced: () => make({ a: 5, b: null, c: undefined }),
  to_string_tag: () => Object.prototype.toString.call(new Headers()),
  request_headers_are_guarded: ({ request }) => request.headers.set("a", "b"),
  incoming: ({ request }) => [request.headers.get("X-Foo"), request.headers.get("content-type")],
};
