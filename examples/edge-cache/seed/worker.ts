// worker.ts
export interface Env {
  AI: any;
  CACHE_KV: KVNamespace;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    if (request.method !== 'POST') {
      return new Response('Method Not Allowed', { status: 405 });
    }

    const { prompt } = await request.json() as { prompt: string };
    const cacheKey = `hash:${await crypto.subtle.digest('SHA-256', new TextEncoder().encode(prompt))}`;

    // 1. Check Edge KV Cache
    const cachedResponse = await env.CACHE_KV.get(cacheKey);
    if (cachedResponse) {
      return new Response(cachedResponse, {
        headers: { 'Content-Type': 'application/json', 'X-Cache': 'HIT' },
      });
    }

    // 2. Run Edge AI Inference
    const answer = await env.AI.run('@cf/meta/llama-3-8b-instruct', {
      prompt: prompt,
      max_tokens: 512,
    });

    // 3. Store in KV with 1-hour TTL
    await env.CACHE_KV.put(cacheKey, JSON.stringify(answer), { expirationTtl: 3600 });

    return new Response(JSON.stringify(answer), {
      headers: { 'Content-Type': 'application/json', 'X-Cache': 'MISS' },
    });
  },
};
