/* Included in the middle of quickjs.c: JSON.parse, and the host's JSON, without a token for each
   piece and without a search for each key.

   An object mostly has the keys of the one before it, in the same order: then it gets that one's
   shape at once. Whatever is malformed, or nested too deeply, is left to the engine's own parser,
   which begins anew and knows what to say. The text ends in a NUL. */

/* So many frames fit into the margin of the C stack (exports.c), and so nothing checks it. */
enum { PARSE_DEEPEST = 200, PARSE_HINTS = 16 };

struct plain_parser {
    JSContext *ctx;
    const uint8_t *at, *end;
    int depth;
    JSProperty *members; /* of objects that are not finished and have the keys expected so far */
    int count, capacity;
    JSShape *hints[PARSE_HINTS]; /* held: the latest shape of an object, by the key it was under */
};

/* Each returns false for what is not plain, or with an exception. */
static bool parse_plain_value(struct plain_parser *p, JSShape **hint, JSValue *value);

static uint8_t skip_blanks(struct plain_parser *p)
{
    while (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t')
        p->at++;
    return *p->at;
}

/* The end of a run of bytes that are themselves in a string. */
static const uint8_t *plain_run(const uint8_t *at)
{
    while (*at >= 32 && *at != '"' && *at != '\\' && *at < 0x80)
        at++;
    return at;
}

static bool parse_escape(struct plain_parser *p, StringBuffer *text)
{
    static const char escapes[] = "b\bf\fn\nr\rt\t\"\"\\\\//";
    uint32_t unit = 0;
    int digit, i;

    for (i = 0; escapes[i]; i += 2)
        if (*p->at == escapes[i]) {
            p->at++;
            return !string_buffer_putc8(text, (uint8_t)escapes[i + 1]);
        }
    if (*p->at++ != 'u')
        return false;
    for (i = 0; i < 4; i++) {
        digit = from_hex(*p->at++);
        if (digit < 0)
            return false;
        unit = unit << 4 | (uint32_t)digit;
    }
    return !string_buffer_putc16(text, unit);
}

/* The rest of a string that has escapes or more than ASCII, of which `start` was seen. */
static bool parse_mixed_string(struct plain_parser *p, const uint8_t *start, JSValue *value)
{
    StringBuffer text;
    const uint8_t *next = p->at;
    bool is_good;

    if (string_buffer_init(p->ctx, &text, 64))
        return false;
    for (;;) {
        is_good = !string_buffer_write8(&text, start, (int)(p->at - start));
        if (!is_good || *p->at == '"')
            break;
        if (*p->at == '\\') {
            p->at++;
            is_good = parse_escape(p, &text);
        } else {
            uint32_t c = *p->at >= 0x80 ? utf8_decode(p->at, &next) : 0;
            is_good = c && next > p->at + 1 && !string_buffer_putc(&text, c);
            p->at = next;
        }
        if (!is_good)
            break;
        start = p->at;
        p->at = plain_run(start);
    }
    if (!is_good) {
        string_buffer_free(&text);
        return false;
    }
    p->at++;
    *value = string_buffer_end(&text);
    return !JS_IsException(*value);
}

/* From after the quote on. */
static bool parse_plain_string(struct plain_parser *p, JSValue *value)
{
    const uint8_t *start = p->at;

    p->at = plain_run(start);
    if (*p->at != '"')
        return parse_mixed_string(p, start, value);
    *value = js_new_string8_len(p->ctx, (const char *)start, (int)(p->at - start));
    p->at++;
    return !JS_IsException(*value);
}

/* A number of up to 15 digits is exact in a double, and so is a power of ten up to the 22nd: one
   multiplication or division of the two rounds as it should. */
static bool parse_plain_number(struct plain_parser *p, JSValue *value)
{
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    const uint8_t *start = p->at, *digits, *point;
    bool is_negative = *p->at == '-', has_exponent;
    uint64_t mantissa = 0;
    int count, places = 0;
    double number;

    p->at += is_negative;
    digits = p->at;
    for (; is_digit(*p->at); p->at++)
        mantissa = mantissa * 10 + (*p->at - '0');
    count = (int)(p->at - digits);
    if (!count || (*digits == '0' && count > 1))
        return false;
    if (*p->at == '.') {
        point = ++p->at;
        for (; is_digit(*p->at); p->at++)
            mantissa = mantissa * 10 + (*p->at - '0');
        places = (int)(p->at - point);
        if (!places)
            return false;
    }
    has_exponent = *p->at == 'e' || *p->at == 'E';
    if (has_exponent) {
        p->at++;
        p->at += *p->at == '+' || *p->at == '-';
        if (!is_digit(*p->at))
            return false;
        while (is_digit(*p->at))
            p->at++;
    }
    if (has_exponent || count + places > 15)
        number = strtod((const char *)start, NULL);
    else
        number = (is_negative ? -1.0 : 1.0) * ((double)mantissa / powers[places]);
    *value = js_number(number);
    return true;
}

static bool parse_plain_array(struct plain_parser *p, JSShape **hint, JSValue *value)
{
    JSValue array = JS_NewArray(p->ctx), element;
    JSObject *object;
    bool is_good;

    if (JS_IsException(array))
        return false;
    object = JS_VALUE_GET_OBJ(array);
    is_good = skip_blanks(p) == ']';
    while (!is_good) {
        if (!parse_plain_value(p, hint, &element) ||
            add_fast_array_element(p->ctx, object, element, JS_PROP_THROW) < 0)
            break;
        is_good = skip_blanks(p) == ']';
        if (!is_good && *p->at++ != ',')
            break;
    }
    p->at++;
    if (is_good)
        *value = array;
    else
        JS_FreeValue(p->ctx, array);
    return is_good;
}

/* Whether the key that comes now is the one at `index` of a shape; then it is passed over. */
static bool pass_expected_key(struct plain_parser *p, const JSShape *shape, int index)
{
    const JSAtomStruct *name;
    JSAtom key;

    if (!shape || index >= shape->prop_count)
        return false;
    key = get_shape_prop((JSShape *)shape)[index].atom;
    if (__JS_AtomIsTaggedInt(key))
        return false;
    name = p->ctx->rt->atom_array[key];
    if (name->is_wide_char || p->end - p->at <= (ptrdiff_t)name->len ||
        p->at[name->len] != '"' || memcmp(str8((JSString *)name), p->at, name->len))
        return false;
    if (plain_run(p->at) != p->at + name->len)
        return false; /* Latin-1 there, UTF-8 here */
    p->at += name->len + 1;
    return true;
}

/* Takes the member. */
static bool add_member(struct plain_parser *p, JSValue object, JSAtom key, JSValue member)
{
    JSProperty *property;

    if (find_own_property(&property, JS_VALUE_GET_OBJ(object), key)) {
        set_value(p->ctx, &property->u.value, member);
        return true;
    }
    property = add_property(p->ctx, JS_VALUE_GET_OBJ(object), key, JS_PROP_C_W_E);
    if (property)
        property->u.value = member;
    else
        JS_FreeValue(p->ctx, member);
    return property;
}

/* An object of the members from `base` on, which are taken: those of a shape, or its first ones. */
static JSValue object_of_members(struct plain_parser *p, JSShape *shape, int base)
{
    int count = p->count - base, i;
    JSProperty *members = p->members + base;
    JSValue object;
    bool is_good = true;

    p->count = base;
    if (shape && shape->prop_count == count)
        return JS_NewObjectFromShape(p->ctx, js_dup_shape(shape), JS_CLASS_OBJECT, members);
    object = JS_NewObject(p->ctx);
    is_good = !JS_IsException(object);
    for (i = 0; i < count; i++) {
        if (is_good)
            is_good = add_member(p, object, get_shape_prop(shape)[i].atom, members[i].u.value);
        else
            JS_FreeValue(p->ctx, members[i].u.value);
    }
    if (is_good)
        return object;
    JS_FreeValue(p->ctx, object);
    return JS_EXCEPTION;
}

static bool push_member(struct plain_parser *p, JSValue member)
{
    int capacity = p->capacity ? p->capacity * 2 : 32;
    JSProperty *grown;

    if (p->count == p->capacity) {
        grown = js_realloc(p->ctx, p->members, sizeof *grown * (size_t)capacity);
        if (!grown) {
            JS_FreeValue(p->ctx, member);
            return false;
        }
        p->members = grown;
        p->capacity = capacity;
    }
    p->members[p->count++].u.value = member;
    return true;
}

/* Reads one member into *object, or onto the stack as long as there is none. */
static bool parse_member(struct plain_parser *p, JSShape *shape, int base, JSValue *object)
{
    int index = p->count - base;
    JSAtom key = JS_ATOM_NULL;
    JSValue name, member;
    bool is_good;

    if (JS_IsUndefined(*object) && pass_expected_key(p, shape, index)) {
        key = JS_DupAtom(p->ctx, get_shape_prop(shape)[index].atom);
    } else {
        if (JS_IsUndefined(*object))
            *object = object_of_members(p, shape, base);
        if (JS_IsException(*object) || !parse_plain_string(p, &name))
            return false;
        key = JS_NewAtomStr(p->ctx, JS_VALUE_GET_STRING(name)); /* takes it */
        if (key == JS_ATOM_NULL)
            return false;
    }
    is_good = skip_blanks(p) == ':';
    if (is_good) {
        p->at++;
        is_good = parse_plain_value(p, &p->hints[key % PARSE_HINTS], &member);
    }
    if (is_good)
        is_good = JS_IsUndefined(*object) ? push_member(p, member)
                                          : add_member(p, *object, key, member);
    JS_FreeAtom(p->ctx, key);
    return is_good;
}

static bool parse_plain_object(struct plain_parser *p, JSShape **hint, JSValue *value)
{
    JSShape *shape = *hint ? js_dup_shape(*hint) : NULL; /* the hint may change meanwhile */
    JSValue object = JS_UNDEFINED;
    int base = p->count;
    bool is_good = skip_blanks(p) == '}';

    while (!is_good) {
        if (skip_blanks(p) != '"')
            break;
        p->at++;
        if (!parse_member(p, shape, base, &object))
            break;
        is_good = skip_blanks(p) == '}';
        if (!is_good && *p->at++ != ',')
            break;
    }
    if (is_good) {
        p->at++;
        if (JS_IsUndefined(object))
            object = object_of_members(p, shape, base);
        is_good = !JS_IsException(object);
    }
    if (shape)
        js_free_shape(p->ctx->rt, shape);
    if (is_good) {
        if (*hint)
            js_free_shape(p->ctx->rt, *hint);
        *hint = js_dup_shape(JS_VALUE_GET_OBJ(object)->shape);
        *value = object;
        return true;
    }
    while (p->count > base)
        JS_FreeValue(p->ctx, p->members[--p->count].u.value);
    JS_FreeValue(p->ctx, object);
    return false;
}

static bool parse_word(struct plain_parser *p, const char *word, JSValue meaning, JSValue *value)
{
    size_t length = strlen(word);

    *value = meaning;
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length))
        return false;
    p->at += length;
    return true;
}

static bool parse_plain_value(struct plain_parser *p, JSShape **hint, JSValue *value)
{
    bool is_good;

    switch (skip_blanks(p)) {
    case '"':
        p->at++;
        return parse_plain_string(p, value);
    case 't':
        return parse_word(p, "true", JS_TRUE, value);
    case 'f':
        return parse_word(p, "false", JS_FALSE, value);
    case 'n':
        return parse_word(p, "null", JS_NULL, value);
    case '[':
    case '{':
        if (++p->depth > PARSE_DEEPEST)
            return false;
        is_good = *p->at++ == '[' ? parse_plain_array(p, hint, value)
                                  : parse_plain_object(p, hint, value);
        p->depth--;
        return is_good;
    default:
        return parse_plain_number(p, value);
    }
}

/* The value of a text, or undefined for one that the engine's parser has to look at. */
static JSValue parse_plain_json(JSContext *ctx, const char *text, size_t length)
{
    struct plain_parser parser = { .ctx = ctx, .at = (const uint8_t *)text };
    JSShape *hint = NULL;
    JSValue value;
    bool is_good;
    int i;

    parser.end = parser.at + length;
    is_good = parse_plain_value(&parser, &hint, &value);
    if (is_good && (skip_blanks(&parser), parser.at != parser.end)) {
        JS_FreeValue(ctx, value);
        is_good = false;
    }
    if (hint)
        js_free_shape(ctx->rt, hint);
    for (i = 0; i < PARSE_HINTS; i++)
        if (parser.hints[i])
            js_free_shape(ctx->rt, parser.hints[i]);
    js_free(ctx, parser.members);
    if (is_good)
        return value;
    JS_FreeValue(ctx, JS_GetException(ctx)); /* the engine's parser will say it again */
    return JS_UNDEFINED;
}
