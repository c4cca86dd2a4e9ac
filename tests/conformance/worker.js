// Runs every case and answers what each gave: a value, or the class, name and message of what it threw.
// The same file runs under workerd (record.py) and under Belem (test_conformance.py).
import abort from "./cases/abort.js";
import bodies from "./cases/bodies.js";
import crypto from "./cases/crypto.js";
import encoding from "./cases/encoding.js";
import globals from "./cases/globals.js";
import headers from "./cases/headers.js";
import kv from "./cases/kv.js";
import requests from "./cases/requests.js";
import responses from "./cases/responses.js";
import streams from "./cases/streams.js";
import urls from "./cases/urls.js";

const areas = { abort, bodies, crypto, encoding, globals, headers, kv, requests, responses, streams, urls };

export default {
  async fetch(request, env, ctx) {
    const area = new URL(request.url).pathname.slice(1);
    const answers = {};
    for (const [name, run] of Object.entries(areas[area])) {
      try {
        answers[name] = { value: plain(await run({ request, env, ctx })) };
      } catch (error) {
        answers[name] = { throws: [error?.constructor?.name, error?.name, String(error?.message)] };
      }
    }
    return Response.json(answers);
  },
};

function plain(value) {
  if (value === undefined) return "(undefined)";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (value instanceof ArrayBuffer) return { bytes: [...new Uint8Array(value)] };
  if (value instanceof Uint8Array) return { bytes: [...value] };
  if (value instanceof Map) return { map: [...value].map(plain) };
  if (Array.isArray(value)) return value.map(plain);
  return value;
}
