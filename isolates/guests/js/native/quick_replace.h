/* Included in the middle of quickjs.c: replacing with a regular expression that nobody has changed,
   without an array for each match. The array could not be seen: the language makes one only so that
   an `exec` of one's own can. */

/* Where the captures of all matches begin and end, in units; -1 for those that took no part. */
struct matches {
    int *ends;
    int count, capacity;
};

static bool is_own_function(JSContext *ctx, JSObject *prototype, JSAtom atom, JSCFunction *function)
{
    JSProperty *property;
    JSShapeProperty *shape = find_own_property(&property, prototype, atom);

    if (!shape)
        return false;
    if ((shape->flags & JS_PROP_TMASK) == JS_PROP_AUTOINIT)
        return true; /* not even asked for yet */
    return (shape->flags & JS_PROP_TMASK) == JS_PROP_NORMAL &&
           JS_IsCFunction(ctx, property->u.value, function, 0);
}

static bool is_own_getter(JSContext *ctx, JSObject *prototype, JSAtom atom, void *getter, int magic)
{
    JSProperty *property;
    JSShapeProperty *shape = find_own_property(&property, prototype, atom);

    return shape && (shape->flags & JS_PROP_TMASK) == JS_PROP_GETSET && property->u.getset.getter &&
           JS_IsCFunction(ctx, JS_MKPTR(JS_TAG_OBJECT, property->u.getset.getter), getter, magic);
}

/* Whether all that the language would ask of a regular expression is as it was made. */
static bool is_unchanged_regexp(JSContext *ctx, JSValueConst value)
{
    static const struct {
        const char *name;
        int mask;
    } flags[] = {
        { "global", LRE_FLAG_GLOBAL },         { "ignoreCase", LRE_FLAG_IGNORECASE },
        { "multiline", LRE_FLAG_MULTILINE },   { "dotAll", LRE_FLAG_DOTALL },
        { "unicode", LRE_FLAG_UNICODE },       { "unicodeSets", LRE_FLAG_UNICODE_SETS },
        { "hasIndices", LRE_FLAG_INDICES },    { "sticky", LRE_FLAG_STICKY },
    };
    static JSAtom names[countof(flags)]; /* made once, and kept */
    JSObject *object, *prototype;
    unsigned i;

    if (JS_VALUE_GET_TAG(value) != JS_TAG_OBJECT)
        return false;
    object = JS_VALUE_GET_OBJ(value);
    prototype = JS_VALUE_GET_OBJ(ctx->class_proto[JS_CLASS_REGEXP]);
    if (object->class_id != JS_CLASS_REGEXP || object->shape->proto != prototype ||
        object->shape->prop_count != 1 || /* lastIndex */
        !(get_shape_prop(object->shape)->flags & JS_PROP_WRITABLE) ||
        JS_VALUE_GET_TAG(object->prop[0].u.value) != JS_TAG_INT ||
        !is_own_function(ctx, prototype, JS_ATOM_exec, js_regexp_exec) ||
        !is_own_getter(ctx, prototype, JS_ATOM_flags, js_regexp_get_flags, 0))
        return false;
    for (i = 0; i < countof(flags); i++) {
        if (names[i] == JS_ATOM_NULL)
            names[i] = JS_NewAtom(ctx, flags[i].name);
        if (!is_own_getter(ctx, prototype, names[i], js_regexp_get_flag, flags[i].mask))
            return false;
    }
    return true;
}

static bool add_match(JSContext *ctx, struct matches *matches, uint8_t **capture, int captures,
                      const uint8_t *start, int shift)
{
    int needed = matches->count + 2 * captures, i;

    if (needed > matches->capacity) {
        int capacity = needed > 64 ? 2 * needed : 128;
        int *grown = js_realloc(ctx, matches->ends, sizeof *grown * (size_t)capacity);
        if (!grown)
            return false;
        matches->ends = grown;
        matches->capacity = capacity;
    }
    for (i = 0; i < 2 * captures; i++)
        matches->ends[matches->count++] = capture[i] ? (int)(capture[i] - start) >> shift : -1;
    return true;
}

/* Finds what is to be replaced. False when it takes the long way: without memory, or time. */
static bool find_matches(JSContext *ctx, JSRegExp *re, JSString *text, struct matches *matches)
{
    uint8_t *bytecode = str8(re->bytecode), *start = str8(text), **capture;
    int flags = lre_get_flags(bytecode), captures = lre_get_capture_count(bytecode);
    int shift = text->is_wide_char, at = 0, found = 1, end;
    bool is_unicode = flags & (LRE_FLAG_UNICODE | LRE_FLAG_UNICODE_SETS);

    capture = js_malloc(ctx, sizeof *capture * (size_t)lre_get_alloc_count(bytecode));
    while (capture && at <= (int)text->len) {
        found = lre_exec(capture, bytecode, start, at, (int)text->len, shift, ctx);
        if (found != 1)
            break;
        if (!add_match(ctx, matches, capture, captures, start, shift)) {
            found = -1;
            break;
        }
        if (!(flags & LRE_FLAG_GLOBAL))
            break;
        end = (int)(capture[1] - start) >> shift;
        at = capture[1] > capture[0] ? end : (int)string_advance_index(text, end, is_unicode);
    }
    js_free(ctx, capture);
    return capture && found >= 0;
}

/* Calls the function for one match: its captures, its place, the text. */
static JSValue call_replacer(JSContext *ctx, JSValueConst replacer, JSValueConst text,
                             const int *ends, int captures)
{
    JSValue stack_arguments[12], *arguments = stack_arguments, result = JS_EXCEPTION;
    JSString *string = JS_VALUE_GET_STRING(text);
    int count = captures + 2, made, i;

    if (count > (int)countof(stack_arguments)) {
        arguments = js_malloc(ctx, sizeof *arguments * (size_t)count);
        if (!arguments)
            return JS_EXCEPTION;
    }
    for (made = 0; made < captures; made++) {
        int from = ends[2 * made], to = ends[2 * made + 1];
        arguments[made] = from < 0 || to < 0 ? JS_UNDEFINED : js_sub_string(ctx, string, from, to);
        if (JS_IsException(arguments[made]))
            break;
    }
    if (made == captures) {
        arguments[made] = js_int32(ends[0]);
        arguments[made + 1] = unsafe_unconst(text);
        result = JS_ToStringFree(ctx, JS_Call(ctx, replacer, JS_UNDEFINED, count, vc(arguments)));
    }
    for (i = 0; i < made; i++)
        JS_FreeValue(ctx, arguments[i]);
    if (arguments != stack_arguments)
        js_free(ctx, arguments);
    return result;
}

static JSValue replace_matches(JSContext *ctx, const struct matches *matches, int captures,
                               JSValueConst text, JSValueConst replacement)
{
    JSString *string = JS_VALUE_GET_STRING(text);
    StringBuffer buffer;
    int at, next = 0;
    JSValue with;

    string_buffer_init(ctx, &buffer, (int)string->len);
    for (at = 0; at < matches->count; at += 2 * captures) {
        const int *ends = matches->ends + at;
        with = JS_IsString(replacement) ? js_dup(replacement)
                                        : call_replacer(ctx, replacement, text, ends, captures);
        if (JS_IsException(with)) {
            string_buffer_free(&buffer);
            return JS_EXCEPTION;
        }
        string_buffer_concat(&buffer, string, (uint32_t)next, (uint32_t)ends[0]);
        string_buffer_concat_value_free(&buffer, with);
        next = ends[1];
    }
    string_buffer_concat(&buffer, string, (uint32_t)next, string->len);
    return string_buffer_end(&buffer);
}

/* The text with what matches replaced, undefined when it takes the long way, or an exception. */
static JSValue quick_replace(JSContext *ctx, JSValueConst regexp, JSValueConst text,
                             JSValueConst replacement)
{
    struct matches matches = { 0 };
    JSValue result = JS_UNDEFINED;
    JSRegExp *re;
    int flags;

    if (JS_VALUE_GET_TAG(text) != JS_TAG_STRING || !is_unchanged_regexp(ctx, regexp))
        return JS_UNDEFINED;
    if (JS_VALUE_GET_TAG(replacement) == JS_TAG_STRING
            ? string_indexof_char(JS_VALUE_GET_STRING(replacement), '$', 0) >= 0
            : !JS_IsFunction(ctx, replacement))
        return JS_UNDEFINED;
    re = js_get_regexp(ctx, regexp, false);
    flags = lre_get_flags(str8(re->bytecode));
    if (flags & LRE_FLAG_STICKY || lre_get_groupnames(str8(re->bytecode)))
        return JS_UNDEFINED;
    if (find_matches(ctx, re, JS_VALUE_GET_STRING(text), &matches)) {
        if (flags & LRE_FLAG_GLOBAL) /* where exec leaves it when it finds no more */
            JS_VALUE_GET_OBJ(regexp)->prop[0].u.value = js_int32(0);
        result = replace_matches(ctx, &matches, lre_get_capture_count(str8(re->bytecode)), text,
                                 replacement);
    } else {
        JS_FreeValue(ctx, JS_GetException(ctx)); /* the long way will say it again */
    }
    js_free(ctx, matches.ends);
    return result;
}
