/* The fetch event, from its record to the call of the handler and from the response to a record.

   Nearly all of what a request is made of is made only when somebody asks for it: the event is one
   cell, which the Request, the ExecutionContext and the current request share until then. */

enum { SHORT_REPLY_UNITS = 1 << 20 };
static const char FETCH_PREFIX[] = "fetch\n";
static const char TEXT_HEAD[] = "200 OK\ncontent-type:text/plain;charset=UTF-8\n";

/* Functions of the boot code; host_object.c says what they take. */
enum hook { MAKE_STATE, MAKE_REQUEST, MAKE_RESPONSE, CALL_HANDLER, REPLY, FAIL, WAIT, HOOKS };

static struct {
    JSValue hooks[HOOKS];
    JSValue env;
    JSValue current; /* the cell or the state of the request that code runs for, or null */
    JSClassID cell_class;
    JSAtom fetch;
    bool began;
} serving = { .env = JS_UNDEFINED, .current = JS_NULL };

struct cell {
    uint32_t id;
    bool settled;
    JSValue text, extra; /* the head and the body, until the request's record is made of them */
    JSValue state, record;
};

static void finalize_cell(JSRuntime *rt, JSValueConst value)
{
    struct cell *cell = JS_VALUE_GET_OBJ(value)->u.opaque;

    JS_FreeValueRT(rt, cell->text);
    JS_FreeValueRT(rt, cell->extra);
    JS_FreeValueRT(rt, cell->state);
    JS_FreeValueRT(rt, cell->record);
    js_free_rt(rt, cell);
}

static void mark_cell(JSRuntime *rt, JSValueConst value, JS_MarkFunc *mark)
{
    struct cell *cell = JS_VALUE_GET_OBJ(value)->u.opaque;

    JS_MarkValue(rt, cell->extra, mark);
    JS_MarkValue(rt, cell->state, mark);
    JS_MarkValue(rt, cell->record, mark);
}

static struct cell *cell_of(JSValueConst value)
{
    JSObject *object;

    if (JS_VALUE_GET_TAG(value) != JS_TAG_OBJECT)
        return NULL;
    object = JS_VALUE_GET_OBJ(value);
    return object->class_id == serving.cell_class ? object->u.opaque : NULL;
}

/* Takes text and extra. */
static JSValue new_cell(JSContext *ctx, uint32_t id, JSValue text, JSValue extra)
{
    struct cell *cell = js_malloc(ctx, sizeof *cell);
    JSValue object = cell ? JS_NewObjectProtoClass(ctx, JS_NULL, serving.cell_class) : JS_EXCEPTION;

    if (JS_IsException(object)) {
        js_free(ctx, cell);
        JS_FreeValue(ctx, text);
        JS_FreeValue(ctx, extra);
        return JS_EXCEPTION;
    }
    *cell = (struct cell){ id, false, text, extra, JS_UNDEFINED, JS_UNDEFINED };
    JS_VALUE_GET_OBJ(object)->u.opaque = cell;
    return object;
}

/* onServe(env, hooks): see host_object.c */
static JSValue host_on_serve(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    static const JSClassDef definition = { "Event", .finalizer = finalize_cell,
                                           .gc_mark = mark_cell };
    uint32_t i;

    if (serving.cell_class)
        return JS_ThrowTypeError(ctx, "onServe() was called before");
    for (i = 0; i < HOOKS; i++) {
        serving.hooks[i] = JS_GetPropertyUint32(ctx, argv[1], i);
        if (!JS_IsFunction(ctx, serving.hooks[i]))
            return JS_ThrowTypeError(ctx, "onServe() needs %d functions", HOOKS);
    }
    serving.env = js_dup(argv[0]);
    serving.fetch = JS_NewAtom(ctx, "fetch");
    JS_NewClassID(runtime, &serving.cell_class);
    return JS_NewClass(runtime, serving.cell_class, &definition) ? JS_EXCEPTION : JS_UNDEFINED;
}

/* The state of a cell's request, made now if it was not before. Borrowed; or an exception. */
static JSValueConst state_of_cell(JSContext *ctx, struct cell *cell)
{
    if (JS_IsUndefined(cell->state)) {
        JSValue args[3] = { JS_NewUint32(ctx, cell->id), cell->record,
                            JS_NewBool(ctx, cell->settled) };
        JSValue state = JS_Call(ctx, serving.hooks[MAKE_STATE], JS_UNDEFINED, 3, vc(args));
        if (JS_IsException(state))
            return JS_EXCEPTION;
        cell->state = state;
    }
    return cell->state;
}

/* Makes the record of the host's Request. Borrowed; or an exception. */
static JSValueConst record_of_cell(JSContext *ctx, struct cell *cell)
{
    if (JS_IsUndefined(cell->record)) {
        JSValue args[3] = { cell->text, cell->extra, cell->state };
        JSValue record;
        /* a body that streams in has to know whom it is for */
        if (JS_IsNumber(cell->extra)) {
            args[2] = unsafe_unconst(state_of_cell(ctx, cell));
            if (JS_IsException(args[2]))
                return JS_EXCEPTION;
        }
        record = JS_Call(ctx, serving.hooks[MAKE_REQUEST], JS_UNDEFINED, 3, vc(args));
        if (JS_IsException(record))
            return JS_EXCEPTION;
        cell->record = record;
        JS_FreeValue(ctx, cell->text);
        JS_FreeValue(ctx, cell->extra);
        cell->text = cell->extra = JS_UNDEFINED;
    }
    return cell->record;
}

/* Makes the record of a Response that is only a text yet, or, when it is `true`, one that was sent.
 */
static JSValue record_of_text(JSContext *ctx, JSValueConst held)
{
    return JS_Call(ctx, serving.hooks[MAKE_RESPONSE], JS_UNDEFINED, 1, &held);
}

/* The record of an object, made now if it was not before. A new reference. */
static JSValue full_record(JSContext *ctx, JSObject *object)
{
    JSValue *slot = record_slot(object), record, old;
    struct cell *cell;

    if (JS_IsString(*slot) || JS_IsBool(*slot)) {
        record = record_of_text(ctx, *slot);
    } else if (object->class_id == platform[PLATFORM_REQUEST].id && (cell = cell_of(*slot))) {
        record = js_dup(record_of_cell(ctx, cell));
    } else if (object->class_id == platform[PLATFORM_CONTEXT].id && (cell = cell_of(*slot))) {
        record = js_dup(state_of_cell(ctx, cell));
    } else {
        return js_dup(*slot);
    }
    if (JS_IsException(record))
        return record;
    old = *slot;
    *slot = js_dup(record);
    JS_FreeValue(ctx, old);
    return record;
}

/* requestOf(value), responseOf(value), headersOf(value), contextOf(value), urlOf(value),
   bodyOf(value) -> the record, or undefined */
static JSValue host_record_of(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv,
                              int kind)
{
    JSObject *object = platform_object(argv[0], kind);

    return object ? full_record(ctx, object) : JS_UNDEFINED;
}

/* currentState() -> the state of the request that code runs for, or null */
static JSValue host_current_state(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    struct cell *cell = cell_of(serving.current);

    return js_dup(cell ? state_of_cell(ctx, cell) : serving.current);
}

static void set_current(JSContext *ctx, JSValueConst value)
{
    JSValue old = serving.current;

    serving.current = js_dup(value);
    JS_FreeValue(ctx, old);
}

/* setCurrent(state) */
static JSValue host_set_current(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    set_current(ctx, argv[0]);
    return JS_UNDEFINED;
}

/* requestId() -> the id of the request that code runs for, or 0 */
static JSValue host_request_id(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    struct cell *cell = cell_of(serving.current);

    if (cell)
        return JS_NewUint32(ctx, cell->id);
    if (!JS_IsObject(serving.current))
        return JS_NewUint32(ctx, 0);
    return JS_GetPropertyStr(ctx, serving.current, "id");
}

/* hasBegun() -> whether an event has come: before that, nothing may be asked of the host */
static JSValue host_has_begun(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    return JS_NewBool(ctx, serving.began);
}

/* ---- replies ---- */

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
