// The smallest boot code that can serve: events go to the main module's exports by name, as
// (head, extra, id) => reply head. Everything else of the ABI is left to the tests, through `host`.
"use strict";
const host = globalThis.__host;
globalThis.host = host;
globalThis.console = { log: (text, id = 0) => host.send(2, id, { level: "log", text }) };
globalThis.sleep = (ms) => host.op(["timer", "sleep", [ms]]);
const fault = (error) => ({ name: error.name, message: error.message, stack: error.stack ?? "" });
host.onReject((payload) => Object.assign(new Error(payload.message), { name: payload.name }, payload.properties));
host.onRecord((kind, id, value, extra) => {
  if (kind !== 1) return host.mainNamespace().record?.(kind, id, value, extra);
  const cut = value.indexOf("\n");
  const name = value.slice(0, cut);
  const head = value.slice(cut + 1);
  if (name === "configure") {
    globalThis.configuration = JSON.parse(head);
    return;
  }
  const handler = host.mainNamespace()[name];
  (async () => handler(head, extra, id))().then(
    (reply) => {
      if (reply === undefined) return; // the handler sends its records itself
      host.send(3, id, String(reply));
      host.send(8, id);
    },
    (error) => {
      host.send(7, id, fault(error));
      host.send(8, id);
    },
  );
});
