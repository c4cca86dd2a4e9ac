// The guest half of a KV namespace: coerces what a worker passes as Workers does, asks the host
// (namespace.py checks and stores), and makes values of what comes back. Everything used later is
// captured now: a worker may patch its globals, but it finds neither `op` nor a way to make a
// namespace of its own.
(() => {
  "use strict";
  const { defineBinding, op, shape } = globalThis.__belem;
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { isFinite } = Number;
  const { trunc } = Math;
  const { ArrayBuffer: Buffer, Error, Map, ReadableStream, TypeError } = globalThis;
  const { apply } = Reflect;
  const setOf = Map.prototype.set;
  const hasOf = Map.prototype.has;
  const toWellFormed = String.prototype.toWellFormed;
  const subarrayOf = Uint8Array.prototype.subarray;
  const sliceOf = Buffer.prototype.slice;

  // Text comes back as it was put, a byte order mark included.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const decode = decoder.decode.bind(decoder);

  const MAY_CONSTRUCT = {};
  const UNKNOWN_TYPE =
    'Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".';
  const WRONG_VALUE =
    "KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and ReadableStreams as values.";
  const ILLEGAL_INVOCATION =
    "Illegal invocation: function called with incorrect `this` reference. See " +
    "https://developers.cloudflare.com/workers/observability/errors/#illegal-invocation-errors for details.";
  const NO_VALUE =
    "Failed to execute 'put' on 'KvNamespace': parameter 2 is not of type 'string or JsObject'.";
  const NOT_JSON =
    "KV GET_BULK failed: 400 At least one of the requested keys corresponds to a non-json value";

  const text = (value) => apply(toWellFormed, `${value}`, []);
  const optionalText = (value) => (value === undefined || value === null ? undefined : text(value));

  // Workers' options are 32-bit integers; what is no number counts as 0.
  const optionalInteger = (value) => {
    if (value === undefined) return undefined;
    const number = +value;
    if (!isFinite(number)) return 0;
    if (number < -2147483648 || number > 2147483647) {
      throw new TypeError(
        "Value out of range. Must be between -2147483648 and 2147483647 (inclusive).",
      );
    }
    return trunc(number);
  };

  const getOptions = (options) => {
    if (options === undefined || options === null) return {};
    if (typeof options !== "object") return { type: text(options) };
    const { type, cacheTtl } = options;
    return {
      type: type === undefined ? undefined : text(type),
      cacheTtl: optionalInteger(cacheTtl),
    };
  };

  const putOptions = (options) => {
    if (options === undefined || options === null) return {};
    const { expiration, expirationTtl, metadata } = options;
    return {
      expiration: optionalInteger(expiration),
      expirationTtl: optionalInteger(expirationTtl),
      metadata: metadata === undefined || metadata === null ? undefined : stringify(metadata),
    };
  };

  const listOptions = (options) => {
    if (options === undefined || options === null) return {};
    const { limit, prefix, cursor } = options;
    const count = optionalInteger(limit);
    return {
      limit: count > 0 ? count : undefined, // as on Workers, a limit below 1 is none
      prefix: optionalText(prefix),
      cursor: optionalText(cursor),
    };
  };

  const putBody = (value) => {
    if (value === undefined) throw new TypeError(NO_VALUE);
    if (value === null || (typeof value !== "object" && typeof value !== "function")) {
      return text(value);
    }
    if (value instanceof Buffer || isView(value) || value instanceof ReadableStream) return value;
    throw new TypeError(WRONG_VALUE);
  };

  const metadataOf = (json) => (json === null ? null : parse(json));

  const valueOf = (body, type) => {
    if (type === undefined || type === "text") return decode(body);
    if (type === "json") return parse(decode(body));
    if (type === "arrayBuffer") {
      const { buffer, byteOffset, byteLength } = body;
      if (byteLength === buffer.byteLength) return buffer;
      return apply(sliceOf, buffer, [byteOffset, byteOffset + byteLength]);
    }
    if (type === "stream") return body;
    throw new TypeError(UNKNOWN_TYPE);
  };

  const bulkValueOf = (bytes, type) => {
    const value = decode(bytes);
    if (type !== "json") return value;
    try {
      return parse(value);
    } catch {
      throw new Error(NOT_JSON);
    }
  };

  const getOne = async (capability, name, options) => {
    const key = text(name);
    const given = getOptions(options);
    const { value, body } = await op(capability, "get", [key, given]);
    if (value === null) return { value: null, metadata: null, cacheStatus: null };
    return {
      value: valueOf(body, given.type),
      metadata: metadataOf(value[0]),
      cacheStatus: null,
    };
  };

  const getMany = async (capability, names, options, withMetadata) => {
    const keys = [];
    for (let i = 0; i < names.length; i++) keys[i] = text(names[i]);
    const given = getOptions(options);
    const { value: found, body } = await op(capability, "get_many", [keys, given]);
    const entries = new Map();
    let offset = 0;
    for (let i = 0; i < keys.length; i++) {
      if (apply(hasOf, entries, [keys[i]])) continue; // the host answers a repeated key once
      let entry = null;
      if (found[i] !== null) {
        const { 0: size, 1: metadata } = found[i];
        const bytes = apply(subarrayOf, body, [offset, offset + size]);
        offset += size;
        entry = bulkValueOf(bytes, given.type);
        if (withMetadata) entry = { value: entry, metadata: metadataOf(metadata) };
      }
      apply(setOf, entries, [keys[i], entry]);
    }
    return entries;
  };

  class KvNamespace {
    #capability;

    constructor(permission, capability) {
      if (permission !== MAY_CONSTRUCT) throw new TypeError("Illegal constructor");
      this.#capability = capability;
    }

    static #of(namespace) {
      const isObject = typeof namespace === "object" && namespace !== null;
      if (!isObject || !(#capability in namespace)) throw new TypeError(ILLEGAL_INVOCATION);
      return namespace.#capability;
    }

    async get(key, options) {
      const capability = KvNamespace.#of(this);
      if (isArray(key)) return getMany(capability, key, options, false);
      return (await getOne(capability, key, options)).value;
    }

    async getWithMetadata(key, options) {
      const capability = KvNamespace.#of(this);
      if (isArray(key)) return getMany(capability, key, options, true);
      return getOne(capability, key, options);
    }

    async put(key, value, options) {
      const capability = KvNamespace.#of(this);
      const name = text(key);
      const body = putBody(value);
      await op(capability, "put", [name, putOptions(options)], body);
    }

    async delete(key) {
      await op(KvNamespace.#of(this), "delete", [text(key)]);
    }

    async list(options) {
      const capability = KvNamespace.#of(this);
      const { value } = await op(capability, "list", [listOptions(options)]);
      for (let i = 0; i < value.keys.length; i++) {
        const key = value.keys[i];
        if (key.metadata !== undefined) key.metadata = metadataOf(key.metadata);
      }
      value.cacheStatus = null;
      return value;
    }
  }
  shape(KvNamespace);

  defineBinding("kv", (spec) => new KvNamespace(MAY_CONSTRUCT, spec.capability));
})();
