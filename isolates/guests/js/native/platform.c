/* Objects of the platform's hottest classes: Request, Response, Headers, URL and ExecutionContext.
   Each holds one private value, its record, where no JavaScript can get at it. Classes of
   JavaScript with a private field do the same, at three times the cost of making one and of reading
   it.

   What a record is, is the boot code's business, but for two that are made only when somebody asks:
   the record of a Response made of a string alone is that string until then, and the record of the
   host's Request is the event (cells.c). Most of either are never looked at. */

enum platform_kind {
    PLATFORM_REQUEST,
    PLATFORM_RESPONSE,
    PLATFORM_HEADERS,
    PLATFORM_CONTEXT,
    PLATFORM_URL,
    PLATFORM_KINDS,
    ANY_BODY = PLATFORM_KINDS /* a Request or a Response */
};

static struct {
    JSClassID id;
    JSValue build; /* makes a record of a constructor's arguments */
} platform[PLATFORM_KINDS];

static JSValue *record_slot(JSObject *object)
{
    return &object->u.object_data;
}

static void finalize_platform(JSRuntime *rt, JSValueConst value)
{
    JS_FreeValueRT(rt, *record_slot(JS_VALUE_GET_OBJ(value)));
}

static void mark_platform_record(JSRuntime *rt, JSValueConst value, JS_MarkFunc *mark)
{
    JS_MarkValue(rt, *record_slot(JS_VALUE_GET_OBJ(value)), mark);
}

/* Takes the record. */
static JSValue hold_record(JSContext *ctx, JSValue object, JSValue record)
{
    if (JS_IsException(object))
        JS_FreeValue(ctx, record);
    else
        *record_slot(JS_VALUE_GET_OBJ(object)) = record;
    return object;
}

/* A new object of a class. Takes the record. */
static JSValue new_platform_object(JSContext *ctx, enum platform_kind kind, JSValue record)
{
    return hold_record(ctx, JS_NewObjectClass(ctx, platform[kind].id), record);
}

static JSValue construct_platform(JSContext *ctx, JSValueConst new_target, int argc,
                                  JSValueConst *argv, int kind)
{
    JSValue record, object;

    if (kind == PLATFORM_RESPONSE && argc == 1 && JS_IsString(argv[0]))
        record = flat_string(ctx, argv[0]);
    else
        record = JS_Call(ctx, platform[kind].build, JS_UNDEFINED, argc, argv);
    if (JS_IsException(record))
        return JS_EXCEPTION;
    object = js_create_from_ctor(ctx, new_target, (int)platform[kind].id);
    return hold_record(ctx, object, record);
}

/* defineClass(kind, prototype, name, length, build) -> the constructor */
static JSValue host_define_class(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    JSClassDef definition = { .finalizer = finalize_platform, .gc_mark = mark_platform_record };
    JSCFunctionType function = { .constructor_magic = construct_platform };
    JSValue constructor = JS_EXCEPTION;
    uint32_t kind, length;
    const char *name;

    if (JS_ToUint32(ctx, &kind, argv[0]) || JS_ToUint32(ctx, &length, argv[3]))
        return JS_EXCEPTION;
    if (kind >= PLATFORM_KINDS || platform[kind].id || !JS_IsObject(argv[1]))
        return JS_ThrowTypeError(ctx, "no class of kind %u can be defined", (unsigned)kind);
    name = definition.class_name = JS_ToCString(ctx, argv[2]);
    if (!name)
        return JS_EXCEPTION;
    JS_NewClassID(runtime, &platform[kind].id);
    if (!JS_NewClass(runtime, platform[kind].id, &definition)) {
        JS_SetClassProto(ctx, platform[kind].id, js_dup(argv[1]));
        platform[kind].build = js_dup(argv[4]);
        constructor = JS_NewCFunction2(ctx, function.generic, name, (int)length,
                                       JS_CFUNC_constructor_magic, (int)kind);
        if (!JS_IsException(constructor))
            JS_SetConstructor(ctx, constructor, argv[1]);
    }
    JS_FreeCString(ctx, name);
    return constructor;
}

/* wrap(kind, record) -> an object of that class */
static JSValue host_wrap(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    uint32_t kind;

    if (JS_ToUint32(ctx, &kind, argv[0]))
        return JS_EXCEPTION;
    if (kind >= PLATFORM_KINDS || !platform[kind].id)
        return JS_ThrowTypeError(ctx, "there is no class of kind %u", (unsigned)kind);
    return new_platform_object(ctx, kind, js_dup(argv[1]));
}

/* The object behind a value, if it is of that kind. */
static JSObject *platform_object(JSValueConst value, enum platform_kind kind)
{
    JSObject *object;

    if (JS_VALUE_GET_TAG(value) != JS_TAG_OBJECT)
        return NULL;
    object = JS_VALUE_GET_OBJ(value);
    if (kind == ANY_BODY
            ? object->class_id == platform[PLATFORM_REQUEST].id ||
                  object->class_id == platform[PLATFORM_RESPONSE].id
            : object->class_id == platform[kind].id)
        return object;
    return NULL;
}
