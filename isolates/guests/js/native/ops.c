/* Ops: what the guest asked of the host and waits for. The resolvers live in a table here and never
   in JavaScript; an id is slot | generation << 20, so that a stale or forged answer finds nobody.
 */

enum {
    OP_SLOT_BITS = 20,
    OP_LIMIT = 1000, /* the host's own (isolates/limits.py): it would refuse the next */
    OP_GENERATION_MASK = 0xFFF,
    OP_NO_SLOT = -1,
    OP_IN_USE = -2
};

struct op {
    JSValue resolve, reject;
    uint32_t generation;
    int32_t next_free;
};

static struct {
    struct op *slots;
    uint32_t count;
    int32_t first_free;
    uint32_t pending;
    uint32_t last_id;
} ops = { .first_free = OP_NO_SLOT };
static JSValue on_reject = JS_UNDEFINED;

enum { TO_HOST_OP = 12 };

static bool grow_ops(JSContext *ctx)
{
    uint32_t count = ops.count ? ops.count * 2 : 64, i;
    struct op *grown;

    grown = realloc(ops.slots, count * sizeof *grown);
    if (!grown) {
        JS_ThrowOutOfMemory(ctx);
        return false;
    }
    for (i = ops.count; i < count; i++)
        grown[i] = (struct op){ JS_UNDEFINED, JS_UNDEFINED, 1,
                                i + 1 < count ? (int32_t)i + 1 : OP_NO_SLOT };
    ops.slots = grown;
    ops.first_free = (int32_t)ops.count;
    ops.count = count;
    return true;
}

static void free_op(uint32_t slot)
{
    struct op *op = &ops.slots[slot];

    op->resolve = op->reject = JS_UNDEFINED;
    op->generation = (op->generation + 1) & OP_GENERATION_MASK;
    if (!op->generation)
        op->generation = 1; /* so that no id is 0 */
    op->next_free = ops.first_free;
    ops.first_free = (int32_t)slot;
    ops.pending--;
}

/* op(args, extra) -> a promise of the host's answer: [value, undefined | Uint8Array | stream id] */
static JSValue host_op(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    JSValue resolvers[2], promise;
    uint32_t slot, id;
    struct op *op;

    if (ops.pending >= OP_LIMIT)
        return JS_ThrowRangeError(ctx, "Too many operations are pending; the limit is %d.",
                                  OP_LIMIT);
    promise = JS_NewPromiseCapability(ctx, resolvers);
    if (JS_IsException(promise))
        return JS_EXCEPTION;
    if (ops.first_free == OP_NO_SLOT && !grow_ops(ctx))
        goto failed;
    slot = (uint32_t)ops.first_free;
    op = &ops.slots[slot];
    ops.first_free =
        op->next_free; /* taken before the arguments are written: their toJSON may make an op too */
    op->next_free = OP_IN_USE;
    ops.pending++;
    id = slot | op->generation << OP_SLOT_BITS;
    if (send_record(ctx, TO_HOST_OP, id, argv[0], argv[1])) {
        free_op(slot);
        goto failed;
    }
    op = &ops.slots[slot];
    op->resolve = resolvers[0];
    op->reject = resolvers[1];
    ops.last_id = id;
    return promise;
failed:
    JS_FreeValue(ctx, resolvers[0]);
    JS_FreeValue(ctx, resolvers[1]);
    JS_FreeValue(ctx, promise);
    return JS_EXCEPTION;
}

/* lastOp() -> the id of the op made last */
static JSValue host_last_op(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    return JS_NewUint32(ctx, ops.last_id);
}

/* onReject(f): f makes the error that a rejected op throws out of the host's payload */
static JSValue host_on_reject(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    return set_callback(ctx, &on_reject, argv[0]);
}

/* The reason to reject with. Takes the payload; a failing on_reject gives its own exception. */
static JSValue rejection_reason(JSContext *ctx, JSValue payload)
{
    JSValue reason;

    if (JS_IsUndefined(on_reject))
        return payload;
    reason = JS_Call(ctx, on_reject, JS_UNDEFINED, 1, vc(&payload));
    JS_FreeValue(ctx, payload);
    return JS_IsException(reason) ? JS_GetException(ctx) : reason;
}

/* Settles an op. Takes value and extra. An id that is not pending is none of ours, and ignored. */
static void settle_op(JSContext *ctx, uint32_t id, bool rejected, JSValue value, JSValue extra)
{
    uint32_t slot = id & ((1u << OP_SLOT_BITS) - 1);
    JSValue resolve, reject, outcome, pair[2];

    if (slot >= ops.count || ops.slots[slot].next_free != OP_IN_USE ||
        ops.slots[slot].generation != id >> OP_SLOT_BITS ||
        JS_IsUndefined(ops.slots[slot].resolve)) {
        JS_FreeValue(ctx, value);
        JS_FreeValue(ctx, extra);
        return;
    }
    resolve = ops.slots[slot].resolve;
    reject = ops.slots[slot].reject;
    free_op(slot);
    if (rejected) {
        JS_FreeValue(ctx, extra);
        outcome = rejection_reason(ctx, value);
    } else {
        pair[0] = value;
        pair[1] = extra;
        outcome = JS_NewArrayFrom(ctx, 2, pair);
        if (JS_IsException(outcome)) {
            outcome = JS_GetException(ctx);
            rejected = true;
        }
    }
    value = JS_Call(ctx, rejected ? reject : resolve, JS_UNDEFINED, 1, vc(&outcome));
    if (JS_IsException(value))
        fault_exception(ctx, 0);
    JS_FreeValue(ctx, value);
    JS_FreeValue(ctx, outcome);
    JS_FreeValue(ctx, resolve);
    JS_FreeValue(ctx, reject);
}
