import { cacheKey } from "./cache-key";
import { BadQuestion, readQuestion } from "./question";
import { asEvents, collect } from "./stream";

export interface Env {
  AI: Ai;
  CACHE_KV: KVNamespace;
}

const MODEL = "@cf/meta/llama-3-8b-instruct";
// An answer that is kept for an hour should be the model's best one, not a draw: temperature 0.
const OPTIONS = { max_tokens: 512, temperature: 0 };
const HOUR_SECONDS = 3600;

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    if (request.method !== "POST") {
      return new Response("Method Not Allowed", { status: 405, headers: { Allow: "POST" } });
    }
    try {
      return await answer(request, env);
    } catch (error) {
      return failure(error as Error);
    }
  },
};

async function answer(request: Request, env: Env): Promise<Response> {
  const { prompt, stream } = await readQuestion(request);
  const key = await cacheKey(MODEL, prompt);

  const cached = await env.CACHE_KV.get<{ response: string }>(key, "json");
  if (cached) return stream ? events(asEvents(cached), "HIT") : json(cached, "HIT");

  if (stream) {
    const tokens: ReadableStream = await env.AI.run(MODEL, { prompt, stream, ...OPTIONS });
    const collected = collect((response) => keep(env, key, { response }));
    return events(tokens.pipeThrough(collected), "MISS");
  }
  const result = await env.AI.run(MODEL, { prompt, ...OPTIONS });
  await keep(env, key, result);
  return json(result, "MISS");
}

function keep(env: Env, key: string, result: object): Promise<void> {
  return env.CACHE_KV.put(key, JSON.stringify(result), { expirationTtl: HOUR_SECONDS });
}

function json(result: object, cache: string): Response {
  return Response.json(result, { headers: { "X-Cache": cache } });
}

function events(body: BodyInit, cache: string): Response {
  return new Response(body, {
    headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Cache": cache },
  });
}

/** Errors of Workers AI begin with a code, as in "5021: the prompt is too long". */
function failure(error: Error): Response {
  const status = error instanceof BadQuestion ? error.status : inferenceStatus(error.message);
  return Response.json({ error: error.message }, { status });
}

function inferenceStatus(message: string): number {
  const code = Number(/^(\d{4}):/.exec(message)?.[1]);
  return { 5007: 400, 5006: 400, 3006: 413, 5021: 413, 3040: 429, 3007: 504 }[code] ?? 502;
}
