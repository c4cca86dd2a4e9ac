const numbers = (count) =>
  new ReadableStream({
    start(controller) {
      for (let i = 0; i < count; i++) controller.enqueue(i);
      controller.close();
    },
  });
const all = async (stream) => {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
};

export default {
  iterate: () => all(numbers(3)),
  reader: async () => {
    const reader = numbers(1).getReader();
    return [await reader.read(), await reader.read(), await reader.closed];
  },
  locked_twice: () => {
    const stream = numbers(1);
    stream.getReader();
    stream.getReader();
  },
  body_locked_twice: () => {
    const { body } = new Response("a");
    body.getReader();
    body.getReader();
  },
  tee: async () => {
    const [a, b] = numbers(2).tee();
    return [await all(a), await all(b)];
  },
  cancel_reason: async () => {
    let seen;
    const stream = new ReadableStream({ cancel(reason) { seen = reason; } });
    await stream.cancel("why");
    return seen;
  },
  error: async () => {
    const stream = new ReadableStream({ start(controller) { controller.error(new RangeError("far")); } });
    return stream.getReader().read();
  },
  pull_on_demand: async () => {
    let pulls = 0;
    const stream = new ReadableStream({ pull(controller) { controller.enqueue(++pulls); } }, { highWaterMark: 0 });
    const reader = stream.getReader();
    await reader.read();
    await reader.read();
    return pulls;
  },
  from: () => all(ReadableStream.from(["a", "b"])),
  transform: () =>
    all(numbers(3).pipeThrough(new TransformStream({ transform(chunk, controller) { controller.enqueue(chunk * 2); } }))),
  transform_flush: () =>
    all(numbers(1).pipeThrough(new TransformStream({ flush(controller) { controller.enqueue("end"); } }))),
  pipe_to: async () => {
    const seen = [];
    await numbers(3).pipeTo(new WritableStream({ write(chunk) { seen.push(chunk); }, close() { seen.push("closed"); } }));
    return seen;
  },
  identity: async () => {
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter();
    const text = new Response(readable).text();
    await writer.write(new TextEncoder().encode("through"));
    await writer.close();
    return text;
  },
  text_through_body: async () => {
    const { readable, writable } = new IdentityTransformStream();
    const writer = writable.getWriter();
    const text = new Response(readable).text();
    await writer.write(new TextEncoder().encode("through"));
    await writer.close();
    return text;
  },
  byob: async () => {
    const reader = new Response("hello").body.getReader({ mode: "byob" });
    const { value, done } = await reader.read(new Uint8Array(3));
    return [new TextDecoder().decode(value), done];
  },
  strategies: () => [new CountQueuingStrategy({ highWaterMark: 2 }).highWaterMark, new ByteLengthQueuingStrategy({ highWaterMark: 5 }).size(new Uint8Array(3))],
  writer_locked: () => {
    const stream = new WritableStream();
    stream.getWriter();
    stream.getWriter();
  },
  abort_writer: async () => {
    let seen;
    const stream = new WritableStream({ abort(reason) { seen = reason; } });
    await stream.abort("stop");
    return seen;
  },
};
