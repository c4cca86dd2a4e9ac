const parts = (url) => {
  const { href, origin, protocol, username, password, host, hostname, port, pathname, search, hash } = new URL(url);
  return { href, origin, protocol, username, password, host, hostname, port, pathname, search, hash };
};

export default {
  parts: () => parts("https://user:pa%20ss@Exämple.com:8443/a/../b c?x=1&y=ü#frag"),
  default_port: () => parts("http://a:80/").href,
  relative: () => new URL("../c?d", "http://a/b/e/f").href,
  invalid: () => new URL("nope"),
  invalid_base: () => new URL("x", "nope"),
  can_parse: () => [URL.canParse("http://a"), URL.canParse("a"), URL.canParse("a", "http://b")],
  parse: () => [URL.parse("http://a/")?.href, URL.parse("nope")],
  setters: () => {
    const url = new URL("http://a/b");
    url.pathname = "/x y";
    url.search = "q=1";
    url.hash = "h";
    url.port = "81";
    url.hostname = "ä.example";
    url.protocol = "https";
    return url.href;
  },
  set_bad_port: () => {
    const url = new URL("http://a/");
    url.port = "x";
    return url.href;
  },
  set_bad_href: () => {
    new URL("http://a/").href = "nope";
  },
  params_are_linked: () => {
    const url = new URL("http://a/?x=1");
    url.searchParams.append("y", "a b");
    url.searchParams.delete("x");
    return [url.href, url.search];
  },
  search_updates_params: () => {
    const url = new URL("http://a/?x=1");
    const { searchParams } = url;
    url.search = "?z=2";
    return [...searchParams];
  },
  params: () => {
    const params = new URLSearchParams("?a=1&b=2&a=3&c");
    return [params.get("a"), params.getAll("a"), params.has("c"), params.has("a", "9"), params.size, params.toString()];
  },
  params_from: () => [new URLSearchParams({ a: "1" }), new URLSearchParams([["b", "2"]]), new URLSearchParams("c=%20+%2B")].map(String),
  params_sort: () => {
    const params = new URLSearchParams("z=1&a=2&z=0");
    params.sort();
    return String(params);
  },
  params_set: () => {
    const params = new URLSearchParams("a=1&b=2&a=3");
    params.set("a", "9");
    return String(params);
  },
  params_bad_pairs: () => new URLSearchParams([["a"]]),
  to_json: () => JSON.stringify({ url: new URL("http://a/") }),
  special_schemes: () => ["data:text/plain,x", "blob:http://a/b", "file:///x", "mailto:a@b"].map((url) => [new URL(url).origin, new URL(url).pathname]),
  ipv6_and_ipv4: () => [new URL("http://[::1]:80/").host, new URL("http://0x7f.1/").host],
  to_string_tag: () => [Object.prototype.toString.call(new URL("http://a")), Object.prototype.toString.call(new URLSearchParams())],
};
