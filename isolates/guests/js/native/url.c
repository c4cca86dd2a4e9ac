/* The URL parser is ada, which is C++: a failed allocation in it traps, for it is built without
   exceptions. */

#include "ada_c.h"

enum { URL_COMPONENTS = 8 };

/* [href, protocol_end, username_end, host_start, host_end, port, pathname_start, search_start,
   hash_start]: offsets into href, -1 for what is not there. */
static JSValue url_record(JSContext *ctx, ada_url url)
{
    ada_string href = ada_get_href(url);
    const ada_url_components *found = ada_get_components(url);
    const uint32_t components[URL_COMPONENTS] = {
        found->protocol_end, found->username_end,   found->host_start,   found->host_end,
        found->port,         found->pathname_start, found->search_start, found->hash_start,
    };
    JSValue values[1 + URL_COMPONENTS];
    int i;

    values[0] = JS_NewStringLen(ctx, href.data, href.length);
    if (JS_IsException(values[0]))
        return JS_EXCEPTION;
    for (i = 0; i < URL_COMPONENTS; i++)
        values[1 + i] = JS_NewInt32(ctx, (int32_t)components[i]);
    return JS_NewArrayFrom(ctx, 1 + URL_COMPONENTS, values);
}

/* Parses argv[0] against argv[1] if it is given. False with an exception pending. */
static bool parse_url(JSContext *ctx, JSValueConst *argv, ada_url *url)
{
    struct utf8_text input, base;

    if (!utf8_text_of(ctx, &input, argv[0]))
        return false;
    if (JS_IsUndefined(argv[1])) {
        *url = ada_parse(input.bytes, input.length);
    } else if (utf8_text_of(ctx, &base, argv[1])) {
        *url = ada_parse_with_base(input.bytes, input.length, base.bytes, base.length);
        free_utf8_text(ctx, &base);
    } else {
        free_utf8_text(ctx, &input);
        return false;
    }
    free_utf8_text(ctx, &input);
    return true;
}

/* urlParse(input, base) -> url record | null */
static JSValue host_url_parse(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    JSValue record;
    ada_url url;

    if (!parse_url(ctx, argv, &url))
        return JS_EXCEPTION;
    record = ada_is_valid(url) ? url_record(ctx, url) : JS_NULL;
    ada_free(url);
    return record;
}

/* urlCanParse(input, base) -> boolean */
static JSValue host_url_can_parse(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    bool valid;
    ada_url url;

    if (!parse_url(ctx, argv, &url))
        return JS_EXCEPTION;
    valid = ada_is_valid(url);
    ada_free(url);
    return JS_NewBool(ctx, valid);
}

static bool set_search(ada_url url, const char *value, size_t length)
{
    ada_set_search(url, value, length);
    return true;
}

static bool set_hash(ada_url url, const char *value, size_t length)
{
    ada_set_hash(url, value, length);
    return true;
}

/* urlSet(href, which, value) -> the new url record; as it was when the value does not fit.
   null when href is no URL, or which is "href" and the value is none. */
static JSValue host_url_set(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    static const struct {
        const char *name;
        bool (*set)(ada_url, const char *, size_t);
    } setters[] = {
        { "search", set_search },
        { "pathname", ada_set_pathname },
        { "hash", set_hash },
        { "host", ada_set_host },
        { "hostname", ada_set_hostname },
        { "port", ada_set_port },
        { "protocol", ada_set_protocol },
        { "username", ada_set_username },
        { "password", ada_set_password },
        { "href", ada_set_href },
    };
    struct utf8_text href, value;
    const char *which;
    JSValue record = JS_EXCEPTION;
    ada_url url;
    size_t i;

    which = JS_ToCString(ctx, argv[1]);
    if (!which)
        return JS_EXCEPTION;
    for (i = 0; i < countof(setters) && strcmp(setters[i].name, which); i++)
        ;
    if (i == countof(setters)) {
        JS_ThrowTypeError(ctx, "a URL has no settable \"%.40s\"", which);
        goto done;
    }
    if (!utf8_text_of(ctx, &href, argv[0]))
        goto done;
    if (utf8_text_of(ctx, &value, argv[2])) {
        url = ada_parse(href.bytes, href.length);
        record = JS_NULL;
        if (ada_is_valid(url)) {
            bool fitted = setters[i].set(url, value.bytes, value.length);
            if (fitted || setters[i].set != ada_set_href)
                record = url_record(ctx, url);
        }
        ada_free(url);
        free_utf8_text(ctx, &value);
    }
    free_utf8_text(ctx, &href);
done:
    JS_FreeCString(ctx, which);
    return record;
}

/* urlOrigin(href) -> string; "null" for an opaque origin */
static JSValue host_url_origin(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    JSValueConst input[2] = { argv[0], JS_UNDEFINED };
    ada_owned_string origin;
    JSValue text;
    ada_url url;

    if (!parse_url(ctx, input, &url))
        return JS_EXCEPTION;
    if (ada_is_valid(url)) {
        origin = ada_get_origin(url);
        text = JS_NewStringLen(ctx, origin.data, origin.length);
        ada_free_owned_string(origin);
    } else {
        text = JS_NewString(ctx, "null");
    }
    ada_free(url);
    return text;
}
