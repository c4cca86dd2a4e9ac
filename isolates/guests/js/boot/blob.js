// Blob and File: immutable bytes with a type.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { INTERNAL, illegal } = boot;
  const { utf8Encode, utf8Decode } = boot.host;

  let stateOf;
  class Blob {
    #state;
    static {
      stateOf = (value) => (boot.isObject(value) && #state in value ? value.#state : undefined);
    }
    constructor(parts = undefined, options = undefined) {
      if (parts === INTERNAL) {
        this.#state = options;
        return;
      }
      this.#state = { bytes: joinParts(parts), type: normalType(options?.type) };
    }
    get size() {
      return required(this).bytes.byteLength;
    }
    get type() {
      return required(this).type;
    }
    async arrayBuffer() {
      return boot.copyBytes(required(this).bytes).buffer;
    }
    async bytes() {
      return boot.copyBytes(required(this).bytes);
    }
    slice(start = 0, end = undefined, type = "") {
      const { bytes } = required(this);
      const view = bytes.subarray(start, end);
      return new Blob(INTERNAL, { bytes: view, type: normalType(type) });
    }
    stream() {
      const { bytes } = required(this);
      return boot.wrapStream(boot.readable.readableOfBytes(boot.copyBytes(bytes)));
    }
    async text() {
      return utf8Decode(required(this).bytes, false, false);
    }
  }

  class File extends Blob {
    #name;
    #lastModified;
    constructor(parts, name, options = undefined) {
      if (arguments.length < 2) throw new TypeError("A File needs parts and a name.");
      super(parts, parts === INTERNAL ? options.state : options);
      this.#name = boot.usvString(name);
      const { lastModified } = options ?? {};
      this.#lastModified = lastModified === undefined ? Date.now() : Math.trunc(+lastModified) || 0;
    }
    get name() {
      return this.#name;
    }
    get lastModified() {
      return this.#lastModified;
    }
  }

  const required = (value) => {
    const state = stateOf(value);
    if (state === undefined) throw illegal();
    return state;
  };
  const normalType = (type) => {
    const text = type === undefined ? "" : `${type}`;
    return /[^\x20-\x7e]/.test(text) ? "" : text.toLowerCase();
  };
  const joinParts = (parts) => {
    if (parts === undefined) return new Uint8Array(0);
    if (!boot.isObject(parts) || typeof parts[Symbol.iterator] !== "function") {
      throw new TypeError("A Blob is made from a sequence of parts.");
    }
    const chunks = [];
    let size = 0;
    for (const part of parts) {
      const bytes = stateOf(part)?.bytes ?? boot.bytesOf(part) ?? utf8Encode(`${part}`);
      chunks.push(bytes);
      size += bytes.byteLength;
    }
    // Always a copy: the parts may change later.
    const whole = new Uint8Array(size);
    let offset = 0;
    for (const bytes of chunks) {
      whole.set(bytes, offset);
      offset += bytes.byteLength;
    }
    return whole;
  };

  boot.blobState = stateOf;
  boot.isFile = (value) => value instanceof File;
  boot.newBlob = (bytes, type) => new Blob(INTERNAL, { bytes, type });
  boot.newFile = (bytes, type, name, lastModified) =>
    new File(INTERNAL, name, { state: { bytes, type }, lastModified });
  boot.expose(Blob, File);
})();
