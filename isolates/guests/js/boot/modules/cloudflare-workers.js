// The module "cloudflare:workers" (see workers-module.js).
const given = globalThis.__cloudflareWorkers;
delete globalThis.__cloudflareWorkers;

export const { DurableObject, env, exports, RpcTarget, waitUntil, WorkerEntrypoint } = given;
