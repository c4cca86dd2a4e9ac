// The JavaScript twin of sdk/abi.py; a test keeps the two equal.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  boot.ToGuest = {
    EVENT: 1,
    RESOLVE: 2,
    REJECT: 3,
    CHUNK: 4,
    END: 5,
    FAIL: 6,
    CANCEL: 7,
    ACK: 8,
    STOP: 9,
    SEED: 10,
  };
  boot.ToHost = {
    FAULT: 1,
    LOG: 2,
    REPLY: 3,
    CHUNK: 4,
    END: 5,
    FAIL: 6,
    THROW: 7,
    SETTLED: 8,
    ACK: 9,
    STOP: 10,
    CANCEL: 11,
    OP: 12,
  };
  boot.GUEST_STREAM_WINDOW_BYTES = 256 * 1024;
  boot.HOST_STREAM_WINDOW_BYTES = 256 * 1024;
})();
