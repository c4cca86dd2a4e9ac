/* What the host calls (docs/rfd/0002). */

#define EXPORT(name) __attribute__((export_name(name), used))

/* What the linker gives the C stack, and what of it the engine's own checks leave alone: C code
   between two checks (number formatting, regular expressions, sorting) must never run off the end.
 */
enum { C_STACK_BYTES = BELEM_C_STACK_BYTES, C_STACK_MARGIN_BYTES = 256 * 1024 };

static JSValue on_record = JS_UNDEFINED;

static JSValue host_on_record(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    return set_callback(ctx, &on_record, argv[0]);
}

static uint64_t outbox_location(void)
{
    return (uint64_t)(uintptr_t)outbox.bytes << 32 | (uint32_t)outbox.length;
}

/* Makes the interpreter. stack_bytes bounds JavaScript's recursion; 0 is as much as there is. */
EXPORT("belem_init") void belem_init(uint32_t stack_bytes, uint32_t gc_threshold_bytes)
{
    const uint32_t most = C_STACK_BYTES - C_STACK_MARGIN_BYTES;

    if (runtime)
        __builtin_trap(); /* a second interpreter would leak the first */
    runtime = JS_NewRuntime();
    if (!runtime)
        __builtin_trap();
    JS_SetMaxStackSize(runtime, stack_bytes && stack_bytes < most ? stack_bytes : most);
    if (gc_threshold_bytes)
        JS_SetGCThreshold(runtime, gc_threshold_bytes);
    JS_SetModuleLoaderFunc(runtime, resolve_specifier, load_module, NULL);
    JS_SetHostPromiseRejectionTracker(runtime, track_rejection, NULL);
    context = JS_NewContext(runtime);
    if (!context || !make_out_of_memory_error(context) || !add_host_object(context))
        __builtin_trap();
    keep_memory_reserve();
}

/* The address of an inbox of at least that many bytes; 0 when there is no memory for it. */
EXPORT("belem_inbox") uint8_t *belem_inbox(uint32_t bytes)
{
    return inbox_reserve(bytes);
}

/* Evaluates the main module and waits for its top-level await as far as that goes without the host.
 */
static void evaluate_main(const char *name)
{
    JSModuleDef *module;
    JSValue promise, reason, namespace;
    JSPromiseStateEnum state;

    if (main_module) {
        fault_json(0, "{\"name\":\"Error\",\"message\":\"The main module was evaluated "
                      "before\",\"stack\":\"\"}");
        return;
    }
    module = load_module(context, name, NULL);
    promise = module ? JS_EvalFunction(context, JS_NewModuleValue(context, module)) : JS_EXCEPTION;
    if (JS_IsException(promise)) {
        fault_exception(context, 0);
        return;
    }
    run_jobs(context);
    state = JS_PromiseState(context, promise);
    if (state == JS_PROMISE_REJECTED) {
        JS_PromiseMarkAsHandled(context, promise);
        reason = JS_PromiseResult(context, promise);
        fault_value(context, 0, reason);
        JS_FreeValue(context, reason);
    } else if (state == JS_PROMISE_PENDING) {
        fault_json(0, "{\"name\":\"Error\",\"message\":\"The top-level await of the module never "
                      "finished: "
                      "I/O and timers are not available at the top level\",\"stack\":\"\"}");
    } else {
        main_module = module;
        free_evaluated_sources(context);
        namespace = JS_GetModuleNamespace(context, module); /* made now, not by a request */
        if (JS_IsException(namespace))
            fault_exception(context, 0);
        JS_FreeValue(context, namespace);
    }
    JS_FreeValue(context, promise);
}

EXPORT("belem_load") uint64_t belem_load(uint32_t name_bytes, uint32_t source_bytes, uint32_t flags)
{
    enum { BOOT_SCRIPT, MODULE_SOURCE, MAIN_MODULE };
    const uint64_t wanted = (uint64_t)name_bytes + 1 + source_bytes;
    char *box, *name, *source;
    JSValue value;

    if (!context)
        __builtin_trap();
    outbox_clear();
    keep_memory_reserve();
    if (!inbox.bytes || wanted > inbox.capacity || memchr(inbox.bytes, 0, name_bytes) ||
        !name_bytes || inbox.bytes[name_bytes] || flags > MAIN_MODULE) {
        fault_json(0, "{\"name\":\"TypeError\",\"message\":\"The inbox holds no "
                      "source\",\"stack\":\"\"}");
        return outbox_location();
    }
    /* The source outlives its inbox: evaluating may not, but the engine reads it while it compiles.
     */
    box = (char *)inbox.bytes;
    name = strdup(box);
    if (!name) {
        fault_json(0, "{\"name\":\"InternalError\",\"message\":\"out of memory\",\"stack\":\"\"}");
        return outbox_location();
    }
    source = box + name_bytes + 1;
    running_script = name;
    if (flags == MODULE_SOURCE) {
        if (!add_module(name, source, source_bytes))
            fault_json(0, "{\"name\":\"InternalError\",\"message\":\"out of "
                          "memory\",\"stack\":\"\"}");
    } else if (flags == MAIN_MODULE) {
        evaluate_main(name);
        settle(context);
    } else {
        source[source_bytes] = 0; /* inside the inbox's slack */
        value = JS_Eval(context, source, source_bytes, name, JS_EVAL_TYPE_GLOBAL);
        if (JS_IsException(value))
            fault_exception(context, 0);
        JS_FreeValue(context, value);
        settle(context);
    }
    running_script = NULL;
    free(name);
    return outbox_location();
}

/* Takes entropy of the host's, and leaves no copy of it. */
static void take_seed(uint8_t *entropy, size_t length)
{
    seed_generator(entropy, length);
    wipe(entropy, length);
    if (generator.seeded)
        seed_engine(context);
}

/* Hands one record to the boot code, or to the op that waits for it. */
static void dispatch(uint32_t kind, uint32_t id, uint32_t type, uint8_t *payload, size_t length)
{
    JSValue args[4], result;

    if (kind == 0 || kind >= TO_GUEST_KINDS) {
        JS_ThrowTypeError(context, "a record has kind %u", (unsigned)kind);
        fault_exception(context, 0);
        return;
    }
    if (kind == TO_GUEST_SEED) {
        take_seed(payload, length);
        return;
    }
    if (!read_payload(context, type, payload, length, &args[2], &args[3])) {
        if (kind == TO_GUEST_RESOLVE || kind == TO_GUEST_REJECT)
            settle_op(context, id, true, JS_GetException(context), JS_UNDEFINED);
        else
            fault_exception(context, id);
        return;
    }
    if (kind == TO_GUEST_RESOLVE || kind == TO_GUEST_REJECT) {
        settle_op(context, id, kind == TO_GUEST_REJECT, args[2], args[3]);
        return;
    }
    if (kind == TO_GUEST_EVENT && serving.cell_class && is_fetch(args[2])) {
        serve_fetch(context, id, args[2], args[3]);
        return;
    }
    args[0] = JS_NewUint32(context, kind);
    args[1] = JS_NewUint32(context, id);
    result = JS_Call(context, on_record, JS_UNDEFINED, 4, vc(args));
    if (JS_IsException(result))
        fault_exception(context, id);
    JS_FreeValue(context, result);
    JS_FreeValue(context, args[2]);
    JS_FreeValue(context, args[3]);
}

/* The hot entry. Each record is a task of its own: its microtasks run before the next is looked at.
 */
EXPORT("belem_step") uint64_t belem_step(uint32_t bytes, uint64_t now_us)
{
    size_t at = 0, length, left;

    if (!context)
        __builtin_trap();
    clock_us = now_us;
    outbox_clear();
    keep_memory_reserve();
    if (bytes > inbox.capacity)
        bytes = 0;
    while (at < bytes) {
        left = bytes - at;
        length = left < RECORD_HEAD_BYTES ? 0 : get_word(inbox.bytes + at + 12);
        if (left < RECORD_HEAD_BYTES || length > left - RECORD_HEAD_BYTES) {
            JS_ThrowTypeError(context, "the batch of %u bytes ends inside a record",
                              (unsigned)bytes);
            fault_exception(context, 0);
            break;
        }
        dispatch(get_word(inbox.bytes + at), get_word(inbox.bytes + at + 4),
                 get_word(inbox.bytes + at + 8), inbox.bytes + at + RECORD_HEAD_BYTES, length);
        run_jobs(context);
        /* Finished: the host looks here to see whose record takes so long. */
        memset(inbox.bytes + at, 0, sizeof(uint32_t));
        at += RECORD_HEAD_BYTES + ((length + 3) & ~(size_t)3);
    }
    settle(context);
    return outbox_location();
}

/* Makes the memory ready to become an image: no garbage, empty boxes, zeros where the stack has
   been, and what the first request needs where it needs it. */
EXPORT("belem_collect") void belem_collect(void)
{
    uint8_t *lowest = (uint8_t *)(uintptr_t)16,
            *here = __builtin_frame_address(0); /* the stack begins at 0 */

    if (runtime)
        JS_RunGC(runtime);
    inbox_empty();
    outbox_empty();
    keep_memory_reserve();
    if (runtime) {
        make_room_for_shapes(runtime);
        make_immortal(runtime);
    }
    if (!nursery.made)
        make_nursery();
    else if (main_module)
        open_nursery(context);
    wipe(lowest, (size_t)(here - lowest) - 256);
}

EXPORT("belem_heap_bytes") uint32_t belem_heap_bytes(void)
{
    return runtime ? (uint32_t)runtime->malloc_state.malloc_size : 0;
}
