// crypto: digests by the host, randomness by the guest.
import { bytes, hex, throws } from "./given.js";

export default {
  digests: [
    async () => {
      return Promise.all(
        ["SHA-1", "sha-256", { name: "SHA-384" }, "SHA-512", "MD5"].map(async (a) =>
          hex(await crypto.subtle.digest(a, bytes("abc"))),
        ),
      );
    },
    [
      "a9993e364706816aba3e25717850c26c9cd0d89d",
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
      "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
      "900150983cd24fb0d6963f7d28e17f72",
    ],
  ],
  "a digest of part of a buffer": [
    async () => {
      return hex(await crypto.subtle.digest("SHA-256", new DataView(bytes("xabcx").buffer, 1, 3)));
    },
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  ],
  "a digest is an ArrayBuffer of its own": [
    async () => {
      const d = await crypto.subtle.digest("SHA-256", bytes(""));
      return [d instanceof ArrayBuffer, d.byteLength];
    },
    [true, 32],
  ],
  "an unknown digest": [
    () => {
      return crypto.subtle.digest("SHA-3", bytes(""));
    },
    throws("NotSupportedError"),
  ],
  "a digest of text": [
    () => {
      return crypto.subtle.digest("SHA-256", "abc");
    },
    throws("TypeError"),
  ],
  "what is not there yet": [
    () => {
      return crypto.subtle.importKey("raw", bytes(""), "AES-GCM", false, []);
    },
    throws("NotSupportedError"),
  ],
  timingSafeEqual: [
    () => {
      return [
        crypto.subtle.timingSafeEqual(bytes("ab"), bytes("ab")),
        crypto.subtle.timingSafeEqual(bytes("ab"), bytes("ac")),
      ];
    },
    [true, false],
  ],
  "timingSafeEqual of two lengths": [
    () => crypto.subtle.timingSafeEqual(bytes("a"), bytes("ab")),
    throws("TypeError", "Input buffers must have the same byte length."),
  ],
  "a UUID": [
    () => {
      const [a, b] = [crypto.randomUUID(), crypto.randomUUID()];
      return [
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(a),
        a !== b,
      ];
    },
    [true, true],
  ],
  "random values fill the view only": [
    () => {
      const all = new Uint8Array(64);
      const view = all.subarray(16, 48);
      const same = crypto.getRandomValues(view) === view;
      return [
        same,
        view.some((x) => x),
        all.subarray(0, 16).some((x) => x),
        all.subarray(48).some((x) => x),
      ];
    },
    [true, true, false, false],
  ],
  "wider integers": [
    () => {
      const a = crypto.getRandomValues(new BigUint64Array(4));
      return [a.length, a.some((x) => x > 0n)];
    },
    [4, true],
  ],
  "floats are refused": [
    () => crypto.getRandomValues(new Float64Array(1)),
    throws("TypeMismatchError"),
  ],
  "the quota": [() => crypto.getRandomValues(new Uint8Array(65537)), throws("QuotaExceededError")],
  "methods need their this": [
    () => {
      const { randomUUID } = crypto;
      randomUUID();
    },
    throws("TypeError"),
  ],
  "not to be constructed": [() => new Crypto(), throws("TypeError", "Illegal constructor")],
};
