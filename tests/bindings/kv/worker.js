// Runs the body of `ask.js`, which each test writes, and answers with what it gave or threw.
import ask from "./ask.js";

export default {
  async fetch(request, env) {
    try {
      return Response.json({ value: plain(await ask(env.KV, request)) });
    } catch (error) {
      return Response.json({ throws: [error?.constructor?.name, String(error?.message)] });
    }
  },
};

function plain(value) {
  if (value === undefined) return "(undefined)";
  if (value instanceof ArrayBuffer) return { buffer: [...new Uint8Array(value)] };
  if (value instanceof Map) return { map: [...value].map(plain) };
  if (Array.isArray(value)) return value.map(plain);
  return value;
}
