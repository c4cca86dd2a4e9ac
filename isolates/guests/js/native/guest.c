/* The native half of the JavaScript guest: QuickJS-NG and what the host and the boot code ask of
   it.

   One translation unit, because the parts below use the engine's internals (strings, typed arrays,
   promises, modules) that quickjs.h does not offer. Each part is one idea and only uses parts above
   it. The ABI with the host is docs/rfd/0002; the API for the boot code is described in
   host_object.c. */

#include "freestanding.h"

#include "quickjs.h"

/* Called from the patched engine. */
static JSValue refuse_code_generation(JSContext *ctx);
static JSValue out_of_memory_error(JSContext *ctx);

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Weverything"
#include "quickjs.c"
#pragma clang diagnostic pop

#undef printf
#undef fprintf
#undef putchar
#undef puts
#undef fputs
#undef fputc
#undef putc
#undef fwrite

/* Wasm cannot unwind, so a guest has one runtime and one context for its whole life. */
static JSRuntime *runtime;
static JSContext *context;

#include "code_generation.c"
#include "memory.c"
#include "immortal.c"
#include "nursery.c"
#include "byte_views.c"
#include "text.c"
#include "outbox.c"
#include "modules.c"
#include "faults.c"
#include "inbox.c"
#include "rejections.c"
#include "ops.c"
#include "url.c"
#include "random.c"
#include "wire.c"
#include "headers.c"
#include "platform.c"
#include "cells.c"
#include "fetch_event.c"
#include "clone_objects.c"
#include "clone.c"
#include "host_object.c"
#include "exports.c"
