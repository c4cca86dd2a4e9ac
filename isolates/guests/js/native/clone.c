/* structuredClone, serialising and deserialising in one pass.

   The two passes of the HTML Standard differ from one only where a getter watches the copy being
   made, and it cannot: the copies are reachable by nobody until the clone is whole. */

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
            JSValue element = js_dup(array->u.array.u.values[i]),
                    copy = clone_value(clone, element);
            JS_FreeValue(ctx, element);
            if (JS_IsException(copy) ||
                JS_DefinePropertyValueUint32(ctx, to, i, copy, JS_PROP_C_W_E) < 0)
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
    list_for_each(el, &map->records)
    { /* all entries first: copying one may run a getter that changes the map */
        JSMapRecord *record = list_entry(el, JSMapRecord, link);
        if (record->empty || count + (is_set ? 1 : 2) > wanted)
            continue;
        entries[count++] = js_dup(record->key);
        if (!is_set)
            entries[count++] = js_dup(record->value);
    }
    for (i = 0; i < count && copied; i += is_set ? 1 : 2) {
        args[0] = clone_value(clone, entries[i]);
        args[1] =
            is_set || JS_IsException(args[0]) ? JS_UNDEFINED : clone_value(clone, entries[i + 1]);
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
    else if ((class_id == JS_CLASS_OBJECT && !is_platform_object(object)) ||
             class_id == JS_CLASS_ARGUMENTS || class_id == JS_CLASS_MAPPED_ARGUMENTS)
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

/* Whether argv[1] is a list of distinct, whole ArrayBuffers. -1 with an exception, else its length.
 */
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
            JS_ThrowDOMException(ctx, "DataCloneError",
                                 "Value not transferable, already detached or listed twice.");
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
