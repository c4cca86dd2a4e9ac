// Small globals: structuredClone, queueMicrotask, performance, navigator.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { clone } = boot.host;

  const functions = {
    structuredClone(value, options = undefined) {
      if (arguments.length === 0) throw new TypeError("structuredClone() needs a value.");
      const transfer = options?.transfer;
      return clone(value, transfer === undefined ? undefined : [...transfer]);
    },
    queueMicrotask(callback) {
      if (typeof callback !== "function") {
        throw new TypeError("queueMicrotask() needs a function.");
      }
      boot.microtask(() => {
        try {
          callback();
        } catch (error) {
          boot.reportError(error);
        }
      });
    },
  };
  for (const name of Object.keys(functions)) boot.defineGlobal(name, functions[name], true);
  for (const name of ["atob", "btoa"]) boot.defineGlobal(name, globalThis[name], true);

  // Time stands still between I/O, so that it cannot be used to time code: as on Workers.
  class Performance extends boot.EventTarget {
    constructor(token) {
      if (token !== boot.INTERNAL) throw boot.illegalConstructor();
      super();
    }
    get timeOrigin() {
      return 0;
    }
    now() {
      return Date.now();
    }
    toJSON() {
      return { timeOrigin: 0 };
    }
  }
  boot.expose(Performance);
  boot.defineGlobal("performance", new Performance(boot.INTERNAL), true);

  class Navigator {
    constructor(token) {
      if (token !== boot.INTERNAL) throw boot.illegalConstructor();
    }
    get userAgent() {
      return "Cloudflare-Workers";
    }
    get hardwareConcurrency() {
      return 1;
    }
    get language() {
      return "en";
    }
    get languages() {
      return ["en"];
    }
    get platform() {
      return "";
    }
  }
  boot.expose(Navigator);
  boot.defineGlobal("navigator", new Navigator(boot.INTERNAL), true);
  boot.addPlatform(DOMException);
})();
