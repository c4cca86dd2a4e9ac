// Header values on the wire. Records carry header bytes as Latin-1, as HTTP servers do; to a worker
// they are UTF-8, as on Workers. Nearly all are ASCII, for which the two are one.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  boot.toWire = boot.host.toWire;
  boot.fromWire = boot.host.fromWire;

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
