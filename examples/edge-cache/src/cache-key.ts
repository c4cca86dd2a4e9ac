/** The KV key of an answer: a hex SHA-256, so that keys are short, safe and distinct for distinct questions. */
export async function cacheKey(model: string, prompt: string): Promise<string> {
  const text = new TextEncoder().encode(`${model}\n${prompt}`);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
  return "answer:" + Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
