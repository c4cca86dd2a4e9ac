/* Requests of the host before anybody has looked at them.

   Nearly all of what a request is made of is made only when somebody asks for it: the event is one
   cell, which the Request, the ExecutionContext and the current request share until then. */

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
