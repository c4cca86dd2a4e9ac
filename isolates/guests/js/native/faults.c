/* FAULT records: errors that no promise of the boot code will carry.
   Their JSON is written by hand, since they must get through when memory is short and whatever the
   worker did to JSON or to Object.prototype. */

enum { FAULT_TEXT_UNITS = 16384 };

/* The script that is being run, so that a syntax error in it can be told from one in JSON.parse. */
static const char *running_script;

static bool append(const char *bytes, size_t length)
{
    if (!outbox_reserve(length))
        return false;
    memcpy(outbox.bytes + outbox.length, bytes, length);
    outbox.length += length;
    return true;
}

static bool append_json_string(JSString *string)
{
    size_t length = string->len < FAULT_TEXT_UNITS ? string->len : FAULT_TEXT_UNITS, at = 0;
    uint8_t buffer[8], *end;
    uint32_t c;

    if (!append("\"", 1))
        return false;
    while (at < length) {
        if (string->is_wide_char)
            c = next_code_point(str16(string), length, &at);
        else
            c = str8(string)[at++];
        if (c == '"' || c == '\\') {
            buffer[0] = '\\';
            buffer[1] = (uint8_t)c;
            end = buffer + 2;
        } else if (c < 0x20) {
            end = buffer + snprintf((char *)buffer, sizeof buffer, "\\u%04x", (unsigned)c);
        } else {
            end = put_utf8(buffer, c);
        }
        if (!append((char *)buffer, (size_t)(end - buffer)))
            return false;
    }
    return append("\"", 1);
}

/* A property of a thrown value as a flat string, or undefined: reading it may run the worker's
   code, and fail. */
static JSValue string_property(JSContext *ctx, JSValueConst object, const char *name)
{
    JSValue value = JS_GetPropertyStr(ctx, object, name), string;

    if (JS_IsException(value)) {
        JS_FreeValue(ctx, JS_GetException(ctx));
        return JS_UNDEFINED;
    }
    if (!JS_IsString(value)) {
        JS_FreeValue(ctx, value);
        return JS_UNDEFINED;
    }
    string = flat_string(ctx, value);
    JS_FreeValue(ctx, value);
    if (JS_IsException(string)) {
        JS_FreeValue(ctx, JS_GetException(ctx));
        return JS_UNDEFINED;
    }
    return string;
}

/* Where a syntax error is: the engine writes it as the first line of the stack, "    at
   FILE:LINE:COLUMN". */
static bool append_location(JSContext *ctx, JSValueConst stack)
{
    const char *text = JS_ToCString(ctx, stack), *file = text ? text + 7 : NULL, *end, *at;
    unsigned line = 0, column = 0, power;
    bool written = true;
    char *name, numbers[48];
    JSValue string;

    if (!text || strncmp(text, "    at ", 7) || !(end = strchr(file, '\n')))
        goto done;
    for (at = end - 1, power = 1; at > file && *at >= '0' && *at <= '9'; at--, power *= 10)
        column += (unsigned)(*at - '0') * power;
    if (at == file || *at != ':')
        goto done;
    for (at--, power = 1; at > file && *at >= '0' && *at <= '9'; at--, power *= 10)
        line += (unsigned)(*at - '0') * power;
    if (at == file || *at != ':' || !line)
        goto done;
    name = strndup(file, (size_t)(at - file));
    if (name && (find_module(name) || (running_script && !strcmp(name, running_script)))) {
        string = JS_NewString(ctx, name);
        if (JS_IsException(string)) {
            JS_FreeValue(ctx, JS_GetException(ctx));
        } else {
            int length =
                snprintf(numbers, sizeof numbers, ",\"line\":%u,\"column\":%u", line, column);
            written = append(",\"file\":", 8) && append_json_string(JS_VALUE_GET_STRING(string)) &&
                      append(numbers, (size_t)length);
            JS_FreeValue(ctx, string);
        }
    }
    free(name);
done:
    if (text)
        JS_FreeCString(ctx, text);
    else
        JS_FreeValue(ctx, JS_GetException(ctx));
    return written;
}

static bool append_member(const char *key, JSValueConst string, const char *otherwise)
{
    if (!append(key, strlen(key)))
        return false;
    if (JS_IsUndefined(string))
        return append(otherwise, strlen(otherwise));
    return append_json_string(JS_VALUE_GET_STRING(string));
}

/* A FAULT of fixed JSON. When there is no room even for it the isolate is of no more use, and
   traps. */
static void fault_json(uint32_t id, const char *json)
{
    size_t length = strlen(json);
    uint8_t *at = outbox_record(TO_HOST_FAULT, id, TYPE_JSON, length);

    if (!at) {
        release_memory_reserve();
        at = outbox_record(TO_HOST_FAULT, id, TYPE_JSON, length);
    }
    if (!at)
        __builtin_trap();
    memcpy(at, json, length);
}

struct thrown {
    JSValue name, message, stack;
};

static struct thrown describe(JSContext *ctx, JSValueConst value)
{
    struct thrown thrown = { JS_UNDEFINED, JS_UNDEFINED, JS_UNDEFINED };

    if (JS_IsObject(value)) {
        thrown.name = string_property(ctx, value, "name");
        thrown.message = string_property(ctx, value, "message");
        thrown.stack = string_property(ctx, value, "stack");
        return thrown;
    }
    thrown.message =
        JS_IsSymbol(value) ? JS_NewString(ctx, "a symbol was thrown") : flat_string(ctx, value);
    if (JS_IsException(thrown.message)) {
        JS_FreeValue(ctx, JS_GetException(ctx));
        thrown.message = JS_UNDEFINED;
    }
    return thrown;
}

static bool is_syntax_error(JSContext *ctx, const struct thrown *thrown)
{
    const char *name = JS_IsUndefined(thrown->name) ? NULL : JS_ToCString(ctx, thrown->name);
    bool is = name && !strcmp(name, "SyntaxError");

    JS_FreeCString(ctx, name);
    return is && !JS_IsUndefined(thrown->stack);
}

/* Writes the record whole, or nothing. */
static bool write_fault(JSContext *ctx, uint32_t id, const struct thrown *thrown)
{
    size_t start = outbox.length, length;
    bool written = outbox_record(TO_HOST_FAULT, id, TYPE_JSON, 0) &&
                   append_member("{\"name\":", thrown->name, "\"Error\"") &&
                   append_member(",\"message\":", thrown->message, "\"\"") &&
                   append_member(",\"stack\":", thrown->stack, "\"\"") &&
                   (!is_syntax_error(ctx, thrown) || append_location(ctx, thrown->stack)) &&
                   append("}\0\0\0", 4);

    if (!written) {
        outbox.length = start;
        return false;
    }
    length =
        outbox.length - start - RECORD_HEAD_BYTES - 3; /* less the padding that may not be needed */
    put_word(outbox.bytes + start + 12, (uint32_t)length);
    outbox.length = start + RECORD_HEAD_BYTES + ((length + 3) & ~(size_t)3);
    return true;
}

/* Writes a FAULT for a thrown value. Does not take the value. */
static void fault_value(JSContext *ctx, uint32_t id, JSValueConst value)
{
    struct thrown thrown = describe(ctx, value);

    if (!write_fault(ctx, id, &thrown)) {
        release_memory_reserve();
        if (!write_fault(ctx, id, &thrown))
            fault_json(id, "{\"name\":\"InternalError\",\"message\":\"out of "
                           "memory\",\"stack\":\"\"}");
    }
    JS_FreeValue(ctx, thrown.name);
    JS_FreeValue(ctx, thrown.message);
    JS_FreeValue(ctx, thrown.stack);
}

/* Writes a FAULT for the pending exception and clears it. */
static void fault_exception(JSContext *ctx, uint32_t id)
{
    JSValue thrown = JS_GetException(ctx);

    fault_value(ctx, id, thrown);
    JS_FreeValue(ctx, thrown);
}
