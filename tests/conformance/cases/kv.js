export default {
  missing: ({ env }) => env.KV.get("missing"),
  put_and_get: async ({ env }) => {
    await env.KV.put("text", "hello ü");
    return env.KV.get("text");
  },
  json: async ({ env }) => {
    await env.KV.put("json", JSON.stringify({ a: [1] }));
    return [await env.KV.get("json", "json"), await env.KV.get("json", { type: "json" })];
  },
  json_that_is_none: async ({ env }) => {
    await env.KV.put("text", "hello");
    try {
      await env.KV.get("text", "json");
    } catch (error) {
      return error.name;
    }
  },
  array_buffer: async ({ env }) => {
    await env.KV.put("bytes", new Uint8Array([1, 2, 3]).subarray(1));
    return env.KV.get("bytes", "arrayBuffer");
  },
  stream: async ({ env }) => {
    await env.KV.put("stream", new Response("streamed").body);
    return new Response(await env.KV.get("stream", "stream")).text();
  },
  metadata: async ({ env }) => {
    await env.KV.put("meta", "v", { metadata: { x: 1 } });
    return env.KV.getWithMetadata("meta");
  },
  metadata_missing: ({ env }) => env.KV.getWithMetadata("missing"),
  many: async ({ env }) => {
    await env.KV.put("text", "hello");
    return env.KV.get(["text", "missing"]);
  },
  many_with_metadata: async ({ env }) => {
    await env.KV.put("meta", "v", { metadata: { x: 1 } });
    return env.KV.getWithMetadata(["meta", "missing"]);
  },
  many_as_bytes: ({ env }) => env.KV.get(["a"], "arrayBuffer"),
  none_of_many: ({ env }) => env.KV.get([]),
  too_many: ({ env }) => env.KV.get(Array.from({ length: 101 }, (_, i) => `k${i}`)),
  delete: async ({ env }) => {
    await env.KV.put("gone", "x");
    const deleted = await env.KV.delete("gone");
    return [deleted, await env.KV.get("gone"), await env.KV.delete("never")];
  },
  list: async ({ env }) => {
    for (const name of ["l:b", "l:a", "l:ü"]) await env.KV.put(name, "x", { metadata: name === "l:a" ? { m: 1 } : undefined });
    return env.KV.list({ prefix: "l:" });
  },
  list_pages: async ({ env }) => {
    for (const name of ["p:1", "p:2", "p:3"]) await env.KV.put(name, "x");
    const first = await env.KV.list({ prefix: "p:", limit: 2 });
    const second = await env.KV.list({ prefix: "p:", limit: 2, cursor: first.cursor });
    return [first.keys, first.list_complete, typeof first.cursor, second.keys, second.list_complete, "cursor" in second];
  },
  list_nothing: ({ env }) => env.KV.list({ prefix: "nothing:" }),
  list_limit_too_large: ({ env }) => env.KV.list({ limit: 1001 }),
  list_limit_zero: ({ env }) => env.KV.list({ limit: 0 }),
  list_limit_negative: ({ env }) => env.KV.list({ limit: -1 }),
  empty_key: ({ env }) => env.KV.get(""),
  dot_key: ({ env }) => env.KV.get("."),
  dots_key: ({ env }) => env.KV.put("..", "x"),
  long_key_get: ({ env }) => env.KV.get("k".repeat(513)),
  long_key_put: ({ env }) => env.KV.put("k".repeat(513), "x"),
  long_key_delete: ({ env }) => env.KV.delete("k".repeat(513)),
  key_of_umlauts: ({ env }) => env.KV.get("ü".repeat(257)),
  unknown_type: async ({ env }) => {
    await env.KV.put("text", "hello");
    return env.KV.get("text", "xml");
  },
  put_object: ({ env }) => env.KV.put("a", {}),
  put_nothing: ({ env }) => env.KV.put("a"),
  put_number: async ({ env }) => {
    await env.KV.put("number", 5);
    return env.KV.get("number");
  },
  put_null: ({ env }) => env.KV.put("a", null),
  ttl_too_short: ({ env }) => env.KV.put("a", "b", { expirationTtl: 59 }),
  ttl_zero: ({ env }) => env.KV.put("a", "b", { expirationTtl: 0 }),
  ttl_negative: ({ env }) => env.KV.put("a", "b", { expirationTtl: -1 }),
  ttl_text: ({ env }) => env.KV.put("a", "b", { expirationTtl: "x" }),
  expiration_past: ({ env }) => env.KV.put("a", "b", { expiration: 5 }),
  expiration_soon: async ({ env }) => {
    try {
      await env.KV.put("a", "b", { expiration: Math.floor(Date.now() / 1000) + 5 });
    } catch (error) {
      return error.message.replace(/\d{10}/, "soon");
    }
  },
  expiration_is_listed: async ({ env }) => {
    const now = Math.floor(Date.now() / 1000);
    await env.KV.put("e:1", "x", { expirationTtl: 100 });
    const { keys } = await env.KV.list({ prefix: "e:" });
    return Math.abs(keys[0].expiration - now - 100) <= 1;
  },
  metadata_too_large: ({ env }) => env.KV.put("a", "b", { metadata: "x".repeat(1023) }),
  metadata_just_fits: ({ env }) => env.KV.put("a", "b", { metadata: "x".repeat(1022) }),
  cache_ttl: ({ env }) => env.KV.get("text", { cacheTtl: 60 }),
  cache_ttl_too_short: ({ env }) => env.KV.get("text", { cacheTtl: 5 }),
  number_as_key: async ({ env }) => {
    await env.KV.put(5, "five");
    return env.KV.get("5");
  },
  class_name: ({ env }) => [Object.prototype.toString.call(env.KV), env.KV.constructor.name],
};
