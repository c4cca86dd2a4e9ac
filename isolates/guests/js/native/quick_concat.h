/* Included in the middle of quickjs.c: what template literals and map() are made of. */

/* The length of a part of a template as text, and whether it is wide; -1 for other values. */
static int concat_length(JSValueConst part, bool *is_wide)
{
    char digits[16];
    JSString *string;

    switch (JS_VALUE_GET_TAG(part)) {
    case JS_TAG_STRING:
        string = JS_VALUE_GET_STRING(part);
        *is_wide |= string->is_wide_char;
        return (int)string->len;
    case JS_TAG_INT:
        return (int)i32toa(digits, JS_VALUE_GET_INT(part));
    default:
        return -1;
    }
}

/* memcpy is a call out of the guest, which costs more than most strings take. */
static void copy_bytes(uint8_t *to, const uint8_t *from, uint32_t length)
{
    uint32_t at = 0;

    if (length > 64) {
        memcpy(to, from, length);
        return;
    }
    for (; at + 8 <= length; at += 8)
        __builtin_memcpy(to + at, from + at, 8);
    for (; at < length; at++)
        to[at] = from[at];
}

/* Writes a part at `at` and returns its end. */
static uint32_t concat_part(JSString *whole, uint32_t at, JSValueConst part)
{
    char digits[16];
    JSString *string;
    uint32_t length, i;
    const uint8_t *bytes = (const uint8_t *)digits;

    if (JS_VALUE_GET_TAG(part) == JS_TAG_INT) {
        length = (uint32_t)i32toa(digits, JS_VALUE_GET_INT(part));
    } else {
        string = JS_VALUE_GET_STRING(part);
        length = string->len;
        if (string->is_wide_char) {
            memcpy(str16(whole) + at, str16(string), 2 * (size_t)length);
            return at + length;
        }
        bytes = str8(string);
    }
    if (whole->is_wide_char)
        for (i = 0; i < length; i++)
            str16(whole)[at + i] = bytes[i];
    else
        copy_bytes(str8(whole) + at, bytes, length);
    return at + length;
}

/* String.prototype.concat of strings and integers: one string, and none in between. Undefined for
   other values, or an exception. */
static JSValue quick_concat(JSContext *ctx, JSValueConst first, int argc, JSValueConst *argv)
{
    bool is_wide = false;
    int64_t total = concat_length(first, &is_wide);
    uint32_t at;
    JSString *whole;
    int i, length;

    if (total < 0)
        return JS_UNDEFINED;
    for (i = 0; i < argc; i++) {
        length = concat_length(argv[i], &is_wide);
        if (length < 0)
            return JS_UNDEFINED;
        total += length;
    }
    if (total > JS_STRING_LEN_MAX || !total)
        return JS_UNDEFINED;
    whole = js_alloc_string(ctx, (int)total, is_wide);
    if (!whole)
        return JS_EXCEPTION;
    at = concat_part(whole, 0, first);
    for (i = 0; i < argc; i++)
        at = concat_part(whole, at, argv[i]);
    if (!is_wide)
        str8(whole)[total] = 0;
    return JS_MKPTR(JS_TAG_STRING, whole);
}

/* Defines the element that comes next, mostly of an array that nobody else has seen. Takes it. */
static int define_next_element(JSContext *ctx, JSValueConst array, int64_t index, JSValue element)
{
    JSObject *object = JS_VALUE_GET_OBJ(array);

    if (object->class_id == JS_CLASS_ARRAY && object->fast_array && object->extensible &&
        object->u.array.count == index &&
        (get_shape_prop(object->shape)->flags & JS_PROP_WRITABLE))
        return add_fast_array_element(ctx, object, element, JS_PROP_THROW);
    return JS_DefinePropertyValueInt64(ctx, array, index, element, JS_PROP_C_W_E | JS_PROP_THROW);
}
