/* Header values are UTF-8 to a worker and Latin-1 on the wire, as in HTTP: each byte of their UTF-8
   is one character of the record's text. Nearly all are ASCII, for which the two are one. */

static uint8_t *put_wire(uint8_t *out, uint32_t c)
{
    uint8_t bytes[4], *end = put_utf8(bytes, c), *at;

    for (at = bytes; at < end; at++)
        out = put_utf8(out, *at);
    return out;
}

static size_t wire_length(JSString *string)
{
    size_t length = string->len, at = 0, total = 0;

    if (!string->is_wide_char) {
        const uint8_t *bytes = str8(string);
        total = at = ascii_run(bytes, length);
        for (; at < length; at++)
            total += bytes[at] < 0x80 ? 1 : 4;
        return total;
    }
    while (at < length) {
        uint32_t c = next_code_point(str16(string), length, &at);
        total += c < 0x80 ? 1 : 2 * utf8_size(c);
    }
    return total;
}

static uint8_t *write_wire(uint8_t *out, JSString *string)
{
    size_t length = string->len, at = 0;

    if (!string->is_wide_char) {
        const uint8_t *bytes = str8(string);
        at = ascii_run(bytes, length);
        memcpy(out, bytes, at);
        out += at;
        while (at < length)
            out = put_wire(out, bytes[at++]);
        return out;
    }
    while (at < length)
        out = put_wire(out, next_code_point(str16(string), length, &at));
    return out;
}

static bool is_ascii(JSString *string)
{
    return !string->is_wide_char && ascii_run(str8(string), string->len) == string->len;
}

/* toWire(string) -> string of one unit a byte of its UTF-8 */
static JSValue host_to_wire(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    JSValue string = flat_string(ctx, argv[0]), wire;
    JSString *from, *to;
    size_t length;

    if (JS_IsException(string) || is_ascii(JS_VALUE_GET_STRING(string)))
        return string;
    from = JS_VALUE_GET_STRING(string);
    length = utf8_length(from);
    to = length > JS_STRING_LEN_MAX ? NULL : js_alloc_string(ctx, (int)length, false);
    if (to) {
        *write_utf8(str8(to), from) = 0;
        wire = JS_MKPTR(JS_TAG_STRING, to);
    } else {
        wire = JS_ThrowRangeError(ctx, "invalid string length");
    }
    JS_FreeValue(ctx, string);
    return wire;
}

/* fromWire(string) -> string; one that is no UTF-8 stays as it is */
static JSValue host_from_wire(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    JSValue string = flat_string(ctx, argv[0]), text;
    JSString *wire;

    if (JS_IsException(string))
        return string;
    wire = JS_VALUE_GET_STRING(string);
    if (wire->is_wide_char || is_ascii(wire))
        return string;
    text = decode_utf8(ctx, str8(wire), wire->len, true);
    if (JS_IsException(text)) {
        JS_FreeValue(ctx, JS_GetException(ctx));
        return string;
    }
    JS_FreeValue(ctx, string);
    return text;
}
