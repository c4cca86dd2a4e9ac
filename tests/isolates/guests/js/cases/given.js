// What cases share.

// The outcome of a case that throws an error of this name and, where it matters, this message.
export const throws = (name, message = undefined) => ({ throws: name, message });

export const bytes = (text) => new TextEncoder().encode(text);
export const text = (data) => new TextDecoder().decode(data);
export const hex = (data) =>
  [...new Uint8Array(data)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

// Every chunk of a stream.
export const all = async (stream) => {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
};

// A stream of 0, 1, … n - 1, made as it is read; what it is cancelled with goes to `log`.
export const count = (n, log = []) => {
  let next = 0;
  const source = {
    pull(controller) {
      if (next < n) controller.enqueue(next++);
      else controller.close();
    },
    cancel(reason) {
      log.push(reason);
    },
  };
  return new ReadableStream(source, { highWaterMark: 0 });
};
