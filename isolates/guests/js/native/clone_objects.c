/* structuredClone: what a single object becomes. The graph is clone.c's business. */

struct clone {
    JSContext *ctx;
    JSObjectList seen; /* originals, by address */
    struct {
        JSValue original, copy;
    } *made; /* in the order of `seen`; holds both, so that no address is reused */
    int count, capacity;
};

static JSValue clone_value(struct clone *clone, JSValueConst value); /* in clone.c */

/* Remembers which copy an original became. Does not take either. */
static bool remember(struct clone *clone, JSValueConst original, JSValueConst copy)
{
    JSContext *ctx = clone->ctx;

    if (clone->count == clone->capacity) {
        int capacity = clone->capacity ? clone->capacity * 2 : 16;
        void *grown = js_realloc(ctx, clone->made, (size_t)capacity * sizeof *clone->made);
        if (!grown)
            return false;
        clone->made = grown;
        clone->capacity = capacity;
    }
    if (js_object_list_add(ctx, &clone->seen, JS_VALUE_GET_OBJ(original)))
        return false;
    clone->made[clone->count].original = js_dup(original);
    clone->made[clone->count++].copy = js_dup(copy);
    return true;
}

/* Objects whose prototype chain has this mark are of the platform (Request, Headers…) and cannot be
   cloned. */
static JSAtom platform_mark = JS_ATOM_NULL;

/* markPlatform(prototype) */
static JSValue host_mark_platform(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    if (platform_mark == JS_ATOM_NULL) {
        JSValue symbol = JS_NewPrivateSymbol(ctx, "platform");
        if (JS_IsException(symbol))
            return JS_EXCEPTION;
        platform_mark = JS_ValueToAtom(ctx, symbol);
        JS_FreeValue(ctx, symbol);
    }
    if (!JS_IsObject(argv[0]))
        return JS_ThrowTypeErrorNotAnObject(ctx);
    return JS_DefinePropertyValue(ctx, argv[0], platform_mark, JS_TRUE, 0) < 0 ? JS_EXCEPTION
                                                                               : JS_UNDEFINED;
}

static bool is_platform_object(JSObject *object)
{
    for (; platform_mark != JS_ATOM_NULL && object && object->class_id == JS_CLASS_OBJECT;
         object = object->shape->proto)
        if (find_own_property1(object, platform_mark))
            return true;
    return false;
}

/* Throws "… could not be cloned." The words are V8's: "#<Promise>", "Symbol(x)", a function's
   source. */
static JSValue refuse(JSContext *ctx, JSValueConst value)
{
    JSValue text = JS_UNDEFINED;
    const char *words = NULL;

    if (JS_IsSymbol(value)) {
        text = js_symbol_toString(ctx, value, 0, NULL);
    } else if (JS_IsFunction(ctx, value) && !JS_IsProxy(value)) {
        text = js_function_toString(ctx, value, 0, NULL);
    } else {
        JSValue constructor =
            JS_IsProxy(value) ? JS_UNDEFINED : JS_GetProperty(ctx, value, JS_ATOM_constructor);
        text = JS_IsObject(constructor) ? JS_GetProperty(ctx, constructor, JS_ATOM_name)
                                        : JS_UNDEFINED;
        JS_FreeValue(ctx, constructor);
        if (JS_IsException(constructor) || JS_IsException(text))
            JS_FreeValue(ctx, JS_GetException(ctx));
        else if (JS_IsString(text))
            words = JS_ToCString(ctx, text);
        JS_ThrowDOMException(ctx, "DataCloneError", "#<%.100s> could not be cloned.",
                             words ? words : "Object");
        goto done;
    }
    words = JS_IsException(text) ? NULL : JS_ToCString(ctx, text);
    if (!words)
        JS_FreeValue(ctx, JS_GetException(ctx));
    JS_ThrowDOMException(ctx, "DataCloneError", "%.200s could not be cloned.",
                         words ? words : "The value");
done:
    JS_FreeCString(ctx, words);
    JS_FreeValue(ctx, text);
    return JS_EXCEPTION;
}

static JSValue clone_buffer(JSContext *ctx, JSValueConst value)
{
    JSArrayBuffer *buffer = JS_VALUE_GET_OBJ(value)->u.array_buffer;
    uint64_t longest = (uint64_t)buffer->max_byte_length;
    JSValue copy;
    uint8_t *bytes;
    size_t length;

    if (buffer->detached)
        return JS_ThrowDOMException(ctx, "DataCloneError",
                                    "An ArrayBuffer is detached and could not be cloned.");
    copy = js_array_buffer_constructor2(ctx, JS_UNDEFINED, (uint64_t)buffer->byte_length,
                                        buffer->max_byte_length < 0 ? NULL : &longest,
                                        JS_CLASS_ARRAY_BUFFER);
    if (!JS_IsException(copy) && bytes_of(copy, &bytes, &length) && length)
        memcpy(bytes, buffer->data, length);
    return copy;
}

/* A view of the copy of the buffer: other views of the same buffer get the same copy. */
static JSValue clone_view(struct clone *clone, JSValueConst value)
{
    JSContext *ctx = clone->ctx;
    JSObject *object = JS_VALUE_GET_OBJ(value);
    JSTypedArray *view = object->u.typed_array;
    bool is_data_view = object->class_id == JS_CLASS_DATAVIEW;
    JSClassID class_id = object->class_id;
    JSValue buffer, copy, args[3];
    int shift = is_data_view ? 0 : typed_array_size_log2(class_id);

    if (view->buffer->u.array_buffer->detached || (!is_data_view && typed_array_is_oob(object)))
        return JS_ThrowDOMException(ctx, "DataCloneError",
                                    "An ArrayBuffer is detached and could not be cloned.");
    buffer = clone_value(clone, JS_MKPTR(JS_TAG_OBJECT, view->buffer));
    if (JS_IsException(buffer))
        return JS_EXCEPTION;
    args[0] = buffer;
    args[1] = JS_NewUint32(ctx, view->offset);
    args[2] = view->track_rab ? JS_UNDEFINED : JS_NewUint32(ctx, view->length >> shift);
    copy = is_data_view ? js_dataview_constructor(ctx, JS_UNDEFINED, 3, vc(args))
                        : js_typed_array_constructor(ctx, JS_UNDEFINED, 3, vc(args), class_id);
    JS_FreeValue(ctx, buffer);
    return copy;
}

/* Defines a hidden property of an error, as its constructor does. Takes the value; true unless it
   failed. */
static bool define_hidden(JSContext *ctx, JSValueConst object, JSAtom name, JSValue value)
{
    return !JS_IsException(value) &&
           JS_DefinePropertyValue(ctx, object, name, value,
                                  JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE) >= 0;
}

/* 1 and the value of an own data property; 0 when there is none; -1 with an exception. */
static int own_data_property(JSContext *ctx, JSValueConst object, JSAtom name, JSValue *value)
{
    JSPropertyDescriptor property;
    int present = JS_GetOwnProperty(ctx, &property, object, name);

    if (present <= 0)
        return present;
    JS_FreeValue(ctx, property.getter);
    JS_FreeValue(ctx, property.setter);
    *value = property.value;
    if (!(property.flags & JS_PROP_GETSET))
        return 1;
    JS_FreeValue(ctx, property.value);
    return 0;
}

static JSValue new_error_named(JSContext *ctx, JSValueConst name)
{
    static const struct {
        const char *name;
        JSErrorEnum kind;
    } kinds[] = {
        { "EvalError", JS_EVAL_ERROR },           { "RangeError", JS_RANGE_ERROR },
        { "ReferenceError", JS_REFERENCE_ERROR }, { "SyntaxError", JS_SYNTAX_ERROR },
        { "TypeError", JS_TYPE_ERROR },           { "URIError", JS_URI_ERROR },
    };
    const char *text = JS_ToCString(ctx, name);
    JSValueConst prototype = ctx->class_proto[JS_CLASS_ERROR];
    size_t i;

    if (!text)
        return JS_EXCEPTION;
    for (i = 0; i < countof(kinds); i++)
        if (!strcmp(kinds[i].name, text))
            prototype = ctx->native_error_proto[kinds[i].kind];
    JS_FreeCString(ctx, text);
    return JS_NewObjectProtoClass(ctx, prototype, JS_CLASS_ERROR);
}

/* The stack of an error: the engine keeps it inside the object, unless captureStackTrace made a
   property of it. */
static int stack_of(JSContext *ctx, JSValueConst error, JSValue *stack)
{
    int present = own_data_property(ctx, error, JS_ATOM_stack, stack);

    if (present)
        return present;
    *stack = js_dup(JS_VALUE_GET_OBJ(error)->u.object_data);
    return 1;
}

static bool clone_error_members(struct clone *clone, JSValueConst value, JSValueConst copy)
{
    JSContext *ctx = clone->ctx;
    JSValue member, text;
    int present = own_data_property(ctx, value, JS_ATOM_message, &member);

    if (present > 0) {
        text = JS_ToString(ctx, member);
        JS_FreeValue(ctx, member);
        if (!define_hidden(ctx, copy, JS_ATOM_message, text))
            return false;
    }
    if (present < 0 || stack_of(ctx, value, &member) < 0)
        return false;
    if (JS_IsString(member))
        JS_VALUE_GET_OBJ(copy)->u.object_data = member;
    else
        JS_FreeValue(ctx, member);
    present = own_data_property(ctx, value, JS_ATOM_cause, &member);
    if (present > 0) {
        JSValue cause = clone_value(clone, member);
        JS_FreeValue(ctx, member);
        if (!define_hidden(ctx, copy, JS_ATOM_cause, cause))
            return false;
    }
    return present >= 0;
}

/* An error of the built-in class its name says, with message, stack and cause. */
static JSValue clone_error(struct clone *clone, JSValueConst value)
{
    JSContext *ctx = clone->ctx;
    JSValue name = JS_GetProperty(ctx, value, JS_ATOM_name), copy;

    if (JS_IsException(name))
        return JS_EXCEPTION;
    copy = new_error_named(ctx, JS_IsString(name) ? name : JS_UNDEFINED);
    JS_FreeValue(ctx, name);
    if (JS_IsException(copy) ||
        (remember(clone, value, copy) && clone_error_members(clone, value, copy)))
        return copy;
    JS_FreeValue(ctx, copy);
    return JS_EXCEPTION;
}

static JSValue clone_dom_exception(JSContext *ctx, JSValueConst value)
{
    JSValue args[2], copy;

    args[0] = JS_GetPropertyStr(ctx, value, "message");
    args[1] = JS_GetPropertyStr(ctx, value, "name");
    copy = JS_IsException(args[0]) || JS_IsException(args[1])
               ? JS_EXCEPTION
               : js_domexception_constructor0(ctx, JS_UNDEFINED, 2, vc(args), 0);
    JS_FreeValue(ctx, args[0]);
    JS_FreeValue(ctx, args[1]);
    return copy;
}

/* Makes the copy of an object whose copy cannot lead back to it. Not remembered yet. */
static JSValue clone_leaf(struct clone *clone, JSValueConst value)
{
    JSContext *ctx = clone->ctx;
    JSObject *object = JS_VALUE_GET_OBJ(value);

    switch (object->class_id) {
    case JS_CLASS_BOOLEAN:
    case JS_CLASS_NUMBER:
    case JS_CLASS_STRING:
    case JS_CLASS_BIG_INT:
        return JS_ToObject(ctx, object->u.object_data);
    case JS_CLASS_DATE:
        return JS_NewDate(ctx, JS_VALUE_GET_NORM_TAG(object->u.object_data) == JS_TAG_INT
                                   ? JS_VALUE_GET_INT(object->u.object_data)
                                   : JS_VALUE_GET_FLOAT64(object->u.object_data));
    case JS_CLASS_REGEXP:
        return js_regexp_constructor_internal(
            ctx, JS_UNDEFINED, js_dup(JS_MKPTR(JS_TAG_STRING, object->u.regexp.pattern)),
            js_dup(JS_MKPTR(JS_TAG_STRING, object->u.regexp.bytecode)));
    case JS_CLASS_ARRAY_BUFFER:
        return clone_buffer(ctx, value);
    case JS_CLASS_DOM_EXCEPTION:
        return clone_dom_exception(ctx, value);
    default:
        if (is_typed_array(object->class_id) || object->class_id == JS_CLASS_DATAVIEW)
            return clone_view(clone, value);
        return refuse(ctx, value);
    }
}
