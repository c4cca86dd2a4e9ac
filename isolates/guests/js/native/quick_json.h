/* Included in the middle of quickjs.c: JSON.stringify writes short values into its buffer, where the
   engine makes a string of each and copies that. */

/* Whether no toJSON and no replacer can be asked about a value, and so its key is not needed. */
static bool json_is_plain(const JSONStringifyContext *jsc, JSValueConst value)
{
    return JS_IsUndefined(jsc->replacer_func) &&
           (JS_IsString(value) || JS_IsNumber(value) || JS_IsBool(value) || JS_IsNull(value));
}

/* How many bytes from the start on need no escape. */
static int json_plain_run(const uint8_t *bytes, int length)
{
    int at = 0;

    while (at < length && bytes[at] >= 32 && bytes[at] != '"' && bytes[at] != '\\')
        at++;
    return at;
}

/* 0, or -1 with an exception. */
static int json_concat_string(JSContext *ctx, StringBuffer *b, JSValueConst value)
{
    JSString *string = JS_VALUE_GET_TAG(value) == JS_TAG_STRING ? JS_VALUE_GET_STRING(value) : NULL;
    int length = string ? (int)string->len : 0;
    JSValue quoted;

    if (string && !string->is_wide_char && json_plain_run(str8(string), length) == length) {
        if (string_buffer_putc8(b, '"') || string_buffer_write8(b, str8(string), length))
            return -1;
        return string_buffer_putc8(b, '"');
    }
    quoted = JS_ToQuotedString(ctx, value);
    if (JS_IsException(quoted))
        return -1;
    return string_buffer_concat_value_free(b, quoted);
}

static int json_concat_int(StringBuffer *b, int32_t value)
{
    char digits[16];

    return string_buffer_write8(b, (const uint8_t *)digits, (int)i32toa(digits, value));
}

static JSValue js_json_check(JSContext *ctx, JSONStringifyContext *jsc, JSValueConst holder,
                             JSValue val, JSValueConst key);
static int js_json_to_str(JSContext *ctx, JSONStringifyContext *jsc, JSValueConst holder,
                          JSValue val, JSValueConst indent);

/* Whether an object's keys are those of its shape, in that order: no accessors, no indices. */
static bool json_has_plain_keys(JSContext *ctx, const JSONStringifyContext *jsc, JSValueConst value)
{
    JSObject *object = JS_VALUE_GET_OBJ(value);
    JSShape *shape = object->shape;
    JSShapeProperty *property = get_shape_prop(shape);
    uint32_t index;
    int i;

    if (object->class_id != JS_CLASS_OBJECT || object->is_exotic || !shape->is_hashed ||
        !JS_IsUndefined(jsc->property_list))
        return false;
    for (i = 0; i < shape->prop_count; i++, property++)
        if (property->atom != JS_ATOM_NULL && ((property->flags & JS_PROP_TMASK) != JS_PROP_NORMAL ||
                                               JS_AtomIsArrayIndex(ctx, &index, property->atom)))
            return false;
    return true;
}

/* Writes one member, if the value has JSON. Takes the value. 1 when written, 0, or -1 with an
   exception. */
static int json_concat_member(JSContext *ctx, JSONStringifyContext *jsc, JSValueConst object,
                              JSValueConst key, JSValue value, bool is_first, JSValueConst indent,
                              JSValueConst sep, JSValueConst sep1)
{
    if (!json_is_plain(jsc, value))
        value = js_json_check(ctx, jsc, object, value, key);
    if (JS_IsException(value))
        return -1;
    if (JS_IsUndefined(value))
        return 0;
    if (!is_first)
        string_buffer_putc8(jsc->b, ',');
    string_buffer_concat_value(jsc->b, sep);
    if (json_concat_string(ctx, jsc->b, key)) {
        JS_FreeValue(ctx, value);
        return -1;
    }
    string_buffer_putc8(jsc->b, ':');
    string_buffer_concat_value(jsc->b, sep1);
    return js_json_to_str(ctx, jsc, object, value, indent) ? -1 : 1;
}

/* Writes an object that has plain keys. What toJSON or a replacer does to it meanwhile gives it
   another shape, since this one is held; the keys are still those that it had at first. */
static int json_concat_object(JSContext *ctx, JSONStringifyContext *jsc, JSValueConst value,
                              JSValueConst indent, JSValueConst inner, JSValueConst sep,
                              JSValueConst sep1)
{
    JSObject *object = JS_VALUE_GET_OBJ(value);
    JSShape *shape = js_dup_shape(object->shape);
    bool has_content = false;
    int i, written = 0;

    string_buffer_putc8(jsc->b, '{');
    for (i = 0; i < shape->prop_count && written >= 0; i++) {
        JSShapeProperty property = get_shape_prop(shape)[i];
        JSValue key, member;

        if (property.atom == JS_ATOM_NULL || !(property.flags & JS_PROP_ENUMERABLE) ||
            JS_AtomGetKind(ctx, property.atom) != JS_ATOM_KIND_STRING)
            continue;
        member = object->shape == shape ? js_dup(object->prop[i].u.value)
                                        : JS_GetProperty(ctx, value, property.atom);
        key = JS_IsException(member) ? JS_EXCEPTION : JS_AtomToString(ctx, property.atom);
        if (JS_IsException(key)) {
            JS_FreeValue(ctx, member);
            written = -1;
            break;
        }
        written = json_concat_member(ctx, jsc, value, key, member, !has_content, inner, sep, sep1);
        has_content = has_content || written > 0;
        JS_FreeValue(ctx, key);
    }
    js_free_shape(ctx->rt, shape);
    if (written < 0)
        return -1;
    if (has_content && !JS_IsEmptyString(jsc->gap)) {
        string_buffer_putc8(jsc->b, '\n');
        string_buffer_concat_value(jsc->b, indent);
    }
    string_buffer_putc8(jsc->b, '}');
    return 0;
}
