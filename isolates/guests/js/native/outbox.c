/* The batch of records for the host (docs/rfd/0002, sdk/abi.py). */

enum payload_type {
    TYPE_NONE,
    TYPE_TEXT,
    TYPE_BYTES,
    TYPE_JSON,
    TYPE_JSON_AND_BYTES,
    TYPE_TEXT_AND_BYTES,
    TYPE_JSON_AND_STREAM,
    TYPE_TEXT_AND_STREAM,
    TYPE_COUNT
};

enum to_host { TO_HOST_FAULT = 1 }; /* the other kinds are the boot code's business */

enum {
    RECORD_HEAD_BYTES = 16,
    OUTBOX_SMALLEST_BYTES = 16384,
    OUTBOX_KEPT_BYTES = 1 << 20,
    OUTBOX_MAX_BYTES = 1 << 30
};

static struct {
    uint8_t *bytes;
    size_t capacity, length;
} outbox;

/* Starts a new batch. A box that one large body made big is given back. */
static void outbox_clear(void)
{
    outbox.length = 0;
    if (outbox.capacity > OUTBOX_KEPT_BYTES) {
        free(outbox.bytes);
        outbox.bytes = NULL;
        outbox.capacity = 0;
    }
}

/* Makes room for `wanted` more bytes; false, with nothing changed, when there is no memory for
   them. */
static bool outbox_reserve(size_t wanted)
{
    size_t capacity = outbox.capacity ? outbox.capacity : OUTBOX_SMALLEST_BYTES;
    uint8_t *grown;

    if (wanted <= outbox.capacity - outbox.length)
        return true;
    if (wanted > OUTBOX_MAX_BYTES - outbox.length)
        return false;
    while (capacity - outbox.length < wanted)
        capacity *= 2;
    grown = realloc(outbox.bytes, capacity);
    if (!grown)
        return false;
    outbox.bytes = grown;
    outbox.capacity = capacity;
    return true;
}

/* Leaves an outbox of the usual size, with nothing in it. */
static void outbox_empty(void)
{
    wipe(outbox.bytes, outbox.capacity);
    outbox.length = 0;
    if (outbox.capacity != OUTBOX_SMALLEST_BYTES) {
        free(outbox.bytes);
        outbox.bytes = NULL;
        outbox.capacity = 0;
        outbox_reserve(1);
    }
}

static void put_word(uint8_t *at, uint32_t word)
{
    memcpy(at, &word, sizeof word);
}

/* Opens a record of exactly `length` bytes and returns where they go, or NULL when there is no
   memory. The record is in the batch already: the caller fills it without failing. */
static uint8_t *outbox_record(uint32_t kind, uint32_t id, uint32_t type, size_t length)
{
    size_t padded;
    uint8_t *at;

    if (length > OUTBOX_MAX_BYTES)
        return NULL;
    padded = (length + 3) & ~(size_t)3;
    if (!outbox_reserve(RECORD_HEAD_BYTES + padded))
        return NULL;
    at = outbox.bytes + outbox.length;
    put_word(at, kind);
    put_word(at + 4, id);
    put_word(at + 8, type);
    put_word(at + 12, (uint32_t)length);
    at += RECORD_HEAD_BYTES;
    if (padded)
        put_word(at + padded - 4, 0); /* no byte of an earlier batch shows in the padding */
    outbox.length += RECORD_HEAD_BYTES + padded;
    return at;
}

/* What goes along with a payload: nothing, bytes, or the id of a stream. */
struct attachment {
    enum { NO_ATTACHMENT, BYTES_ATTACHED, STREAM_ATTACHED } what;
    uint32_t stream;
};

static bool attachment_of(JSContext *ctx, struct attachment *attached, JSValueConst extra)
{
    uint8_t *bytes;
    size_t length;

    if (JS_IsUndefined(extra)) {
        attached->what = NO_ATTACHMENT;
        return true;
    }
    if (JS_IsNumber(extra)) {
        attached->what = STREAM_ATTACHED;
        return !JS_ToUint32(ctx, &attached->stream, extra);
    }
    attached->what = BYTES_ATTACHED;
    return require_bytes(ctx, extra, &bytes, &length);
}

/* Writes a record of text or JSON, with its attachment. Runs no JavaScript. */
static int send_string(JSContext *ctx, uint32_t kind, uint32_t id, JSString *string, bool is_json,
                       const struct attachment *attached, JSValueConst extra)
{
    static const uint8_t types[2][3] = { { TYPE_TEXT, TYPE_TEXT_AND_BYTES, TYPE_TEXT_AND_STREAM },
                                         { TYPE_JSON, TYPE_JSON_AND_BYTES, TYPE_JSON_AND_STREAM } };
    size_t text_length = utf8_length(string), extra_length = 0;
    uint8_t *bytes = NULL, *at;

    if (attached->what == BYTES_ATTACHED)
        bytes_of(extra, &bytes, &extra_length);
    else if (attached->what == STREAM_ATTACHED)
        extra_length = 4;
    if (text_length > OUTBOX_MAX_BYTES || extra_length > OUTBOX_MAX_BYTES)
        goto no_memory;
    at = outbox_record(kind, id, types[is_json][attached->what],
                       text_length + (attached->what == NO_ATTACHMENT ? 0 : 4 + extra_length));
    if (!at)
        goto no_memory;
    if (attached->what != NO_ATTACHMENT) {
        put_word(at, (uint32_t)text_length);
        at += 4;
    }
    at = write_utf8(at, string);
    if (attached->what == STREAM_ATTACHED)
        put_word(at, attached->stream);
    else if (extra_length)
        memcpy(at, bytes, extra_length);
    return 0;
no_memory:
    JS_ThrowOutOfMemory(ctx);
    return -1;
}

/* Writes one record of whatever the value is. 0, or -1 with an exception and no record written. */
static int send_record(JSContext *ctx, uint32_t kind, uint32_t id, JSValueConst value,
                       JSValueConst extra)
{
    struct attachment attached;
    uint8_t *bytes, *at;
    size_t length;
    JSValue string;
    bool is_json;
    int result;

    if (!attachment_of(ctx, &attached, extra))
        return -1;
    if (JS_IsUndefined(value) || bytes_of(value, &bytes, &length)) {
        bool empty = JS_IsUndefined(value);
        if (attached.what != NO_ATTACHMENT) {
            JS_ThrowTypeError(ctx, "only text and JSON can carry bytes or a stream");
            return -1;
        }
        at = outbox_record(kind, id, empty ? TYPE_NONE : TYPE_BYTES, empty ? 0 : length);
        if (!at) {
            JS_ThrowOutOfMemory(ctx);
            return -1;
        }
        if (!empty && length)
            memcpy(at, bytes, length);
        return 0;
    }
    is_json = !JS_IsString(value);
    string = is_json ? JS_JSONStringify(ctx, value, JS_UNDEFINED, JS_UNDEFINED)
                     : flat_string(ctx, value);
    if (JS_IsException(string))
        return -1;
    if (!JS_IsString(string)) { /* a function or a symbol has no JSON */
        JS_FreeValue(ctx, string);
        JS_ThrowTypeError(ctx, "the value cannot be written as JSON");
        return -1;
    }
    if (JS_VALUE_GET_TAG(string) == JS_TAG_STRING_ROPE) {
        JSValue flat = JS_ToString(ctx, string);
        JS_FreeValue(ctx, string);
        if (JS_IsException(flat))
            return -1;
        string = flat;
    }
    result = send_string(ctx, kind, id, JS_VALUE_GET_STRING(string), is_json, &attached, extra);
    JS_FreeValue(ctx, string);
    return result;
}

/* send(kind, id, value, extra) */
static JSValue host_send(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    uint32_t kind, id;

    if (JS_ToUint32(ctx, &kind, argv[0]) || JS_ToUint32(ctx, &id, argv[1]))
        return JS_EXCEPTION;
    return send_record(ctx, kind, id, argv[2], argv[3]) ? JS_EXCEPTION : JS_UNDEFINED;
}
