const form = () => {
  const data = new FormData();
  data.append("a", "1");
  data.append("a", "2");
  data.set("b", new File(["hello"], "b.txt", { type: "text/plain" }));
  return data;
};

export default {
  text_twice: async () => {
    const response = new Response("a");
    await response.text();
    await response.text();
  },
  body_used: async () => {
    const response = new Response("a");
    const before = response.bodyUsed;
    await response.text();
    return [before, response.bodyUsed];
  },
  null_body: async () => [new Response().body, await new Response(null).text(), new Response().bodyUsed],
  bad_json: async () => (await new Response("{").json()) ?? 0,
  json: () => new Response('{"a":[1,null]}').json(),
  array_buffer: () => new Response("ü").arrayBuffer(),
  bytes: () => new Response("ü").bytes(),
  blob: async () => {
    const blob = await new Response("hi", { headers: { "content-type": "text/x" } }).blob();
    return [blob.size, blob.type, await blob.text()];
  },
  bom_is_dropped: async () => (await new Response(new Uint8Array([0xef, 0xbb, 0xbf, 0x61])).text()).length,
  invalid_utf8: () => new Response(new Uint8Array([0x61, 0xff, 0xc3])).text(),
  content_types: () =>
    ["text", new Blob(["x"], { type: "a/b" }), new Uint8Array(1), new URLSearchParams("a=1"), new ArrayBuffer(1)].map((body) =>
      new Response(body).headers.get("content-type"),
    ),
  form_content_type: () => new Response(form()).headers.get("content-type").split(";")[0],
  form_round_trip: async () => {
    const data = await new Response(form()).formData();
    const file = data.get("b");
    return [data.getAll("a"), file.name, file.type, file.size, await file.text(), data.has("c"), data.get("c")];
  },
  urlencoded_round_trip: async () => {
    const data = await new Response(new URLSearchParams("a=1&b=%C3%BC+x")).formData();
    return [...data];
  },
  form_without_type: () => new Response("x").formData(),
  number_body: () => new Response(5).text(),
  object_body: () => new Response({}).text(),
  clone_reads_both: async () => {
    const response = new Response("abc");
    const copy = response.clone();
    return [await response.text(), await copy.text()];
  },
  clone_used: async () => {
    const response = new Response("abc");
    await response.text();
    response.clone();
  },
  stream_body: async () => {
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode("one "));
        controller.enqueue(new TextEncoder().encode("two"));
        controller.close();
      },
    });
    return new Response(stream).text();
  },
  blob_slices: async () => {
    const blob = new Blob(["hello ", "world"], { type: "Text/Plain" });
    return [blob.size, blob.type, await blob.slice(3, 8).text(), await blob.slice(-5).text()];
  },
  file: async () => {
    const file = new File(["x"], "x.txt", { type: "text/plain", lastModified: 5 });
    return [file.name, file.lastModified, file.size, file instanceof Blob];
  },
  request_body: async ({ request }) => [request.method, await request.clone().text(), request.bodyUsed],
};
