const ONE_HOUR = 60 * 60;

export default {
  async fetch(request, env, ctx): Promise<Response> {
    const question = new URL(request.url).searchParams.get("q");
    if (!question) {
      return new Response("Ask with ?q=your+question\n", { status: 400 });
    }

    const key = await digest(question);
    const known = await env.CACHE.get(key);
    if (known !== null) {
      return new Response(known, { headers: { "x-cache": "HIT" } });
    }

    const { response } = await env.AI.run(env.MODEL, { prompt: question, max_tokens: 128 });
    const answer = `${response}\n`;
    // The response does not wait for the cache.
    ctx.waitUntil(env.CACHE.put(key, answer, { expirationTtl: ONE_HOUR }));
    return new Response(answer, { headers: { "x-cache": "MISS" } });
  },
} satisfies ExportedHandler<Env>;

/** Keys are at most 512 bytes, questions may be longer. */
async function digest(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
