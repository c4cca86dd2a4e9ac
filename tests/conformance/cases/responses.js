const probe = (response) => [response.status, response.statusText, response.ok, [...response.headers]];

export default {
  defaults: () => probe(new Response()),
  text: () => probe(new Response("x", { status: 201, statusText: "Made", headers: { A: "b" } })),
  status_99: () => new Response("", { status: 99 }),
  status_600: () => new Response("", { status: 600 }),
  status_text: () => new Response("", { status: "201" }).status,
  status_word: () => new Response("", { status: "x" }).status,
  null_body_status: () => new Response("x", { status: 204 }),
  null_body_status_empty: () => probe(new Response(null, { status: 204 })),
  json: async () => [probe(Response.json({ a: 1 }, { status: 201 })), await Response.json({ a: 1 }).text()],
  json_own_type: () => Response.json(1, { headers: { "content-type": "a/b" } }).headers.get("content-type"),
  json_undefined: () => Response.json(undefined),
  json_function: () => Response.json(() => 1),
  redirect: () => probe(Response.redirect("http://a/b")),
  redirect_status: () => probe(Response.redirect("http://a/b", 307)),
  redirect_bad_status: () => Response.redirect("http://a/", 200),
  redirect_bad_url: () => Response.redirect("nope"),
  error: () => [Response.error().type, Response.error().status],
  type_and_url: () => [new Response().type, new Response().url, new Response().redirected],
  to_string_tag: () => Object.prototype.toString.call(new Response()),
  headers_can_be_changed: () => {
    const response = new Response("x");
    response.headers.set("content-type", "a/b");
    return response.headers.get("content-type");
  },
  copy_with_init: async () => {
    const response = new Response("x", new Response("y", { status: 202, headers: { a: "1" } }));
    return [probe(response), await response.text()];
  },
};
