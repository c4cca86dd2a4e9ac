/* eval and new Function are refused, as on Workers. The engine is patched to come here from each of
   them; the host's own scripts and modules are compiled by another way. */

static JSValue throw_eval_error(JSContext *ctx, const char *format, ...)
{
    va_list arguments;
    JSValue thrown;

    va_start(arguments, format);
    thrown = JS_ThrowError(ctx, JS_EVAL_ERROR, format, arguments);
    va_end(arguments);
    return thrown;
}

static JSValue refuse_code_generation(JSContext *ctx)
{
    return throw_eval_error(ctx, "Code generation from strings disallowed for this context");
}
