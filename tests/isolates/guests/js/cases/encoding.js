// TextEncoder, TextDecoder, their streams, atob and btoa.
import { bytes, throws } from "./given.js";

export default {
  encode: [
    () => new TextEncoder().encode("aé☃😀\ud800"),
    { bytes: [97, 195, 169, 226, 152, 131, 240, 159, 152, 128, 239, 191, 189] },
  ],
  "encode nothing": [() => new TextEncoder().encode(), { bytes: [] }],
  "encodeInto never splits a character": [
    () => {
      const b = new Uint8Array(5);
      const r = new TextEncoder().encodeInto("a☃é", b);
      return [r.read, r.written, b];
    },
    [2, 4, { bytes: [97, 226, 152, 131, 0] }],
  ],
  decode: [
    () => new TextDecoder().decode(new Uint8Array([97, 195, 169, 255, 226, 152])),
    "aé\ufffd\ufffd",
  ],
  "decode views and buffers": [
    () => {
      const b = bytes("abcdef").buffer;
      const d = new TextDecoder();
      return [d.decode(b), d.decode(new DataView(b, 2, 2)), d.decode(new Uint16Array(b, 2, 1))];
    },
    ["abcdef", "cd", "cd"],
  ],
  "decode in pieces": [
    () => {
      const d = new TextDecoder();
      const b = bytes("é☃😀");
      let s = "";
      for (const one of b) s += d.decode(new Uint8Array([one]), { stream: true });
      return s + d.decode();
    },
    "é☃😀",
  ],
  "an unfinished character at the end": [
    () => {
      const d = new TextDecoder();
      const s = d.decode(new Uint8Array([226, 152]), { stream: true });
      return [s, d.decode()];
    },
    ["", "\ufffd"],
  ],
  "the byte order mark is dropped once": [
    () => {
      const d = new TextDecoder();
      const m = new Uint8Array([0xef, 0xbb, 0xbf, 65, 0xef, 0xbb, 0xbf]);
      return [d.decode(m), d.decode(m)];
    },
    ["A\ufeff", "A\ufeff"],
  ],
  "a byte order mark in pieces": [
    () => {
      const d = new TextDecoder();
      let s = "";
      for (const b of [0xef, 0xbb, 0xbf, 65]) s += d.decode(new Uint8Array([b]), { stream: true });
      return s + d.decode();
    },
    "A",
  ],
  "ignoreBOM keeps it": [
    () => new TextDecoder("utf8", { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf])),
    "\ufeff",
  ],
  fatal: [
    () => new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([255])),
    throws("TypeError", "Failed to decode input."),
  ],
  "fatal at the end of a stream": [
    () => {
      const d = new TextDecoder("utf-8", { fatal: true });
      d.decode(new Uint8Array([226]), { stream: true });
      d.decode();
    },
    throws("TypeError"),
  ],
  labels: [
    () =>
      ["UTF8", " utf-16 ", "latin1", "ascii", "iso-8859-1", "utf-16be"].map(
        (l) => new TextDecoder(l).encoding,
      ),
    ["utf-8", "utf-16le", "windows-1252", "windows-1252", "windows-1252", "utf-16be"],
  ],
  "unknown label": [
    () => new TextDecoder("klingon"),
    throws("RangeError", '"klingon" is not a valid encoding.'),
  ],
  properties: [
    () => {
      const d = new TextDecoder("utf-8", { fatal: true });
      return [d.encoding, d.fatal, d.ignoreBOM, new TextEncoder().encoding];
    },
    ["utf-8", true, false, "utf-8"],
  ],
  "windows-1252": [
    () => new TextDecoder("latin1").decode(new Uint8Array([0x80, 0xe9, 0x41, 0x9f, 0x81])),
    "€éAŸ\u0081",
  ],
  "utf-16le": [
    () => {
      const d = new TextDecoder("utf-16le");
      return d.decode(new Uint8Array([0xff, 0xfe, 65, 0, 0x3d, 0xd8, 0, 0xde]));
    },
    "A😀",
  ],
  "utf-16le in pieces": [
    () => {
      const d = new TextDecoder("utf-16le");
      let s = "";
      for (const b of [65, 0, 0x3d, 0xd8, 0, 0xde])
        s += d.decode(new Uint8Array([b]), { stream: true });
      return s + d.decode();
    },
    "A😀",
  ],
  "utf-16le malformed": [
    () => [
      new TextDecoder("utf-16le").decode(new Uint8Array([0, 0xd8, 65, 0])),
      new TextDecoder("utf-16le").decode(new Uint8Array([65, 0, 66])),
    ],
    ["\ufffdA", "A\ufffd"],
  ],
  "a detour through streams": [
    async () => {
      const s = new ReadableStream({
        start(c) {
          for (const t of ["a\ud83d", "\ude00b", "☃"]) c.enqueue(t);
          c.close();
        },
      })
        .pipeThrough(new TextEncoderStream())
        .pipeThrough(new TextDecoderStream());
      let all = "";
      for await (const t of s) all += t;
      return all;
    },
    "a😀b☃",
  ],
  "TextDecoderStream joins split characters": [
    async () => {
      const s = new ReadableStream({
        start(c) {
          for (const b of bytes("é☃")) c.enqueue(new Uint8Array([b]));
          c.close();
        },
      }).pipeThrough(new TextDecoderStream());
      let all = [];
      for await (const t of s) all.push(t);
      return all;
    },
    ["é", "☃"],
  ],
  "TextDecoderStream fatal": [
    async () => {
      const s = new Response(new Uint8Array([255])).body.pipeThrough(
        new TextDecoderStream("utf-8", { fatal: true }),
      );
      for await (const t of s);
      return 0;
    },
    throws("TypeError"),
  ],
  "atob and btoa": [
    () => [atob("aGk="), atob(" a G k "), btoa("hé"), btoa("")],
    ["hi", "hi", "aOk=", ""],
  ],
  "atob refuses": [() => atob("a"), throws("InvalidCharacterError")],
  "btoa refuses": [
    () => btoa("☃"),
    throws(
      "InvalidCharacterError",
      "btoa() can only operate on characters in the Latin1 (ISO/IEC 8859-1) range.",
    ),
  ],
};
