/* Promises rejected with nobody listening. As in browsers, they are reported only if nobody listens
   either when the jobs have run: until then a handler may still be added. */

struct rejection {
    JSValue promise, reason;
};

static struct {
    struct rejection *entries;
    uint32_t count, capacity;
} rejections;
static JSValue on_unhandled = JS_UNDEFINED;

static bool is_handled(JSValueConst promise)
{
    JSPromiseData *data = JS_GetOpaque(promise, JS_CLASS_PROMISE);
    return !data || data->is_handled;
}

/* Drops what has been handled since, so that a loop of caught rejections does not grow the list. */
static void forget_handled(JSContext *ctx)
{
    uint32_t kept = 0, i;

    for (i = 0; i < rejections.count; i++) {
        struct rejection *entry = &rejections.entries[i];
        if (is_handled(entry->promise)) {
            JS_FreeValue(ctx, entry->promise);
            JS_FreeValue(ctx, entry->reason);
        } else {
            rejections.entries[kept++] = *entry;
        }
    }
    rejections.count = kept;
}

/* The engine's hook. It tells of a handler that came late too, which is_handled finds out by
   itself. */
static void track_rejection(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool handled,
                            void *opaque)
{
    if (handled)
        return;
    if (rejections.count == rejections.capacity) {
        forget_handled(ctx);
        if (rejections.count > rejections.capacity / 2 || !rejections.capacity) {
            uint32_t capacity = rejections.capacity ? rejections.capacity * 2 : 32;
            struct rejection *grown = realloc(rejections.entries, capacity * sizeof *grown);
            if (!grown)
                return; /* memory is short: this one goes unreported */
            rejections.entries = grown;
            rejections.capacity = capacity;
        }
    }
    rejections.entries[rejections.count++] = (struct rejection){ js_dup(promise), js_dup(reason) };
}

/* Runs every queued job, then reports the rejections that are left, until there is neither. */
static void run_jobs(JSContext *ctx)
{
    JSContext *job_context;
    int result;

    while ((result = JS_ExecutePendingJob(runtime, &job_context)) != 0)
        if (result < 0)
            fault_exception(ctx, 0);
}

static void settle(JSContext *ctx)
{
    struct rejection *entries;
    uint32_t count, i;

    run_jobs(ctx);
    while (rejections.count) {
        /* taken off first: the handler may reject more */
        entries = rejections.entries;
        count = rejections.count;
        rejections.entries = NULL;
        rejections.count = rejections.capacity = 0;
        for (i = 0; i < count; i++) {
            JSValue args[2] = { entries[i].reason, entries[i].promise }, result;
            if (!is_handled(args[1])) {
                if (JS_IsUndefined(on_unhandled)) {
                    fault_value(ctx, 0, args[0]);
                } else {
                    result = JS_Call(ctx, on_unhandled, JS_UNDEFINED, 2, vc(args));
                    if (JS_IsException(result))
                        fault_exception(ctx, 0);
                    JS_FreeValue(ctx, result);
                }
            }
            JS_FreeValue(ctx, args[0]);
            JS_FreeValue(ctx, args[1]);
        }
        free(entries);
        run_jobs(ctx);
    }
}

static JSValue set_callback(JSContext *ctx, JSValue *slot, JSValueConst function)
{
    if (!JS_IsFunction(ctx, function))
        return JS_ThrowTypeError(ctx, "expected a function");
    JS_FreeValue(ctx, *slot);
    *slot = js_dup(function);
    return JS_UNDEFINED;
}

/* onUnhandled(f) */
static JSValue host_on_unhandled(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    return set_callback(ctx, &on_unhandled, argv[0]);
}
