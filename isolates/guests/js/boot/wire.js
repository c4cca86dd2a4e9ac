// Header values on the wire. Records carry header bytes as Latin-1, as HTTP servers do; to a worker
// they are UTF-8, as on Workers. Nearly all are ASCII, for which the two are one.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { utf8Encode, utf8Decode, latin1Decode } = boot.host;

  // A regular expression takes 40 ns a character; to encode ASCII is to copy it, and is done for
  // the head of every request and of most replies.
  const isAscii = (text) => boot.byteLength(utf8Encode(text)) === text.length;

  boot.toWire = (text) => (isAscii(text) ? text : latin1Decode(utf8Encode(text)));
  boot.fromWire = (text) => {
    if (isAscii(text)) return text;
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    try {
      return utf8Decode(bytes, true, true);
    } catch {
      return text;
    }
  };

  // [[name, value], …] of a list, each cookie on its own.
  boot.wirePairs = (list) => list.pairs().map(([name, value]) => [name, boot.toWire(value)]);
  boot.rawHeaders = (pairs) => {
    let raw = "";
    for (const [name, value] of pairs) {
      raw += `${`${name}`.toLowerCase()}:${boot.fromWire(`${value}`.replace(/[\0\r\n]/g, " "))}\n`;
    }
    return raw;
  };
})();
