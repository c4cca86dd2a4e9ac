const probe = (input, init) => {
  const { method, url, redirect } = new Request(input, init);
  return [method, url, redirect];
};

export default {
  defaults: () => probe("http://a.example/x?y#z"),
  methods: () => ["get", "post", "PaTcH", "patch"].map((method) => new Request("http://a/", { method }).method),
  bad_method: () => probe("http://a/", { method: "a b" }),
  bad_url: () => probe("/x"),
  body_on_get: () => probe("http://a/", { method: "GET", body: "x" }),
  from_request: async () => {
    const first = new Request("http://a/", { method: "POST", body: "x", headers: { h: "1" } });
    const second = new Request(first, { headers: { h: "2" } });
    return [second.method, second.headers.get("h"), await second.text(), first.bodyUsed];
  },
  from_url: () => new Request(new URL("http://a/b")).url,
  clone: async () => {
    const request = new Request("http://a/", { method: "POST", body: "x" });
    return [await request.clone().text(), await request.text()];
  },
  redirect_modes: () => new Request("http://a/", { redirect: "manual" }).redirect,
  bad_redirect: () => new Request("http://a/", { redirect: "maybe" }),
  to_string_tag: () => Object.prototype.toString.call(new Request("http://a/")),
  incoming: ({ request }) => [request.method, new URL(request.url).pathname, typeof request.cf, request.redirect],
  incoming_signal: ({ request }) => request.signal instanceof AbortSignal,
};
