/* Looking a header up in a list that is one string, "name:value\nname:value\n". */

/* Where the value of a line is whose name is `name`, from *at on; -1 when there is none. *at is then
   the end of the value. */
static int find_header(const uint8_t *raw, int length, const uint8_t *name, int name_length,
                       int *at)
{
    int start = *at;

    while (start < length) {
        const uint8_t *newline = memchr(raw + start, '\n', (size_t)(length - start));
        int end = newline ? (int)(newline - raw) : length;
        if (end - start > name_length && raw[start + name_length] == ':' &&
            !memcmp(raw + start, name, (size_t)name_length)) {
            *at = end;
            return start + name_length + 1;
        }
        start = end + 1;
    }
    return -1;
}

/* headerGet(raw, name) -> the value, null when there is none, undefined when the list has to be
   taken apart: the name is there twice, or the list is not all bytes */
static JSValue host_header_get(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    JSValue raw = flat_string(ctx, argv[0]), name, value = JS_UNDEFINED;
    JSString *list, *wanted;
    int start, end = 0, next;

    if (JS_IsException(raw))
        return raw;
    name = flat_string(ctx, argv[1]);
    if (JS_IsException(name)) {
        JS_FreeValue(ctx, raw);
        return name;
    }
    list = JS_VALUE_GET_STRING(raw);
    wanted = JS_VALUE_GET_STRING(name);
    if (!list->is_wide_char && !wanted->is_wide_char) {
        const uint8_t *bytes = str8(list), *key = str8(wanted);
        int length = (int)list->len, key_length = (int)wanted->len;
        start = find_header(bytes, length, key, key_length, &end);
        next = end + 1;
        if (start < 0)
            value = JS_NULL;
        else if (find_header(bytes, length, key, key_length, &next) < 0)
            value = js_sub_string(ctx, list, start, end);
    }
    JS_FreeValue(ctx, raw);
    JS_FreeValue(ctx, name);
    return value;
}
