/* Text between JavaScript strings and bytes, as the Encoding Standard has it. */

/* Returns a flat string (a new reference), or an exception. Runs JavaScript when `value` is an
   object. */
static JSValue flat_string(JSContext *ctx, JSValueConst value)
{
    if (JS_VALUE_GET_TAG(value) == JS_TAG_STRING)
        return js_dup(value);
    return JS_ToString(ctx, value);
}

/* Length of the leading run of ASCII, eight bytes at a time. */
static size_t ascii_run(const uint8_t *bytes, size_t length)
{
    size_t at = 0;
    uint64_t word;

    for (; at + 8 <= length; at += 8) {
        memcpy(&word, bytes + at, 8);
        if (word & 0x8080808080808080ull)
            break;
    }
    while (at < length && bytes[at] < 0x80)
        at++;
    return at;
}

/* The code point at *at; a surrogate without its other half reads as U+FFFD. */
static uint32_t next_code_point(const uint16_t *units, size_t length, size_t *at)
{
    uint32_t unit = units[(*at)++];

    if (likely(!is_surrogate(unit)))
        return unit;
    if (is_hi_surrogate(unit) && *at < length && is_lo_surrogate(units[*at]))
        return from_surrogate(unit, units[(*at)++]);
    return 0xFFFD;
}

static size_t utf8_size(uint32_t code_point)
{
    return code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
}

static uint8_t *put_utf8(uint8_t *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (uint8_t)c;
    } else if (c < 0x800) {
        *out++ = (uint8_t)(0xC0 | c >> 6);
        *out++ = (uint8_t)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *out++ = (uint8_t)(0xE0 | c >> 12);
        *out++ = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        *out++ = (uint8_t)(0x80 | (c & 0x3F));
    } else {
        *out++ = (uint8_t)(0xF0 | c >> 18);
        *out++ = (uint8_t)(0x80 | (c >> 12 & 0x3F));
        *out++ = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        *out++ = (uint8_t)(0x80 | (c & 0x3F));
    }
    return out;
}

/* Bytes that a flat string takes as UTF-8: at most 3 a unit, so under 3 GiB and no overflow. */
static size_t utf8_length(JSString *string)
{
    size_t length = string->len, total = 0, at = 0;

    if (!string->is_wide_char) {
        const uint8_t *bytes = str8(string);
        total = length;
        for (at = ascii_run(bytes, length); at < length; at++)
            total += bytes[at] >> 7;
        return total;
    }
    while (at < length)
        total += utf8_size(next_code_point(str16(string), length, &at));
    return total;
}

/* Writes all of a flat string; there must be room for utf8_length of it. */
static uint8_t *write_utf8(uint8_t *out, JSString *string)
{
    size_t length = string->len, at = 0;

    if (!string->is_wide_char) {
        const uint8_t *bytes = str8(string);
        at = ascii_run(bytes, length);
        memcpy(out, bytes, at);
        out += at;
        for (; at < length; at++)
            out = put_utf8(out, bytes[at]);
        return out;
    }
    while (at < length)
        out = put_utf8(out, next_code_point(str16(string), length, &at));
    return out;
}

enum { MALFORMED = 0x80000000u };

/* Reads one code point. A malformed sequence gives U+FFFD | MALFORMED and takes the longest prefix
   that could have begun a character, so that one broken character makes one replacement (the
   "maximal subpart" rule). */
static uint32_t read_utf8(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *p = *at;
    uint32_t c = *p++, lower = 0x80, upper = 0xBF;
    int wanted;

    if (c < 0x80) {
        *at = p;
        return c;
    }
    if (c >= 0xC2 && c <= 0xDF) {
        wanted = 1;
        c &= 0x1F;
    } else if ((c & 0xF0) == 0xE0) {
        wanted = 2;
        if (c == 0xE0)
            lower = 0xA0;
        else if (c == 0xED)
            upper = 0x9F;
        c &= 0x0F;
    } else if (c >= 0xF0 && c <= 0xF4) {
        wanted = 3;
        if (c == 0xF0)
            lower = 0x90;
        else if (c == 0xF4)
            upper = 0x8F;
        c &= 0x07;
    } else {
        *at = p;
        return 0xFFFD | MALFORMED;
    }
    for (; wanted; wanted--, lower = 0x80, upper = 0xBF) {
        if (p == end || *p < lower || *p > upper) {
            *at = p;
            return 0xFFFD | MALFORMED;
        }
        c = c << 6 | (*p++ & 0x3F);
    }
    *at = p;
    return c;
}

/* Makes a string of UTF-8. With `fatal`, malformed bytes throw a TypeError; else they become
   U+FFFD. */
static JSValue decode_utf8(JSContext *ctx, const uint8_t *bytes, size_t length, bool fatal)
{
    const uint8_t *end = bytes + length, *p;
    size_t ascii = ascii_run(bytes, length), units = ascii;
    uint32_t c, seen = 0;
    JSString *string;

    if (length == 0)
        return js_empty_string(ctx->rt);
    for (p = bytes + ascii; p < end;) {
        c = read_utf8(&p, end);
        if ((c & MALFORMED) && fatal)
            return JS_ThrowTypeError(ctx, "The encoded data was not valid for encoding utf-8");
        c &= ~MALFORMED;
        seen |= c;
        units += c > 0xFFFF ? 2 : 1;
    }
    if (units > JS_STRING_LEN_MAX)
        return JS_ThrowRangeError(ctx, "invalid string length");
    string = js_alloc_string(ctx, (int)units, seen > 0xFF);
    if (!string)
        return JS_EXCEPTION;
    if (seen <= 0xFF) {
        uint8_t *out = str8(string);
        memcpy(out, bytes, ascii);
        out += ascii;
        for (p = bytes + ascii; p < end;)
            *out++ = (uint8_t)read_utf8(&p, end);
        *out = 0;
    } else {
        uint16_t *out = str16(string);
        for (p = bytes; p < bytes + ascii;)
            *out++ = *p++;
        while (p < end) {
            c = read_utf8(&p, end) & ~MALFORMED;
            if (c > 0xFFFF) {
                *out++ = get_hi_surrogate(c);
                *out++ = get_lo_surrogate(c);
            } else {
                *out++ = (uint16_t)c;
            }
        }
    }
    return JS_MKPTR(JS_TAG_STRING, string);
}

/* How many bytes at the end begin a character that is well formed so far and not yet complete. */
static size_t incomplete_utf8(const uint8_t *bytes, size_t length)
{
    size_t back;

    for (back = 1; back <= 3 && back <= length; back++) {
        const uint8_t *at = bytes + length - back;
        uint8_t lead = *at;
        size_t wanted = lead >= 0xF0 && lead <= 0xF4   ? 4
                        : lead >= 0xE0 && lead <= 0xEF ? 3
                        : lead >= 0xC2 && lead <= 0xDF ? 2
                                                       : 0;

        if (lead >= 0x80 && lead <= 0xBF)
            continue;
        if (wanted <= back)
            return 0;
        read_utf8(&at, bytes + length);
        return at == bytes + length ? back : 0;
    }
    return 0;
}

/* UTF-8 of a string for a C library: borrowed from an ASCII string, else allocated. */
struct utf8_text {
    const char *bytes;
    size_t length;
    JSValue string;
    uint8_t *owned;
};

static bool utf8_text_of(JSContext *ctx, struct utf8_text *text, JSValueConst value)
{
    JSString *string;

    text->owned = NULL;
    text->string = flat_string(ctx, value);
    if (JS_IsException(text->string))
        return false;
    string = JS_VALUE_GET_STRING(text->string);
    if (!string->is_wide_char && ascii_run(str8(string), string->len) == string->len) {
        text->bytes = (const char *)str8(string);
        text->length = string->len;
        return true;
    }
    text->length = utf8_length(string);
    text->owned = js_malloc(ctx, text->length + 1);
    if (!text->owned) {
        JS_FreeValue(ctx, text->string);
        return false;
    }
    write_utf8(text->owned, string);
    text->bytes = (const char *)text->owned;
    return true;
}

static void free_utf8_text(JSContext *ctx, struct utf8_text *text)
{
    js_free(ctx, text->owned);
    JS_FreeValue(ctx, text->string);
}

/* utf8Encode(string) -> Uint8Array */
static JSValue host_utf8_encode(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    JSValue string = flat_string(ctx, argv[0]), array;
    uint8_t *out = NULL;

    if (JS_IsException(string))
        return JS_EXCEPTION;
    array = new_bytes(ctx, utf8_length(JS_VALUE_GET_STRING(string)), &out);
    if (!JS_IsException(array))
        write_utf8(out, JS_VALUE_GET_STRING(string));
    JS_FreeValue(ctx, string);
    return array;
}

/* utf8EncodeInto(string, bytes) -> [units read, bytes written]; never writes part of a character */
static JSValue host_utf8_encode_into(JSContext *ctx, JSValueConst self, int argc,
                                     JSValueConst *argv)
{
    JSValue string = flat_string(ctx, argv[0]), result[2];
    uint8_t *out, *start;
    size_t room, at = 0, next;
    uint32_t c;
    JSString *s;

    if (JS_IsException(string))
        return JS_EXCEPTION;
    if (!require_bytes(ctx, argv[1], &out, &room)) {
        JS_FreeValue(ctx, string);
        return JS_EXCEPTION;
    }
    start = out;
    s = JS_VALUE_GET_STRING(string);
    while (at < s->len) {
        next = at;
        if (s->is_wide_char)
            c = next_code_point(str16(s), s->len, &next);
        else
            c = str8(s)[next++];
        if (utf8_size(c) > room)
            break;
        room -= utf8_size(c);
        out = put_utf8(out, c);
        at = next;
    }
    JS_FreeValue(ctx, string);
    result[0] = JS_NewUint32(ctx, (uint32_t)at);
    result[1] = JS_NewUint32(ctx, (uint32_t)(out - start));
    return JS_NewArrayFrom(ctx, 2, result);
}

/* utf8Decode(bytes, fatal, ignoreBom) -> string */
static JSValue host_utf8_decode(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    bool fatal = JS_ToBool(ctx, argv[1]), ignore_bom = JS_ToBool(ctx, argv[2]);
    uint8_t *bytes;
    size_t length;

    if (!require_bytes(ctx, argv[0], &bytes, &length))
        return JS_EXCEPTION;
    if (!ignore_bom && length >= 3 && !memcmp(bytes, "\xEF\xBB\xBF", 3)) {
        bytes += 3;
        length -= 3;
    }
    return decode_utf8(ctx, bytes, length, fatal);
}

/* utf8Incomplete(bytes) -> how many bytes at the end wait for the rest of their character */
static JSValue host_utf8_incomplete(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    uint8_t *bytes;
    size_t length;

    if (!require_bytes(ctx, argv[0], &bytes, &length))
        return JS_EXCEPTION;
    return JS_NewInt32(ctx, (int32_t)incomplete_utf8(bytes, length));
}

/* latin1Decode(bytes) -> string, one unit a byte */
static JSValue host_latin1_decode(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    uint8_t *bytes;
    size_t length;

    if (!require_bytes(ctx, argv[0], &bytes, &length))
        return JS_EXCEPTION;
    if (length == 0)
        return js_empty_string(ctx->rt);
    if (length > JS_STRING_LEN_MAX)
        return JS_ThrowRangeError(ctx, "invalid string length");
    return js_new_string8_len(ctx, (const char *)bytes, (int)length);
}
