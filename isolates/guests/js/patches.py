"""What is changed in QuickJS-NG, file by file."""

from collections.abc import Mapping, Sequence
from typing import Final

from belem.isolates.guests.building import Replacement

__all__ = ["PATCHES"]

_CHARGED_CHECK: Final = """
#define {name}(context, size) ({{ \\
    CHARGE_STACK(STACK_CHARGE_OF_CHECK(size)); \\
    {name}((context), (size)); }})
"""

_QUICKJS: Final = (
    Replacement(
        "a switch is 8 % faster than computed goto on wasm",
        "#define DIRECT_DISPATCH  1",
        "#define DIRECT_DISPATCH  0",
    ),
    Replacement(
        "refuse eval and new Function",
        "    str = JS_ToCStringLen(ctx, &len, val);\n"
        "    if (!str)\n"
        "        return JS_EXCEPTION;\n"
        '    ret = JS_EvalInternal(ctx, this_obj, str, len, "<input>", 1, flags, scope_idx);\n'
        "    JS_FreeCString(ctx, str);\n"
        "    return ret;\n",
        "    return refuse_code_generation(ctx);\n",
    ),
    Replacement(
        "throw the error made before when there is no memory for one",
        "        /* out of memory: throw JS_NULL to avoid recursing */\n        obj = JS_NULL;\n",
        "        obj = out_of_memory_error(ctx);\n",
    ),
    Replacement(
        "throw that error too when there is no memory for another one's message",
        '        msg = JS_NewString(ctx, "Invalid error message");\n',
        "    {\n        JS_FreeValue(ctx, obj);\n        return JS_EXCEPTION;\n    }\n",
    ),
    Replacement(
        "JSON.stringify without a string for each value: native/quick_json.h",
        "static JSValue js_json_check(JSContext *ctx, JSONStringifyContext *jsc,\n"
        "                             JSValueConst holder, JSValue val,\n"
        "                             JSValueConst key)\n{\n",
        '#include "quick_json.h"\n'
        '#include "plain_json.h"\n'
        "static JSValue js_json_check(JSContext *ctx, JSONStringifyContext *jsc,\n"
        "                             JSValueConst holder, JSValue val,\n"
        "                             JSValueConst key)\n{\n",
    ),
    Replacement(
        "for keys",
        "                    prop = JS_ToQuotedStringFree(ctx, prop);\n"
        "                    if (JS_IsException(prop)) {\n"
        "                        JS_FreeValue(ctx, v);\n"
        "                        goto exception;\n"
        "                    }\n"
        "                    string_buffer_concat_value(jsc->b, sep);\n"
        "                    string_buffer_concat_value(jsc->b, prop);\n",
        "                    string_buffer_concat_value(jsc->b, sep);\n"
        "                    if (json_concat_string(ctx, jsc->b, prop)) {\n"
        "                        JS_FreeValue(ctx, v);\n"
        "                        goto exception;\n"
        "                    }\n",
    ),
    Replacement(
        "for strings",
        "        val = JS_ToQuotedStringFree(ctx, val);\n"
        "        if (JS_IsException(val))\n"
        "            goto exception;\n"
        "        goto concat_value;\n",
        "        ret = json_concat_string(ctx, jsc->b, val);\n"
        "        JS_FreeValue(ctx, val);\n"
        "        return ret;\n",
    ),
    Replacement(
        "for integers",
        "    case JS_TAG_INT:\n    case JS_TAG_BOOL:\n    case JS_TAG_NULL:\n    concat_value:\n",
        "    case JS_TAG_INT:\n"
        "        return json_concat_int(jsc->b, JS_VALUE_GET_INT(val));\n"
        "    case JS_TAG_BOOL:\n    case JS_TAG_NULL:\n    concat_value:\n",
    ),
    Replacement(
        "for objects",
        "        } else {\n"
        "            if (!JS_IsUndefined(jsc->property_list))\n"
        "                tab = js_dup(jsc->property_list);\n",
        "        } else if (json_has_plain_keys(ctx, jsc, val)) {\n"
        "            if (json_concat_object(ctx, jsc, val, indent, indent1, sep, sep1))\n"
        "                goto exception;\n"
        "        } else {\n"
        "            if (!JS_IsUndefined(jsc->property_list))\n"
        "                tab = js_dup(jsc->property_list);\n",
    ),
    Replacement(
        "for indices",
        "                prop = JS_ToStringFree(ctx, js_int64(i));\n"
        "                if (JS_IsException(prop))\n"
        "                    goto exception;\n"
        "                v = js_json_check(",
        "                prop = json_is_plain(jsc, v) ? JS_UNDEFINED\n"
        "                                             : JS_ToStringFree(ctx, js_int64(i));\n"
        "                if (JS_IsException(prop))\n"
        "                    goto exception;\n"
        "                v = js_json_check(",
    ),
    Replacement(
        "and of plain data at one go: native/plain_json.h",
        "    int64_t i, j, n;\n\n    jsc->replacer_func = JS_UNDEFINED;\n",
        "    int64_t i, j, n;\n\n"
        "    if (!JS_IsObject(replacer) && (JS_IsUndefined(space0) || JS_IsNull(space0))) {\n"
        "        ret = json_of_plain(ctx, obj);\n"
        "        if (!JS_IsUndefined(ret))\n"
        "            return ret;\n"
        "    }\n"
        "    jsc->replacer_func = JS_UNDEFINED;\n",
    ),
    Replacement(
        "JSON.parse without a token for each piece: native/plain_parse.h",
        "static JSValue JS_ParseJSON_internal(JSContext *ctx, const char *buf, size_t buf_len,\n",
        '#include "plain_parse.h"\n'
        "static JSValue JS_ParseJSON_internal(JSContext *ctx, const char *buf, size_t buf_len,\n",
    ),
    Replacement(
        "where nobody asks for the text of each value",
        "    JSValue val = JS_UNDEFINED;\n\n"
        "    js_parse_init(ctx, s, buf, buf_len, filename, 1);\n"
        "    if (json_next_token(s))\n",
        "    JSValue val = JS_UNDEFINED;\n\n"
        "    if (!pr) {\n"
        "        val = parse_plain_json(ctx, buf, buf_len);\n"
        "        if (!JS_IsUndefined(val))\n"
        "            return val;\n"
        "    }\n"
        "    js_parse_init(ctx, s, buf, buf_len, filename, 1);\n"
        "    if (json_next_token(s))\n",
    ),
    Replacement(
        "short decimals of numbers: native/quick_number.h",
        "static JSValue js_dtoa2(JSContext *ctx,\n",
        '#include "quick_number.h"\nstatic JSValue js_dtoa2(JSContext *ctx,\n',
    ),
    Replacement(
        "for numbers as strings",
        "    len_max = js_dtoa_max_len(d, radix, n_digits, flags);\n",
        "    if (radix == 10 && flags == JS_DTOA_FORMAT_FREE) {\n"
        "        len = quick_dtoa(static_buf, d);\n"
        "        if (len)\n"
        "            return js_new_string8_len(ctx, static_buf, len);\n"
        "    }\n"
        "    len_max = js_dtoa_max_len(d, radix, n_digits, flags);\n",
    ),
    Replacement(
        "template literals and map(): native/quick_concat.h",
        "static JSValue js_array_every(JSContext *ctx, JSValueConst this_val,\n",
        '#include "quick_concat.h"\n'
        "static JSValue js_array_every(JSContext *ctx, JSValueConst this_val,\n",
    ),
    Replacement(
        "what map() returns",
        "                if (JS_DefinePropertyValueInt64(ctx, ret, k, res,\n"
        "                                                JS_PROP_C_W_E | JS_PROP_THROW) < 0)\n",
        "                if (define_next_element(ctx, ret, k, res) < 0)\n",
    ),
    Replacement(
        "template literals with integers in them",
        "    char *d;\n\n"
        "    if (JS_TAG_STRING != JS_VALUE_GET_TAG(this_val))\n"
        "        goto slow_path;\n",
        "    char *d;\n\n"
        "    r = quick_concat(ctx, this_val, argc, argv);\n"
        "    if (!JS_IsUndefined(r))\n"
        "        return r;\n"
        "    if (JS_TAG_STRING != JS_VALUE_GET_TAG(this_val))\n"
        "        goto slow_path;\n",
    ),
    Replacement(
        "replacing with a regular expression: native/quick_replace.h",
        "static JSValue js_regexp_Symbol_replace(JSContext *ctx, JSValueConst this_val,\n",
        '#include "quick_replace.h"\n'
        "static JSValue js_regexp_Symbol_replace(JSContext *ctx, JSValueConst this_val,\n",
    ),
    Replacement(
        "that nobody has changed",
        "    string_buffer_init(ctx, b, 0);\n    value_buffer_init(ctx, results);\n",
        "    res = quick_replace(ctx, rx, argv[0], rep);\n"
        "    if (!JS_IsUndefined(res))\n"
        "        return res;\n"
        "    string_buffer_init(ctx, b, 0);\n    value_buffer_init(ctx, results);\n",
    ),
    # The rest is explained in native/stack_charge.h.
    Replacement(
        "charge each checked frame some stack",
        "    return unlikely(sp < rt->stack_limit);\n}\n",
        "    return unlikely(sp < rt->stack_limit);\n}\n"
        '#include "stack_charge.h"' + _CHARGED_CHECK.format(name="js_check_stack_overflow"),
    ),
    # The parser checks only in its scanner, which is a leaf: its own recursion goes uncharged.
    Replacement(
        "charge expressions within expressions",
        "js_parse_unary(JSParseState *s, int parse_flags)\n{\n    int op;\n",
        "js_parse_unary(JSParseState *s, int parse_flags)\n{\n    int op;\n"
        "    CHARGE_STACK(640);\n",
    ),
    Replacement(
        "charge assignments, conditions and yields within each other",
        "js_parse_assign_expr2(JSParseState *s, int parse_flags)\n{\n    int opcode, op, scope;\n",
        "js_parse_assign_expr2(JSParseState *s, int parse_flags)\n{\n    int opcode, op, scope;\n"
        "    CHARGE_STACK(384);\n",
    ),
    Replacement(
        "charge statements within statements",
        "js_parse_statement_or_decl(JSParseState *s,\n"
        "                                                  int decl_mask)\n"
        "{\n",
        "js_parse_statement_or_decl(JSParseState *s,\n"
        "                                                  int decl_mask)\n"
        "{\n"
        "    CHARGE_STACK(512);\n",
    ),
    Replacement(
        "charge patterns within patterns",
        "    int label_parse, label_assign, label_done, label_lvalue, depth_lvalue;\n",
        "    int label_parse, label_assign, label_done, label_lvalue, depth_lvalue;\n"
        "    CHARGE_STACK(512);\n",
    ),
)

_LIBREGEXP: Final = (
    Replacement(
        "charge groups within groups",
        '#include "libregexp.h"\n',
        '#include "libregexp.h"\n#include "stack_charge.h"'
        + _CHARGED_CHECK.format(name="lre_check_stack_overflow"),
    ),
)

# What an image holds is immortal: native/immortal.h.
_COUNTS: Final = (
    Replacement(
        "counts that immortal things have not",
        "#define JS_GC_MARK(p)   (js_rc(p)->mark)\n",
        '#define JS_GC_MARK(p)   (js_rc(p)->mark)\n#include "immortal.h"\n',
    ),
    Replacement(
        "the collector takes references of things that are counted",
        "    JS_REF_COUNT(p)--;\n    if (JS_REF_COUNT(p) == 0 && JS_GC_MARK(p) == 1) {\n",
        "    if (js_release(p) && JS_GC_MARK(p) == 1) {\n",
    ),
    Replacement(
        "and marks no others",
        "        JS_GC_MARK(p) = 1;\n        if (JS_REF_COUNT(p) == 0) {\n",
        "        if (!js_immortal(p))\n"
        "            JS_GC_MARK(p) = 1;\n        if (JS_REF_COUNT(p) == 0) {\n",
    ),
    Replacement(
        "nor unmarks them",
        "        JS_GC_MARK(p) = 0; /* reset the mark for the next GC call */\n"
        "        mark_children(rt, p, gc_scan_incref_child);\n",
        "        if (!js_immortal(p))\n"
        "            JS_GC_MARK(p) = 0; /* reset the mark for the next GC call */\n"
        "        mark_children(rt, p, gc_scan_incref_child);\n",
    ),
    Replacement("retain", "JS_REF_COUNT(p)++;", "js_retain(p);", places=8),
    Replacement("retain", "JS_REF_COUNT(var_ref)++;", "js_retain(var_ref);", places=6),
    Replacement("retain", "JS_REF_COUNT(ctx)++;", "js_retain(ctx);"),
    Replacement("retain", "JS_REF_COUNT(sh)++;", "js_retain(sh);"),
    Replacement("retain", "JS_REF_COUNT(sf->cur_gc_obj)++;", "js_retain(sf->cur_gc_obj);"),
    Replacement("retain", "JS_REF_COUNT(s)++;", "js_retain(s);"),
    Replacement("retain", "JS_REF_COUNT(b)++;", "js_retain(b);"),
    Replacement("release", "--JS_REF_COUNT(str) <= 0", "js_release(str)"),
    Replacement("release", "--JS_REF_COUNT(ctx) > 0", "!js_release(ctx)"),
    Replacement("release", "--JS_REF_COUNT(p) > 0", "!js_release(p)"),
    Replacement("release", "--JS_REF_COUNT(sh) <= 0", "js_release(sh)"),
    Replacement("release", "--JS_REF_COUNT(var_ref) == 0", "js_release(var_ref)"),
    Replacement("release", "--JS_REF_COUNT(p) <= 0", "js_release(p)"),
    Replacement("release", "--JS_REF_COUNT(s) == 0", "js_release(s)"),
    Replacement("release", "JS_REF_COUNT(str)--;", "(void)js_release(str);"),
)

PATCHES: Final[Mapping[str, Sequence[Replacement]]] = {
    "quickjs.c": (*_QUICKJS, *_COUNTS),
    "libregexp.c": _LIBREGEXP,
}
