// TextEncoder and TextDecoder: UTF-8 natively, UTF-16 and the windows-1252 family here. Other
// legacy encodings are refused, as a label that is not known.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { host, illegal } = boot;
  const { utf8Encode, utf8EncodeInto, utf8Decode, utf8Incomplete, latin1Decode } = host;

  const LABELS = new Map();
  const label = (name, labels) => labels.split(" ").forEach((known) => LABELS.set(known, name));
  label("utf-8", "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8");
  label("utf-16le", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le");
  label("utf-16be", "unicodefffe utf-16be");
  label(
    "windows-1252",
    "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 " +
      "iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252",
  );

  // What windows-1252 has at 0x80-0x9f; the rest of it is Latin-1.
  const WINDOWS_1252 =
    "\u20ac\u0081\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u008d\u017d\u008f" +
    "\u0090\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u009d\u017e\u0178";

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(input = "") {
      return utf8Encode(`${input}`);
    }
    encodeInto(source, destination) {
      if (!(destination instanceof Uint8Array)) {
        throw new TypeError("encodeInto() needs a Uint8Array.");
      }
      const [read, written] = utf8EncodeInto(`${source}`, destination);
      return { read, written };
    }
  }

  let decoderState;
  class TextDecoder {
    #state;
    static {
      decoderState = (value) => {
        if (boot.isObject(value) && #state in value) return value.#state;
        throw illegal();
      };
    }
    constructor(label = "utf-8", options = undefined) {
      const encoding = LABELS.get(trimAscii(`${label}`).toLowerCase());
      if (encoding === undefined) {
        throw new RangeError(`"${label}" is not a valid encoding.`);
      }
      this.#state = {
        encoding,
        fatal: Boolean(options?.fatal),
        ignoreBOM: Boolean(options?.ignoreBOM),
        started: false, // the byte order mark has been dealt with
        rest: null, // bytes of a character that is not complete yet
      };
    }
    get encoding() {
      return decoderState(this).encoding;
    }
    get fatal() {
      return decoderState(this).fatal;
    }
    get ignoreBOM() {
      return decoderState(this).ignoreBOM;
    }
    decode(input = undefined, options = undefined) {
      const state = decoderState(this);
      const bytes = input === undefined ? EMPTY : boot.bytesOf(input);
      if (bytes === undefined) {
        throw new TypeError("decode() needs an ArrayBuffer or an ArrayBufferView.");
      }
      return decodeStep(state, bytes, Boolean(options?.stream));
    }
  }

  const EMPTY = new Uint8Array(0);
  const trimAscii = (text) => text.replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "");

  const decodeStep = (state, bytes, stream) => {
    if (state.encoding === "windows-1252") return decodeWindows1252(bytes);
    if (state.rest !== null) {
      bytes = boot.concatBytes([state.rest, bytes], state.rest.byteLength + bytes.byteLength);
      state.rest = null;
    }
    const utf8 = state.encoding === "utf-8";
    if (stream) {
      const held = utf8 ? heldUtf8(state, bytes) : heldUtf16(state, bytes);
      if (held > 0) {
        state.rest = boot.copyBytes(bytes.subarray(bytes.byteLength - held));
        bytes = bytes.subarray(0, bytes.byteLength - held);
      }
    }
    const keepMark = state.ignoreBOM || state.started;
    if (bytes.byteLength > 0) state.started = true;
    if (!stream) state.started = false;
    if (utf8) return decodeUtf8(bytes, state.fatal, keepMark);
    return decodeUtf16(bytes, state.encoding === "utf-16be", state.fatal, keepMark);
  };
  const undecodable = () => new TypeError("Failed to decode input.");
  const decodeUtf8 = (bytes, fatal, keepMark) => {
    if (!fatal) return utf8Decode(bytes, false, keepMark);
    try {
      return utf8Decode(bytes, true, keepMark);
    } catch (error) {
      throw error instanceof TypeError ? undecodable() : error;
    }
  };
  // Nothing is decoded before it is known whether the text starts with a whole byte order mark.
  const heldUtf8 = (state, bytes) => {
    if (!state.started && bytes.byteLength < 3 && isMarkPrefix(bytes)) return bytes.byteLength;
    return utf8Incomplete(bytes);
  };
  const isMarkPrefix = (bytes) =>
    bytes.byteLength > 0 && bytes[0] === 0xef && (bytes.byteLength === 1 || bytes[1] === 0xbb);
  const heldUtf16 = (state, bytes) => {
    const odd = bytes.byteLength % 2;
    const last = bytes.byteLength - odd - 2;
    if (last < 0) return odd;
    const high = bytes[last + (state.encoding === "utf-16be" ? 0 : 1)];
    return high >= 0xd8 && high <= 0xdb ? odd + 2 : odd;
  };

  const decodeUtf16 = (bytes, bigEndian, fatal, keepMark) => {
    const units = [];
    const pieces = [];
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let i = 0; i + 1 < bytes.byteLength; i += 2) {
      units.push(view.getUint16(i, !bigEndian));
      if (units.length === 4096) pieces.push(String.fromCharCode(...units.splice(0)));
    }
    pieces.push(String.fromCharCode(...units));
    let text = pieces.join("");
    if (!keepMark && text.startsWith("\ufeff")) text = text.slice(1);
    if (bytes.byteLength % 2 === 1) text += "\ud800"; // half a unit: malformed, as a lone surrogate
    if (fatal && !text.isWellFormed()) throw undecodable();
    return text.toWellFormed();
  };

  const decodeWindows1252 = (bytes) =>
    latin1Decode(bytes).replace(/[\x80-\x9f]/g, (c) => WINDOWS_1252[c.charCodeAt(0) - 0x80]);

  // ---- streams ----

  class TextEncoderStream extends boot.TransformStream {
    constructor() {
      let lead = "";
      const define = (enqueue) => ({
        // A surrogate pair may be split between two chunks.
        transform(chunk) {
          let text = lead + `${chunk}`;
          lead = "";
          const last = text.charCodeAt(text.length - 1);
          if (last >= 0xd800 && last <= 0xdbff) {
            lead = text.at(-1);
            text = text.slice(0, -1);
          }
          if (text !== "") enqueue(utf8Encode(text));
        },
        flush() {
          if (lead !== "") enqueue(new Uint8Array([0xef, 0xbf, 0xbd]));
        },
      });
      super(boot.INTERNAL, boot.createTransform(define));
    }
    get encoding() {
      return "utf-8";
    }
  }

  class TextDecoderStream extends boot.TransformStream {
    #decoder;
    constructor(label = "utf-8", options = undefined) {
      const decoder = new TextDecoder(label, options);
      const state = decoderState(decoder);
      const define = (enqueue) => ({
        transform(chunk) {
          const bytes = boot.bytesOf(chunk);
          if (bytes === undefined) {
            throw new TypeError("A TextDecoderStream accepts only ArrayBuffers and their views.");
          }
          const text = decodeStep(state, bytes, true);
          if (text !== "") enqueue(text);
        },
        flush() {
          const text = decodeStep(state, EMPTY, false);
          if (text !== "") enqueue(text);
        },
      });
      super(boot.INTERNAL, boot.createTransform(define));
      this.#decoder = decoder;
    }
    get encoding() {
      return this.#decoder.encoding;
    }
    get fatal() {
      return this.#decoder.fatal;
    }
    get ignoreBOM() {
      return this.#decoder.ignoreBOM;
    }
  }

  boot.expose(TextEncoder, TextDecoder, TextEncoderStream, TextDecoderStream);
})();
