// env, and the seam for the guest halves of bindings: `__belem`, there until the boot code is
// sealed.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const factories = new Map();

  // env is the same object for every request, as on Workers; filled when the worker is configured.
  boot.env = {};
  boot.configuration = { bindings: [], vars: {}, compatibility_date: "", compatibility_flags: [] };

  boot.configure = (configuration) => {
    boot.configuration = configuration;
    const { bindings = [], vars = {} } = configuration;
    const define = (name, value) =>
      Object.defineProperty(boot.env, name, {
        value,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    for (const name of Object.keys(vars)) define(name, vars[name]);
    for (const spec of bindings) {
      const factory = factories.get(spec.type);
      if (factory === undefined) {
        throw new Error(
          `The binding "${spec.name}" has the type "${spec.type}", which this runtime does not know.`,
        );
      }
      // Names of built-in capabilities have no colon: no binding can take the place of one.
      define(spec.name, factory({ ...spec, capability: `${spec.type}:${spec.name}` }));
    }
  };

  const seam = {
    // factory(spec) -> the object that a worker finds as env[spec.name]; spec is
    // {name, type, capability, …}.
    defineBinding(type, factory) {
      if (factories.has(type)) throw new Error(`The binding type "${type}" is defined twice.`);
      factories.set(type, factory);
    },
    // op(capability, method, args, body?, signal?) -> Promise<{value, body}>
    op: boot.hostCall,
    // Everything a ReadableStream of bytes still gives, as one Uint8Array.
    readAll(stream) {
      const state = boot.streamState(stream);
      if (state === undefined)
        return boot.rejected(new TypeError("readAll() needs a ReadableStream."));
      try {
        return boot.readAll(state);
      } catch (error) {
        return boot.rejected(error);
      }
    },
    // Give a class the look of a platform class: toStringTag, and methods that can be enumerated.
    shape: boot.shape,
    inspect: boot.inspect,
    warn: boot.logWarning,
  };
  Object.defineProperty(globalThis, "__belem", { value: seam, configurable: true });
})();
