/* The batch of records from the host. */

enum to_guest {
    TO_GUEST_EVENT = 1,
    TO_GUEST_RESOLVE,
    TO_GUEST_REJECT,
    TO_GUEST_CHUNK,
    TO_GUEST_END,
    TO_GUEST_FAIL,
    TO_GUEST_CANCEL,
    TO_GUEST_ACK,
    TO_GUEST_STOP,
    TO_GUEST_SEED,
    TO_GUEST_KINDS
};

enum { INBOX_KEPT_BYTES = 1 << 20, INBOX_SMALLEST_BYTES = 65536, INBOX_SLACK_BYTES = 8 };

static struct {
    uint8_t *bytes;
    size_t capacity;
} inbox;

/* Makes the inbox hold `wanted` bytes, and the NUL that the parsers need after them. NULL when
   there is no memory. */
static uint8_t *inbox_reserve(size_t wanted)
{
    bool oversized = inbox.capacity > INBOX_KEPT_BYTES && wanted <= INBOX_SMALLEST_BYTES;

    if (inbox.bytes && wanted <= inbox.capacity && !oversized)
        return inbox.bytes;
    free(inbox.bytes);
    inbox.capacity = 0;
    if (wanted < INBOX_SMALLEST_BYTES)
        wanted = INBOX_SMALLEST_BYTES;
    inbox.bytes = malloc(wanted + INBOX_SLACK_BYTES);
    if (inbox.bytes)
        inbox.capacity = wanted;
    return inbox.bytes;
}

/* Leaves an inbox of the usual size, with nothing in it. */
static void inbox_empty(void)
{
    wipe(inbox.bytes, inbox.capacity);
    if (inbox.capacity == INBOX_SMALLEST_BYTES)
        return;
    free(inbox.bytes);
    inbox.bytes = NULL;
    inbox_reserve(0);
}

static uint32_t get_word(const uint8_t *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

static JSValue parse_json(JSContext *ctx, uint8_t *bytes, size_t length)
{
    uint8_t after =
        bytes[length]; /* the parser wants a NUL there: always inside the inbox's slack */
    JSValue value;

    bytes[length] = 0;
    value = JS_ParseJSON(ctx, (const char *)bytes, length, "<host>");
    bytes[length] = after;
    return value;
}

/* Reads a payload into a value and what is attached to it. False with an exception when it is
   malformed. */
static bool read_payload(JSContext *ctx, uint32_t type, uint8_t *bytes, size_t length,
                         JSValue *value, JSValue *extra)
{
    bool is_json = type == TYPE_JSON || type == TYPE_JSON_AND_BYTES || type == TYPE_JSON_AND_STREAM;
    size_t first = length;

    *value = *extra = JS_UNDEFINED;
    if (type == TYPE_NONE)
        return true;
    if (type >= TYPE_COUNT) {
        JS_ThrowTypeError(ctx, "a record has payload type %u", (unsigned)type);
        return false;
    }
    if (type == TYPE_BYTES) {
        *value = JS_NewUint8ArrayCopy(ctx, bytes, length);
        return !JS_IsException(*value);
    }
    if (type >= TYPE_JSON_AND_BYTES) {
        bool is_stream = type == TYPE_JSON_AND_STREAM || type == TYPE_TEXT_AND_STREAM;
        if (length < 4 || (first = get_word(bytes)) > length - 4 ||
            (is_stream && length - 4 - first != 4)) {
            JS_ThrowTypeError(ctx, "a record's payload of %u bytes is cut wrongly",
                              (unsigned)length);
            return false;
        }
        bytes += 4;
        *extra = is_stream ? JS_NewUint32(ctx, get_word(bytes + first))
                           : JS_NewUint8ArrayCopy(ctx, bytes + first, length - 4 - first);
        if (JS_IsException(*extra)) {
            *extra = JS_UNDEFINED;
            return false;
        }
    }
    *value = is_json ? parse_json(ctx, bytes, first) : decode_utf8(ctx, bytes, first, false);
    if (!JS_IsException(*value))
        return true;
    JS_FreeValue(ctx, *extra);
    *value = *extra = JS_UNDEFINED;
    return false;
}
