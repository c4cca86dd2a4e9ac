// crypto: randomness from the guest's own generator (which the host seeds), digests from the host.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { random } = boot.host;
  const QUOTA_BYTES = 65_536;
  const DIGESTS = ["SHA-1", "SHA-256", "SHA-384", "SHA-512", "MD5"];

  const fill = (view) => {
    boot.requireServing();
    random(view);
    return view;
  };
  boot.randomBytes = (length) => fill(new Uint8Array(length));

  const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
  const isIntegerView = (view) =>
    ArrayBuffer.isView(view) &&
    /^(?:Big)?(?:Int|Uint)\d+(?:Clamped)?Array$/.test(view[Symbol.toStringTag]);

  class SubtleCrypto {
    constructor(token) {
      if (token !== boot.INTERNAL) throw boot.illegalConstructor();
    }
    async digest(algorithm, data) {
      const name = digestName(algorithm);
      const bytes = boot.bytesOf(data);
      if (bytes === undefined) {
        throw new TypeError("digest() needs an ArrayBuffer or an ArrayBufferView.");
      }
      const { body } = await boot.hostCall("crypto", "digest", [name], bytes);
      return boot.exactBuffer(body);
    }
    // Not a part of the standard, but of Workers: time depends on the length only.
    timingSafeEqual(a, b) {
      const one = boot.bytesOf(a);
      const two = boot.bytesOf(b);
      if (one === undefined || two === undefined) {
        throw new TypeError("timingSafeEqual() needs two ArrayBuffers or ArrayBufferViews.");
      }
      if (one.byteLength !== two.byteLength) {
        throw new TypeError("Input buffers must have the same byte length.");
      }
      let difference = 0;
      for (let i = 0; i < one.byteLength; i++) difference |= one[i] ^ two[i];
      return difference === 0;
    }
  }
  const digestName = (algorithm) => {
    const name = `${boot.isObject(algorithm) ? algorithm.name : algorithm}`;
    const upper = name.toUpperCase();
    if (DIGESTS.includes(upper)) return upper;
    throw new DOMException(
      "Unrecognized or unimplemented digest algorithm requested.",
      "NotSupportedError",
    );
  };
  const missing = [
    "encrypt",
    "decrypt",
    "sign",
    "verify",
    "generateKey",
    "deriveKey",
    "deriveBits",
    "importKey",
    "exportKey",
    "wrapKey",
    "unwrapKey",
  ];
  for (const name of missing) {
    const method = {
      async [name]() {
        throw new DOMException(`crypto.subtle.${name} is not implemented.`, "NotSupportedError");
      },
    }[name];
    const settings = { value: method, writable: true, configurable: true };
    Object.defineProperty(SubtleCrypto.prototype, name, settings);
  }

  let brand;
  class Crypto {
    #subtle;
    static {
      brand = (value) => {
        if (!boot.isObject(value) || !(#subtle in value)) throw boot.illegal();
        return value.#subtle;
      };
    }
    constructor(token) {
      if (token !== boot.INTERNAL) throw boot.illegalConstructor();
      this.#subtle = new SubtleCrypto(boot.INTERNAL);
    }
    get subtle() {
      return brand(this);
    }
    getRandomValues(view) {
      brand(this);
      if (!isIntegerView(view)) {
        throw new DOMException(
          "ArrayBufferView argument to getRandomValues() must be an integer-typed view.",
          "TypeMismatchError",
        );
      }
      if (view.byteLength > QUOTA_BYTES) {
        throw new DOMException(
          "getRandomValues() only accepts buffers of size <= 64K but provided " +
            `${view.byteLength} bytes.`,
          "QuotaExceededError",
        );
      }
      fill(boot.bytesOf(view));
      return view;
    }
    randomUUID() {
      brand(this);
      const bytes = boot.randomBytes(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      let text = "";
      for (let i = 0; i < 16; i++) {
        if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
        text += HEX[bytes[i]];
      }
      return text;
    }
  }

  boot.expose(Crypto, SubtleCrypto);
  boot.defineGlobal("crypto", new Crypto(boot.INTERNAL), true);
})();
