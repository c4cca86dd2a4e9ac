/* What an image holds is never freed, and nobody counts its references.

   Counting writes to an object that was only looked at, and a page that was written to is a page
   that an isolate no longer shares with the others of its image: without this, a request that makes
   a dozen objects writes to two dozen pages. Included where the engine defines its counts. */

enum { JS_IMMORTAL = 1 << 30 }; /* a count that no real one reaches: memory is too small */

static inline bool js_immortal(const void *counted)
{
    return JS_REF_COUNT(counted) >= JS_IMMORTAL;
}

static inline void js_retain(const void *counted)
{
    if (!js_immortal(counted))
        JS_REF_COUNT(counted)++;
}

/* True when that was the last reference. */
static inline bool js_release(const void *counted)
{
    return !js_immortal(counted) && --JS_REF_COUNT(counted) <= 0;
}
