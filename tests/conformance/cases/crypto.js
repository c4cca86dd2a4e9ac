const data = new TextEncoder().encode("belem");

export default {
  sha1: () => crypto.subtle.digest("SHA-1", data),
  sha256: () => crypto.subtle.digest("SHA-256", data),
  sha384: () => crypto.subtle.digest({ name: "sha-384" }, data.buffer),
  sha512: () => crypto.subtle.digest("SHA-512", data),
  md5: () => crypto.subtle.digest("MD5", data),
  empty: () => crypto.subtle.digest("SHA-256", new Uint8Array()),
  view_with_offset: () => crypto.subtle.digest("SHA-256", data.subarray(2)),
  unknown_digest: () => crypto.subtle.digest("SHA-3", data),
  as_a_string: async () => `hash:${await crypto.subtle.digest("SHA-256", data)}`,
  uuid: () => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()),
  random_fills: () => crypto.getRandomValues(new Uint8Array(64)).some((byte) => byte !== 0),
  random_returns_its_argument: () => {
    const array = new Uint16Array(4);
    return crypto.getRandomValues(array) === array;
  },
  random_quota: () => crypto.getRandomValues(new Uint8Array(65537)),
  random_floats: () => crypto.getRandomValues(new Float32Array(2)),
};
