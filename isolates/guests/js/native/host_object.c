/* globalThis.__host: what the boot code may ask of the native half. It takes the object and deletes
   the global, so that no worker ever sees it.

   RECORDS (docs/rfd/0002; the kinds are the boot code's)

   send(kind, id, value, extra)
       Writes a record. value: undefined -> NONE, string -> TEXT, ArrayBuffer or view -> BYTES,
       anything else -> JSON. extra: undefined, bytes (-> *_AND_BYTES) or a number, the id of a
       stream (-> *_AND_STREAM); only text and JSON can have one.
   onRecord(f)
       f(kind, id, value, extra) for EVENT (but for fetch, once onServe was called), CHUNK, END,
       FAIL, CANCEL, ACK and STOP. value: undefined, string, Uint8Array or parsed JSON; extra:
       undefined, Uint8Array or the id of a stream. What f throws becomes a FAULT with that id.
   onUnhandled(f)
       f(reason, promise) for each rejection that nobody handles when the jobs have run.

   THE FETCH EVENT

   onServe(env, [makeState, makeRequest, makeResponse, callHandler, reply, fail, wait])
       The first three make what was not needed until now:
       makeState(id, record | undefined, settled) -> the state of a request, an object with its id
       makeRequest(text, body, state | undefined) -> the record of the host's Request. text is the
           event's; body is undefined, bytes or the id of a stream (there is a state then)
       makeResponse(text) -> the record of a Response with that body; of `true`, with one that was
           read already
       callHandler(request, executionContext) calls the handler of a main module that exports no
           object; what it returns or throws is taken for the handler's
       reply(id, record | undefined, state | undefined): the handler's result, undefined for what is
           no Response. Without a state there is nothing that the request could wait for: it is
           settled with its reply
       fail(state, error), wait(state, result): the handler threw; it returned what is no Response,
           or not yet
   replyText(id, status, reason, headers, text)
       Writes REPLY and SETTLED; headers is "name:value\n…".
   currentState(), setCurrent(state), requestId()
       The state of the request that code runs for, null for none; its id alone, 0 for none.
   hasBegun() -> whether a fetch event has come

   CLASSES

   defineClass(kind, prototype, name, length, build) -> constructor
       kind: 0 Request, 1 Response, 2 Headers, 3 ExecutionContext, 4 URL. build(...arguments)
       -> record.
   wrap(kind, record) -> object
   requestOf(value), responseOf(value), headersOf(value), contextOf(value), urlOf(value)
       -> record | undefined
   bodyOf(value)                 the record of a Request or a Response

   OPS

   op(args, extra) -> Promise of [value, undefined | Uint8Array | stream id]
       Asks the host: args is [capability, method, arguments], extra as for send. Throws a
       RangeError when 1,000 are pending, as many as the host would take.
   lastOp() -> number            the id of the op made last, for CANCEL
   onReject(f)                   an op that the host rejects rejects with f(payload)

   TEXT AND BYTES

   utf8Encode(string) -> Uint8Array                 lone surrogates become U+FFFD
   utf8EncodeInto(string, view) -> [read, written]  in units and bytes; never splits a character
   utf8Decode(view, fatal, ignoreBom) -> string     TypeError for malformed bytes if fatal, else
                                                    U+FFFD; ignoreBom keeps a byte order mark
   utf8Incomplete(view) -> 0..3                     bytes at the end that await the rest of theirs
   latin1Decode(view) -> string                     one unit a byte
   toWire(string), fromWire(string) -> string       header values: see wire.c
   headerGet(raw, name) -> string | null | undefined
       A header of "name:value\n…"; undefined when the list has to be taken apart to tell.

   URLS

   A url record is [href, protocol_end, username_end, host_start, host_end, port, pathname_start,
   search_start, hash_start]: offsets into href, -1 for what is not there. With s = href:
       protocol  s[0, protocol_end)
       username  s[protocol_end + 2, username_end), if username_end > protocol_end + 2
       password  s[username_end + 1, host_start), if s[username_end] is ":" and
                 host_start > username_end
       hostname  s[host_start, host_end), less the "@" in front if there is one
       host      the same up to pathname_start: with ":port"
       port      s[host_end + 1, pathname_start), if port >= 0
       pathname  s[pathname_start, the first of search_start, hash_start and the end)
       search    s[search_start, hash_start or the end), but "" for a bare "?"; hash likewise
   urlParse(input, base | undefined) -> url record | null
   urlCanParse(input, base | undefined) -> boolean
   urlSet(href, which, value) -> url record | null
       which: href protocol username password host hostname port pathname search hash. A value that
       does not fit changes nothing; null only for an href that is no URL.
   urlOrigin(href) -> string                        "null" when it is opaque

   OTHERS

   random(view) -> view          fills it from the CSPRNG; throws until the host has seeded it
   clone(value, transfer | undefined) -> value
       structuredClone; transfer is an array of ArrayBuffers. Throws DOMException DataCloneError.
   markPlatform(prototype)       clone refuses objects that inherit from it
   mainNamespace() -> object     the evaluated main module's namespace, or undefined */

static JSValue host_on_record(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);

static const JSCFunctionListEntry host_functions[] = {
    JS_CFUNC_DEF("send", 4, host_send),
    JS_CFUNC_DEF("onRecord", 1, host_on_record),
    JS_CFUNC_DEF("onUnhandled", 1, host_on_unhandled),
    JS_CFUNC_DEF("onServe", 2, host_on_serve),
    JS_CFUNC_DEF("replyText", 5, host_reply_text),
    JS_CFUNC_DEF("currentState", 0, host_current_state),
    JS_CFUNC_DEF("setCurrent", 1, host_set_current),
    JS_CFUNC_DEF("requestId", 0, host_request_id),
    JS_CFUNC_DEF("hasBegun", 0, host_has_begun),
    JS_CFUNC_DEF("defineClass", 5, host_define_class),
    JS_CFUNC_DEF("wrap", 2, host_wrap),
    JS_CFUNC_MAGIC_DEF("requestOf", 1, host_record_of, PLATFORM_REQUEST),
    JS_CFUNC_MAGIC_DEF("responseOf", 1, host_record_of, PLATFORM_RESPONSE),
    JS_CFUNC_MAGIC_DEF("headersOf", 1, host_record_of, PLATFORM_HEADERS),
    JS_CFUNC_MAGIC_DEF("contextOf", 1, host_record_of, PLATFORM_CONTEXT),
    JS_CFUNC_MAGIC_DEF("urlOf", 1, host_record_of, PLATFORM_URL),
    JS_CFUNC_MAGIC_DEF("bodyOf", 1, host_record_of, ANY_BODY),
    JS_CFUNC_DEF("op", 2, host_op),
    JS_CFUNC_DEF("lastOp", 0, host_last_op),
    JS_CFUNC_DEF("onReject", 1, host_on_reject),
    JS_CFUNC_DEF("utf8Encode", 1, host_utf8_encode),
    JS_CFUNC_DEF("utf8EncodeInto", 2, host_utf8_encode_into),
    JS_CFUNC_DEF("utf8Decode", 3, host_utf8_decode),
    JS_CFUNC_DEF("utf8Incomplete", 1, host_utf8_incomplete),
    JS_CFUNC_DEF("latin1Decode", 1, host_latin1_decode),
    JS_CFUNC_DEF("toWire", 1, host_to_wire),
    JS_CFUNC_DEF("fromWire", 1, host_from_wire),
    JS_CFUNC_DEF("headerGet", 2, host_header_get),
    JS_CFUNC_DEF("urlParse", 2, host_url_parse),
    JS_CFUNC_DEF("urlCanParse", 2, host_url_can_parse),
    JS_CFUNC_DEF("urlSet", 3, host_url_set),
    JS_CFUNC_DEF("urlOrigin", 1, host_url_origin),
    JS_CFUNC_DEF("random", 1, host_random),
    JS_CFUNC_DEF("clone", 2, host_clone),
    JS_CFUNC_DEF("markPlatform", 1, host_mark_platform),
    JS_CFUNC_DEF("mainNamespace", 0, host_main_namespace),
};

/* Puts __host in place, and takes away what could be used as a clock. */
static bool add_host_object(JSContext *ctx)
{
    JSValue global = JS_GetGlobalObject(ctx), host = JS_NewObject(ctx);
    JSAtom shared = JS_NewAtom(ctx, "SharedArrayBuffer");
    bool added =
        !JS_IsException(host) && shared != JS_ATOM_NULL &&
        JS_SetPropertyFunctionList(ctx, host, host_functions, countof(host_functions)) >= 0 &&
        JS_DefinePropertyValueStr(ctx, global, "__host", host, JS_PROP_C_W_E) >= 0 &&
        JS_DeleteProperty(ctx, global, shared, 0) >= 0;

    JS_FreeAtom(ctx, shared);
    JS_FreeValue(ctx, global);
    return added;
}
