/* Included in the middle of quickjs.c: JSON.stringify of plain data at one go.

   Plain are objects and arrays that have data properties only and that inherit no toJSON. No
   JavaScript runs while they are written, so what was seen of a shape or a prototype stays true. At
   the first value that is not plain, or lies deeper than cycles would ever let a writer come back
   from, all is begun anew the engine's own way. */

/* So many frames fit into the margin of the C stack (exports.c), and so nothing checks it. */
enum { JSON_DEEPEST = 64, JSON_SHAPES = 8, JSON_FIRST_UNITS = 256, JSON_FIRST_UNITS_MOST = 65536 };

enum json_outcome { JSON_WRITTEN, JSON_NOT_PLAIN, JSON_FAILED };

struct json_writer {
    JSContext *ctx;
    StringBuffer text;
    int depth;
    JSShape *known[JSON_SHAPES]; /* shapes whose keys are plain */
    JSObject *prototype[2];      /* of an object, of an array: without toJSON */
};

static uint32_t json_latest_units; /* how long the text was that was written last */

static enum json_outcome json_write(struct json_writer *w, JSValueConst value);

static enum json_outcome json_put(struct json_writer *w, const char *bytes, int length)
{
    StringBuffer *text = &w->text;
    uint8_t *out;
    int i;

    if (text->is_wide_char || text->len + length > text->size)
        return string_buffer_write8(text, (const uint8_t *)bytes, length) ? JSON_FAILED
                                                                          : JSON_WRITTEN;
    out = str8(text->str) + text->len;
    for (i = 0; i < length; i++)
        out[i] = (uint8_t)bytes[i];
    text->len += length;
    return JSON_WRITTEN;
}

/* Whether one of eight bytes has to be escaped. */
static bool json_has_escapes(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101ull, tops = 0x8080808080808080ull;
    uint64_t quotes = word ^ ones * '"', slashes = word ^ ones * '\\';

    return (((word - ones * 32) & ~word) | ((quotes - ones) & ~quotes) |
            ((slashes - ones) & ~slashes)) & tops;
}

/* Writes a string of bytes, if none has to be escaped. A key has a colon after it, and a comma
   before it, unless it is the first. The last word is read past the string's end, which the end of
   the heap always lies 8 bytes behind (allocator.c), and written past it too. */
static bool json_put_plain(StringBuffer *text, JSString *string, bool is_key, bool is_first)
{
    const uint64_t spaces = 0x2020202020202020ull;
    const uint8_t *from = str8(string);
    int length = (int)string->len, at = 0, most = length + 4 + 8;
    uint64_t word;
    uint8_t *out;

    if (string->is_wide_char || text->is_wide_char || length > JS_STRING_LEN_MAX - 12)
        return false;
    if (text->len + most > text->size && string_buffer_realloc(text, text->len + most, 0))
        return false;
    out = str8(text->str) + text->len;
    if (!is_first)
        *out++ = ',';
    *out++ = '"';
    for (; at + 8 <= length; at += 8) {
        memcpy(&word, from + at, 8);
        if (json_has_escapes(word))
            return false;
        memcpy(out + at, &word, 8);
    }
    if (at < length) {
        const uint64_t kept = ~0ull >> 8 * (8 - (length - at));
        memcpy(&word, from + at, 8);
        if (json_has_escapes((word & kept) | (spaces & ~kept)))
            return false;
        memcpy(out + at, &word, 8);
    }
    out += length;
    *out++ = '"';
    if (is_key)
        *out++ = ':';
    text->len = (int)(out - str8(text->str));
    return true;
}

static enum json_outcome json_put_string(struct json_writer *w, JSValueConst value)
{
    if (JS_VALUE_GET_TAG(value) == JS_TAG_STRING &&
        json_put_plain(&w->text, JS_VALUE_GET_STRING(value), false, true))
        return JSON_WRITTEN;
    return json_concat_string(w->ctx, &w->text, value) ? JSON_FAILED : JSON_WRITTEN;
}

static enum json_outcome json_put_number(struct json_writer *w, double number)
{
    JSDTOATempMem memory;
    char digits[64];
    int length;

    if (!isfinite(number))
        return json_put(w, "null", 4);
    length = quick_dtoa(digits, number);
    if (!length)
        length = js_dtoa(digits, number, 10, 0, JS_DTOA_FORMAT_FREE, &memory);
    return json_put(w, digits, length);
}

static enum json_outcome json_put_key(struct json_writer *w, JSString *name, bool is_first)
{
    enum json_outcome outcome = JSON_WRITTEN;

    if (json_put_plain(&w->text, name, true, is_first))
        return JSON_WRITTEN;
    if (!is_first)
        outcome = json_put(w, ",", 1);
    if (outcome == JSON_WRITTEN)
        outcome = json_put_string(w, JS_MKPTR(JS_TAG_STRING, name));
    return outcome == JSON_WRITTEN ? json_put(w, ":", 1) : outcome;
}

/* Whether an object's keys are those of its shape, in that order: no accessors, no indices. */
static bool json_knows_shape(struct json_writer *w, JSShape *shape)
{
    JSShape **known = &w->known[((uintptr_t)shape >> 4) % JSON_SHAPES];
    JSShapeProperty *property = get_shape_prop(shape);
    uint32_t index;
    int i;

    if (*known == shape)
        return true;
    for (i = 0; i < shape->prop_count; i++, property++) {
        if (property->atom == JS_ATOM_NULL)
            continue;
        if ((property->flags & JS_PROP_TMASK) != JS_PROP_NORMAL ||
            property->atom == JS_ATOM_toJSON || __JS_AtomIsTaggedInt(property->atom))
            return false;
        if (w->ctx->rt->atom_array[property->atom]->atom_type != JS_ATOM_TYPE_STRING ||
            JS_AtomIsArrayIndex(w->ctx, &index, property->atom))
            return false;
    }
    *known = shape;
    return true;
}

static bool json_inherits_plainly(struct json_writer *w, JSObject *prototype, bool is_array)
{
    JSObject *at;

    if (prototype == w->prototype[is_array])
        return true;
    for (at = prototype; at; at = at->shape->proto)
        if ((at->is_exotic && at->class_id != JS_CLASS_ARRAY) ||
            find_own_property1(at, JS_ATOM_toJSON))
            return false;
    w->prototype[is_array] = prototype;
    return true;
}

static enum json_outcome json_write_array(struct json_writer *w, JSObject *array)
{
    enum json_outcome outcome = json_put(w, "[", 1);
    JSValue length = array->prop[0].u.value;
    uint32_t i;

    if (!array->fast_array || array->shape->prop_count != 1 ||
        JS_VALUE_GET_TAG(length) != JS_TAG_INT ||
        (uint32_t)JS_VALUE_GET_INT(length) != array->u.array.count)
        return JSON_NOT_PLAIN;
    for (i = 0; i < array->u.array.count && outcome == JSON_WRITTEN; i++) {
        JSValue element = array->u.array.u.values[i];
        if (i)
            outcome = json_put(w, ",", 1);
        if (outcome == JSON_WRITTEN)
            outcome = JS_IsUndefined(element) ? json_put(w, "null", 4) : json_write(w, element);
    }
    return outcome == JSON_WRITTEN ? json_put(w, "]", 1) : outcome;
}

static enum json_outcome json_write_object(struct json_writer *w, JSObject *object)
{
    JSShapeProperty *property = get_shape_prop(object->shape);
    enum json_outcome outcome = json_put(w, "{", 1);
    bool is_first = true;
    int i;

    for (i = 0; i < object->shape->prop_count && outcome == JSON_WRITTEN; i++, property++) {
        JSValue member = object->prop[i].u.value;
        if (property->atom == JS_ATOM_NULL || !(property->flags & JS_PROP_ENUMERABLE) ||
            JS_IsUndefined(member))
            continue;
        outcome = json_put_key(w, w->ctx->rt->atom_array[property->atom], is_first);
        is_first = false;
        if (outcome == JSON_WRITTEN)
            outcome = json_write(w, member);
    }
    return outcome == JSON_WRITTEN ? json_put(w, "}", 1) : outcome;
}

static enum json_outcome json_write(struct json_writer *w, JSValueConst value)
{
    enum json_outcome outcome = JSON_NOT_PLAIN;
    char digits[16];
    JSObject *object;
    bool is_array;

    switch (JS_VALUE_GET_NORM_TAG(value)) {
    case JS_TAG_STRING:
    case JS_TAG_STRING_ROPE:
        return json_put_string(w, value);
    case JS_TAG_INT:
        return json_put(w, digits, (int)i32toa(digits, JS_VALUE_GET_INT(value)));
    case JS_TAG_FLOAT64:
        return json_put_number(w, JS_VALUE_GET_FLOAT64(value));
    case JS_TAG_BOOL:
        return JS_VALUE_GET_BOOL(value) ? json_put(w, "true", 4) : json_put(w, "false", 5);
    case JS_TAG_NULL:
        return json_put(w, "null", 4);
    case JS_TAG_OBJECT:
        break;
    default:
        return JSON_NOT_PLAIN;
    }
    object = JS_VALUE_GET_OBJ(value);
    is_array = object->class_id == JS_CLASS_ARRAY;
    if (++w->depth > JSON_DEEPEST || !json_inherits_plainly(w, object->shape->proto, is_array))
        return JSON_NOT_PLAIN;
    if (is_array)
        outcome = json_write_array(w, object);
    else if (object->class_id == JS_CLASS_OBJECT && !object->is_exotic &&
             json_knows_shape(w, object->shape))
        outcome = json_write_object(w, object);
    w->depth--;
    return outcome;
}

/* The JSON of a value, or undefined when it is not plain; or an exception. */
static JSValue json_of_plain(JSContext *ctx, JSValueConst value)
{
    struct json_writer writer = { .ctx = ctx };
    uint32_t units = json_latest_units + 16;
    enum json_outcome outcome;

    if (!JS_IsObject(value))
        return JS_UNDEFINED;
    if (units < JSON_FIRST_UNITS)
        units = JSON_FIRST_UNITS;
    if (units > JSON_FIRST_UNITS_MOST)
        units = JSON_FIRST_UNITS_MOST;
    if (string_buffer_init(ctx, &writer.text, (int)units))
        return JS_EXCEPTION;
    outcome = json_write(&writer, value);
    if (outcome == JSON_WRITTEN) {
        json_latest_units = (uint32_t)writer.text.len;
        return string_buffer_end(&writer.text);
    }
    string_buffer_free(&writer.text);
    return outcome == JSON_FAILED ? JS_EXCEPTION : JS_UNDEFINED;
}
