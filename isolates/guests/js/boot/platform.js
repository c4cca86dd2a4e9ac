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

  // The engine's own, with Workers' words for what they refuse.
  const { atob, btoa } = globalThis;
  const base64 = {
    atob(data) {
      return refusing(atob, `${data}`, BAD_BASE64);
    },
    btoa(data) {
      return refusing(btoa, `${data}`, BAD_LATIN1);
    },
  };
  const BAD_BASE64 =
    "atob() called with invalid base64-encoded data. (Only whitespace, '+', '/', alphanumeric ASCII, " +
    "and up to two terminal '=' signs when the input data length is divisible by 4 are allowed.)";
  const BAD_LATIN1 = "btoa() can only operate on characters in the Latin1 (ISO/IEC 8859-1) range.";
  const refusing = (convert, text, message) => {
    try {
      return convert(text);
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
      throw new DOMException(message, "InvalidCharacterError");
    }
  };
  for (const name of Object.keys(base64)) boot.defineGlobal(name, base64[name], true);

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
