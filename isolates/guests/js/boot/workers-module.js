// What `import … from "cloudflare:workers"` gives. The module (modules/cloudflare-workers.js) takes
// it from a global that holds nothing else and deletes it.
(() => {
  "use strict";
  const boot = globalThis.__boot;

  class Entrypoint {
    constructor(ctx, env) {
      this.ctx = ctx;
      this.env = env;
    }
  }
  class WorkerEntrypoint extends Entrypoint {}
  class DurableObject extends Entrypoint {}
  class RpcTarget {}
  for (const constructor of [WorkerEntrypoint, DurableObject, RpcTarget]) boot.shape(constructor);

  const waitUntil = (promise) => {
    const state = boot.context.current;
    if (state === null || state.settled) {
      throw new Error("waitUntil() can only be called while a request is being handled.");
    }
    state.waitUntil(promise);
  };

  Object.defineProperty(globalThis, "__cloudflareWorkers", {
    value: { DurableObject, env: boot.env, exports: {}, RpcTarget, waitUntil, WorkerEntrypoint },
    configurable: true,
  });
})();
