/* The fetch event, from its record to the call of the handler and from the response to a record. */

enum { SHORT_REPLY_UNITS = 1 << 20 };
static const char FETCH_PREFIX[] = "fetch\n";
static const char TEXT_HEAD[] = "200 OK\ncontent-type:text/plain;charset=UTF-8\n";

enum { TO_HOST_REPLY = 3, TO_HOST_SETTLED = 8 };

/* Writes REPLY, of a text body and a head whose length is known, and returns where the head goes;
   the text is written already. Both or neither of REPLY and SETTLED are: NULL without memory. */
static uint8_t *reply_record(uint32_t id, size_t head_length, JSString *text)
{
    size_t body_length = utf8_length(text), length = 4 + head_length + body_length;
    uint8_t *at;

    if (!outbox_reserve(2 * RECORD_HEAD_BYTES + length + 3))
        return NULL;
    at = outbox_record(TO_HOST_REPLY, id, TYPE_TEXT_AND_BYTES, length);
    put_word(at, (uint32_t)head_length);
    write_utf8(at + 4 + head_length, text);
    outbox_record(TO_HOST_SETTLED, id, TYPE_NONE, 0);
    return at + 4;
}

/* replyText(id, status, reason, headers, text): the whole reply, and that it is over */
static JSValue host_reply_text(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    JSValue strings[3] = { JS_UNDEFINED, JS_UNDEFINED, JS_UNDEFINED }, result = JS_EXCEPTION;
    JSString *reason, *headers;
    uint32_t id, status, i;
    char digits[16];
    int count;
    uint8_t *at;

    if (JS_ToUint32(ctx, &id, argv[0]) || JS_ToUint32(ctx, &status, argv[1]))
        return JS_EXCEPTION;
    for (i = 0; i < 3; i++) {
        strings[i] = flat_string(ctx, argv[2 + i]);
        if (JS_IsException(strings[i]))
            goto done;
    }
    reason = JS_VALUE_GET_STRING(strings[0]);
    headers = JS_VALUE_GET_STRING(strings[1]);
    count = snprintf(digits, sizeof digits, "%u ", (unsigned)status);
    at = reply_record(id, (size_t)count + wire_length(reason) + 1 + wire_length(headers),
                      JS_VALUE_GET_STRING(strings[2]));
    if (!at) {
        JS_ThrowOutOfMemory(ctx);
        goto done;
    }
    memcpy(at, digits, (size_t)count);
    at = write_wire(at + count, reason);
    *at++ = '\n';
    write_wire(at, headers);
    result = JS_UNDEFINED;
done:
    for (i = 0; i < 3; i++)
        JS_FreeValue(ctx, strings[i]);
    return result;
}

/* Whether this was a Response of a text alone, sent now. */
static bool reply_with_text(JSContext *ctx, struct cell *cell, JSObject *response)
{
    JSValue text = *record_slot(response);
    uint8_t *at;

    if (!JS_IsUndefined(cell->state) || !JS_IsString(text) ||
        JS_VALUE_GET_STRING(text)->len > SHORT_REPLY_UNITS)
        return false;
    at = reply_record(cell->id, sizeof TEXT_HEAD - 1, JS_VALUE_GET_STRING(text));
    if (!at)
        return false;
    memcpy(at, TEXT_HEAD, sizeof TEXT_HEAD - 1);
    cell->settled = true;
    *record_slot(response) = JS_TRUE;
    JS_FreeValue(ctx, text);
    return true;
}

/* ---- the event ---- */

/* Calls a function of the boot code that handles its errors itself. */
static void call_hook(JSContext *ctx, struct cell *cell, enum hook hook, int argc, JSValue *args)
{
    JSValue result = JS_Call(ctx, serving.hooks[hook], JS_UNDEFINED, argc, vc(args));

    if (JS_IsException(result))
        fault_exception(ctx, cell->id);
    JS_FreeValue(ctx, result);
}

/* Takes the error. */
static void fail_cell(JSContext *ctx, struct cell *cell, JSValue error)
{
    JSValue args[2] = { unsafe_unconst(state_of_cell(ctx, cell)), error };

    if (JS_IsException(args[0]))
        fault_exception(ctx, cell->id);
    else
        call_hook(ctx, cell, FAIL, 2, args);
    JS_FreeValue(ctx, error);
}

static void reply_to_cell(JSContext *ctx, struct cell *cell, JSValueConst value)
{
    JSObject *response = platform_object(value, PLATFORM_RESPONSE);
    JSValue args[3];

    if (response && reply_with_text(ctx, cell, response))
        return;
    args[0] = JS_NewUint32(ctx, cell->id);
    args[1] = response ? full_record(ctx, response) : JS_UNDEFINED;
    if (JS_IsException(args[1])) {
        fail_cell(ctx, cell, JS_GetException(ctx));
        return;
    }
    args[2] = cell->state;
    call_hook(ctx, cell, REPLY, 3, args);
    cell->settled = JS_IsUndefined(cell->state);
    JS_FreeValue(ctx, args[1]);
}

static JSValue call_handler(JSContext *ctx, JSValue request, JSValue execution_context)
{
    JSValue args[3] = { request, serving.env, execution_context }, result = JS_EXCEPTION;
    JSValue namespace, entry, handler;

    namespace = main_module ? JS_GetModuleNamespace(ctx, main_module) : JS_UNDEFINED;
    if (JS_IsException(namespace))
        return JS_EXCEPTION;
    entry = JS_IsUndefined(namespace) ? JS_UNDEFINED
                                      : JS_GetProperty(ctx, namespace, JS_ATOM_default);
    JS_FreeValue(ctx, namespace);
    if (JS_IsException(entry))
        return JS_EXCEPTION;
    if (JS_IsObject(entry) && !JS_IsFunction(ctx, entry)) {
        handler = JS_GetProperty(ctx, entry, serving.fetch);
        if (JS_IsFunction(ctx, handler))
            result = JS_Call(ctx, handler, entry, 3, vc(args));
        else if (!JS_IsException(handler))
            JS_ThrowPlainError(ctx, "Handler does not export a fetch() function.");
        JS_FreeValue(ctx, handler);
    } else {
        args[1] = execution_context;
        result = JS_Call(ctx, serving.hooks[CALL_HANDLER], JS_UNDEFINED, 2, vc(args));
    }
    JS_FreeValue(ctx, entry);
    return result;
}

static JSValue call_with_cell(JSContext *ctx, JSValueConst cell)
{
    JSValue request = new_platform_object(ctx, PLATFORM_REQUEST, js_dup(cell));
    JSValue execution_context = new_platform_object(ctx, PLATFORM_CONTEXT, js_dup(cell));
    JSValue result = JS_EXCEPTION;

    if (!JS_IsException(request) && !JS_IsException(execution_context))
        result = call_handler(ctx, request, execution_context);
    JS_FreeValue(ctx, request);
    JS_FreeValue(ctx, execution_context);
    return result;
}

/* Replies with what a handler returned. A promise is read when the jobs have run: to wait for it
   with reactions would cost more than all the rest. */
static void take_result(JSContext *ctx, JSValueConst object, struct cell *cell, JSValueConst result)
{
    JSPromiseStateEnum state = JS_PromiseState(ctx, result);
    JSValue args[2], value;

    if (state >= 0) {
        run_jobs(ctx);
        set_current(ctx, object);
        state = JS_PromiseState(ctx, result);
    } else if (platform_object(result, PLATFORM_RESPONSE)) {
        reply_to_cell(ctx, cell, result);
        return;
    }
    if (state == JS_PROMISE_FULFILLED) {
        value = JS_PromiseResult(ctx, result);
        reply_to_cell(ctx, cell, value);
        JS_FreeValue(ctx, value);
    } else if (state == JS_PROMISE_REJECTED) {
        JS_PromiseMarkAsHandled(ctx, result);
        fail_cell(ctx, cell, JS_PromiseResult(ctx, result));
    } else {
        args[0] = unsafe_unconst(state_of_cell(ctx, cell));
        args[1] = unsafe_unconst(result);
        if (JS_IsException(args[0]))
            fault_exception(ctx, cell->id);
        else
            call_hook(ctx, cell, WAIT, 2, args);
    }
}

static bool is_fetch(JSValueConst text)
{
    const uint32_t length = sizeof FETCH_PREFIX - 1;
    JSString *string;
    uint32_t i;

    if (!JS_IsString(text))
        return false;
    string = JS_VALUE_GET_STRING(text);
    if (string->len < length)
        return false;
    for (i = 0; i < length && string_get(string, (int)i) == FETCH_PREFIX[i]; i++)
        ;
    return i == length;
}

/* Handles the event. Takes text and extra. */
static void serve_fetch(JSContext *ctx, uint32_t id, JSValue text, JSValue extra)
{
    JSValue object = new_cell(ctx, id, text, extra), result;
    struct cell *cell;

    if (JS_IsException(object)) {
        fault_exception(ctx, id);
        return;
    }
    cell = cell_of(object);
    serving.began = true;
    set_current(ctx, object);
    /* chunks of a streamed body may come before anybody has looked at it */
    if (JS_IsNumber(extra) && JS_IsException(record_of_cell(ctx, cell)))
        result = JS_EXCEPTION;
    else
        result = call_with_cell(ctx, object);
    if (JS_IsException(result))
        fail_cell(ctx, cell, JS_GetException(ctx));
    else
        take_result(ctx, object, cell, result);
    JS_FreeValue(ctx, result);
    JS_FreeValue(ctx, object);
}
