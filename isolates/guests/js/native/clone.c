/* structuredClone, serialising and deserialising in one pass.

   The two passes of the HTML Standard differ from one only where a getter watches the copy being made, and it cannot:
   the copies are reachable by nobody until the clone is whole. */

struct clone {
    JSContext *ctx;
    JSObjectList seen;           /* originals, by address */
    struct { JSValue original, copy; } *made; /* in the order of `seen`; holds both, so that no address is reused */
    int count, capacity;
};

static JSValue clone_value(struct clone *clone, JSValueConst value);

/* Objects whose prototype chain has this mark are of the platform (Request, Headers…) and cannot be cloned. */
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
    return JS_DefinePropertyValue(ctx, argv[0], platform_mark, JS_TRUE, 0) < 0 ? JS_EXCEPTION : JS_UNDEFINED;
}

static bool is_platform_object(JSObject *object)
{
    for (; platform_mark != JS_ATOM_NULL && object && object->class_id == JS_CLASS_OBJECT; object = object->shape->proto)
        if (find_own_property1(object, platform_mark))
            return true;
    return false;
}

/* Throws "… could not be cloned." The words are V8's: "#<Promise>", "Symbol(x)", a function's source. */
static JSValue refuse(JSContext *ctx, JSValueConst value)
{
    JSValue text = JS_UNDEFINED;
    const char *words = NULL;

    if (JS_IsSymbol(value)) {
        text = js_symbol_toString(ctx, value, 0, NULL);
    } else if (JS_IsFunction(ctx, value) && !JS_IsProxy(value)) {
        text = js_function_toString(ctx, value, 0, NULL);
    } else {
        JSValue constructor = JS_IsProxy(value) ? JS_UNDEFINED : JS_GetProperty(ctx, value, JS_ATOM_constructor);
        text = JS_IsObject(constructor) ? JS_GetProperty(ctx, constructor, JS_ATOM_name) : JS_UNDEFINED;
        JS_FreeValue(ctx, constructor);
        if (JS_IsException(constructor) || JS_IsException(text))
            JS_FreeValue(ctx, JS_GetException(ctx));
        else if (JS_IsString(text))
            words = JS_ToCString(ctx, text);
        JS_ThrowDOMException(ctx, "DataCloneError", "#<%.100s> could not be cloned.", words ? words : "Object");
        goto done;
    }
    words = JS_IsException(text) ? NULL : JS_ToCString(ctx, text);
    if (!words)
        JS_FreeValue(ctx, JS_GetException(ctx));
    JS_ThrowDOMException(ctx, "DataCloneError", "%.200s could not be cloned.", words ? words : "The value");
done:
    JS_FreeCString(ctx, words);
    JS_FreeValue(ctx, text);
    return JS_EXCEPTION;
}

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

static bool clone_property(struct clone *clone, JSValueConst from, JSValueConst to, JSAtom name)
{
    JSValue value = JS_GetProperty(clone->ctx, from, name), copy;

    if (JS_IsException(value))
        return false;
    copy = clone_value(clone, value);
    JS_FreeValue(clone->ctx, value);
    if (JS_IsException(copy))
        return false;
    return JS_DefinePropertyValue(clone->ctx, to, name, copy, JS_PROP_C_W_E) >= 0;
}

/* Copies the own enumerable properties with string names, as they are when their turn comes. */
static bool clone_properties(struct clone *clone, JSValueConst from, JSValueConst to)
{
    JSContext *ctx = clone->ctx;
    JSPropertyEnum *names;
    uint32_t count, i;
    bool copied = true;

    if (JS_GetOwnPropertyNames(ctx, &names, &count, from, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY))
        return false;
    for (i = 0; i < count && copied; i++) {
        int present = JS_GetOwnProperty(ctx, NULL, from, names[i].atom);
        copied = present >= 0 && (!present || clone_property(clone, from, to, names[i].atom));
    }
    JS_FreePropertyEnum(ctx, names, count);
    return copied;
}

/* A dense array with nothing but elements is copied without making a name for each. */
static bool clone_elements(struct clone *clone, JSValueConst from, JSValueConst to)
{
    JSObject *array = JS_VALUE_GET_OBJ(from);
    JSContext *ctx = clone->ctx;
    uint32_t i;
    int64_t length;

    if (array->fast_array && array->shape->prop_count == 1) {
        for (i = 0; array->fast_array && i < array->u.array.count; i++) {
            JSValue element = js_dup(array->u.array.u.values[i]), copy = clone_value(clone, element);
            JS_FreeValue(ctx, element);
            if (JS_IsException(copy) || JS_DefinePropertyValueUint32(ctx, to, i, copy, JS_PROP_C_W_E) < 0)
                return false;
        }
    }
    if (!array->fast_array || array->shape->prop_count != 1) {
        if (!clone_properties(clone, from, to))
            return false;
    }
    return JS_GetLength(ctx, from, &length) >= 0 && JS_SetLength(ctx, to, length) >= 0;
}

static bool clone_entries(struct clone *clone, JSValueConst from, JSValueConst to, bool is_set)
{
    JSContext *ctx = clone->ctx;
    JSMapState *map = JS_VALUE_GET_OBJ(from)->u.map_state;
    uint32_t count = 0, i, wanted = map->record_count * (is_set ? 1 : 2);
    JSValue *entries = js_malloc(ctx, (wanted ? wanted : 1) * sizeof *entries), args[2], added;
    struct list_head *el;
    bool copied = true;

    if (!entries)
        return false;
    list_for_each(el, &map->records) { /* all entries first: copying one may run a getter that changes the map */
        JSMapRecord *record = list_entry(el, JSMapRecord, link);
        if (record->empty || count + (is_set ? 1 : 2) > wanted)
            continue;
        entries[count++] = js_dup(record->key);
        if (!is_set)
            entries[count++] = js_dup(record->value);
    }
    for (i = 0; i < count && copied; i += is_set ? 1 : 2) {
        args[0] = clone_value(clone, entries[i]);
        args[1] = is_set || JS_IsException(args[0]) ? JS_UNDEFINED : clone_value(clone, entries[i + 1]);
        copied = !JS_IsException(args[0]) && !JS_IsException(args[1]);
        if (copied) {
            added = js_map_set(ctx, to, 2, vc(args), is_set ? MAGIC_SET : 0);
            copied = !JS_IsException(added);
            JS_FreeValue(ctx, added);
        }
        JS_FreeValue(ctx, args[0]);
        JS_FreeValue(ctx, args[1]);
    }
    for (i = 0; i < count; i++)
        JS_FreeValue(ctx, entries[i]);
    js_free(ctx, entries);
    return copied;
}

static JSValue clone_buffer(JSContext *ctx, JSValueConst value)
{
    JSArrayBuffer *buffer = JS_VALUE_GET_OBJ(value)->u.array_buffer;
    uint64_t longest = (uint64_t)buffer->max_byte_length;
    JSValue copy;
    uint8_t *bytes;
    size_t length;

    if (buffer->detached)
        return JS_ThrowDOMException(ctx, "DataCloneError", "An ArrayBuffer is detached and could not be cloned.");
    copy = js_array_buffer_constructor2(ctx, JS_UNDEFINED, (uint64_t)buffer->byte_length,
                                        buffer->max_byte_length < 0 ? NULL : &longest, JS_CLASS_ARRAY_BUFFER);
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
        return JS_ThrowDOMException(ctx, "DataCloneError", "An ArrayBuffer is detached and could not be cloned.");
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

/* Defines a hidden property of an error, as its constructor does. Takes the value; true unless it failed. */
static bool define_hidden(JSContext *ctx, JSValueConst object, JSAtom name, JSValue value)
{
    return !JS_IsException(value) &&
           JS_DefinePropertyValue(ctx, object, name, value, JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE) >= 0;
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
    static const struct { const char *name; JSErrorEnum kind; } kinds[] = {
        { "EvalError", JS_EVAL_ERROR }, { "RangeError", JS_RANGE_ERROR }, { "ReferenceError", JS_REFERENCE_ERROR },
        { "SyntaxError", JS_SYNTAX_ERROR }, { "TypeError", JS_TYPE_ERROR }, { "URIError", JS_URI_ERROR },
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

/* The stack of an error: the engine keeps it inside the object, unless captureStackTrace made a property of it. */
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
    if (JS_IsException(copy) || (remember(clone, value, copy) && clone_error_members(clone, value, copy)))
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
        return js_regexp_constructor_internal(ctx, JS_UNDEFINED,
                                              js_dup(JS_MKPTR(JS_TAG_STRING, object->u.regexp.pattern)),
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

static JSValue clone_object(struct clone *clone, JSValueConst value)
{
    JSContext *ctx = clone->ctx;
    JSObject *object = JS_VALUE_GET_OBJ(value);
    JSClassID class_id = object->class_id;
    JSValue copy;
    bool filled;

    if (class_id == JS_CLASS_ERROR)
        return clone_error(clone, value);
    if (class_id == JS_CLASS_MAP || class_id == JS_CLASS_SET)
        copy = js_map_constructor(ctx, JS_UNDEFINED, 0, NULL, class_id - JS_CLASS_MAP);
    else if (class_id == JS_CLASS_ARRAY)
        copy = JS_NewArray(ctx);
    else if ((class_id == JS_CLASS_OBJECT && !is_platform_object(object)) || class_id == JS_CLASS_ARGUMENTS ||
             class_id == JS_CLASS_MAPPED_ARGUMENTS)
        copy = JS_NewObject(ctx);
    else
        copy = clone_leaf(clone, value);
    if (JS_IsException(copy))
        return JS_EXCEPTION;
    if (!remember(clone, value, copy)) {
        JS_FreeValue(ctx, copy);
        return JS_EXCEPTION;
    }
    switch (class_id) {
    case JS_CLASS_MAP:
    case JS_CLASS_SET:
        filled = clone_entries(clone, value, copy, class_id == JS_CLASS_SET);
        break;
    case JS_CLASS_ARRAY:
        filled = clone_elements(clone, value, copy);
        break;
    case JS_CLASS_OBJECT:
    case JS_CLASS_ARGUMENTS:
    case JS_CLASS_MAPPED_ARGUMENTS:
        filled = clone_properties(clone, value, copy);
        break;
    default:
        filled = true;
    }
    if (filled)
        return copy;
    JS_FreeValue(ctx, copy);
    return JS_EXCEPTION;
}

static JSValue clone_value(struct clone *clone, JSValueConst value)
{
    JSContext *ctx = clone->ctx;
    int index;

    if (JS_IsSymbol(value))
        return refuse(ctx, value);
    if (!JS_IsObject(value))
        return js_dup(value);
    if (js_check_stack_overflow(ctx->rt, 0))
        return JS_ThrowStackOverflow(ctx);
    index = js_object_list_find(ctx, &clone->seen, JS_VALUE_GET_OBJ(value));
    return index < 0 ? clone_object(clone, value) : js_dup(clone->made[index].copy);
}

/* Whether argv[1] is a list of distinct, whole ArrayBuffers. -1 with an exception, else its length. */
static int64_t check_transfer_list(JSContext *ctx, JSValueConst list)
{
    int64_t length, i, j;

    if (JS_IsUndefined(list))
        return 0;
    if (JS_GetLength(ctx, list, &length))
        return -1;
    for (i = 0; i < length; i++) {
        JSValue item = JS_GetPropertyInt64(ctx, list, i);
        bool usable = JS_IsArrayBuffer(item) && !JS_VALUE_GET_OBJ(item)->u.array_buffer->detached &&
                      !JS_VALUE_GET_OBJ(item)->u.array_buffer->immutable;

        for (j = 0; j < i && usable; j++) {
            JSValue earlier = JS_GetPropertyInt64(ctx, list, j);
            usable = !JS_IsStrictEqual(ctx, item, earlier);
            JS_FreeValue(ctx, earlier);
        }
        JS_FreeValue(ctx, item);
        if (JS_HasException(ctx))
            return -1;
        if (!usable) {
            JS_ThrowDOMException(ctx, "DataCloneError", "Value not transferable, already detached or listed twice.");
            return -1;
        }
    }
    return length;
}

/* clone(value, transferList): transferList is an array or undefined */
static JSValue host_clone(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    struct clone clone = { .ctx = ctx };
    int64_t transferred = check_transfer_list(ctx, argv[1]), i;
    JSValue copy;

    if (transferred < 0)
        return JS_EXCEPTION;
    js_object_list_init(&clone.seen);
    copy = clone_value(&clone, argv[0]);
    for (i = 0; i < clone.count; i++) {
        JS_FreeValue(ctx, clone.made[i].original);
        JS_FreeValue(ctx, clone.made[i].copy);
    }
    js_free(ctx, clone.made);
    js_object_list_end(ctx, &clone.seen);
    for (i = 0; i < transferred && !JS_IsException(copy); i++) {
        JSValue item = JS_GetPropertyInt64(ctx, argv[1], i);
        if (JS_IsException(item)) {
            JS_FreeValue(ctx, copy);
            return JS_EXCEPTION;
        }
        JS_DetachArrayBuffer(ctx, item);
        JS_FreeValue(ctx, item);
    }
    return copy;
}
