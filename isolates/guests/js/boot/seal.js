// The last script, after the guest halves of bindings: from here on no script can reach the boot
// code.
(() => {
  "use strict";
  delete globalThis.__belem;
  delete globalThis.__boot;
})();
