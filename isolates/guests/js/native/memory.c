/* Overwrites memory that will not be read again, which the compiler would leave out. */
static void wipe(void *memory, size_t size)
{
    if (!memory)
        return;
    memset(memory, 0, size);
    __asm__ volatile("" : : "r"(memory) : "memory");
}

/* Running out of memory has to be reported with memory that was had before: an error object, made
   at the start, which the patched engine throws when it cannot make one, and some room for the
   FAULT record, taken back when the next call from the host begins. */

enum { MEMORY_RESERVE_BYTES = 64 * 1024 };

static void *volatile memory_reserve; /* volatile: it is never read, and would be left out */
static JSValue out_of_memory = JS_UNDEFINED;

static void keep_memory_reserve(void)
{
    if (!memory_reserve)
        memory_reserve = malloc(MEMORY_RESERVE_BYTES);
}

/* Makes what room there is. Only where no JavaScript is running: it collects garbage. */
static void release_memory_reserve(void)
{
    free(memory_reserve);
    memory_reserve = NULL;
    JS_RunGC(runtime);
}

/* Frozen, since everybody who runs out of memory gets the same one. */
static bool make_out_of_memory_error(JSContext *ctx)
{
    out_of_memory = JS_MakeError2(ctx, JS_INTERNAL_ERROR, false, "out of memory");
    return !JS_IsException(out_of_memory) && JS_FreezeObject(ctx, out_of_memory) >= 0;
}

static JSValue out_of_memory_error(JSContext *ctx)
{
    return js_dup(out_of_memory);
}
