/** Server-sent events as Workers AI writes them: `data: {"response": "…"}` and, last, `data: [DONE]`. */

const encoder = new TextEncoder();

/** One answer as a finished event stream. */
export function asEvents(answer: { response?: string }): string {
  return `data: ${JSON.stringify(answer)}\n\ndata: [DONE]\n\n`;
}

/**
 * Pass the events through untouched, and hand the whole text to `keep` if, and only if, the stream completes.
 * The stream ends once it is kept, so that whoever asks after that finds it.
 */
export function collect(
  keep: (text: string) => Promise<void>,
): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let pending = "";
  let text = "";
  let complete = false;

  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      pending += decoder.decode(chunk, { stream: true });
      const events = pending.split("\n\n");
      pending = events.pop() ?? "";
      for (const event of events) {
        const data = event.slice("data: ".length);
        if (data === "[DONE]") complete = true;
        else text += JSON.parse(data).response ?? "";
      }
    },
    async flush() {
      if (complete) await keep(text);
    },
  });
}
