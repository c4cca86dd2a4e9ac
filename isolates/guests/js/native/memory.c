/* Overwrites memory that will not be read again, which the compiler would leave out. */
static void wipe(void *memory, size_t size)
{
    if (!memory)
        return;
    memset(memory, 0, size);
    __asm__ volatile("" : : "r"(memory) : "memory");
}

/* Memory set aside, so that running out of it can be reported: the error object, its stack and its
   FAULT record need some. The patched engine is given a piece each time it throws "out of memory";
   not all of it at once, for in places it ignores that error and goes on. The pieces are taken back
   when the next call from the host begins. */

enum { RESERVE_PIECES = 16, RESERVE_PIECE_BYTES = 16 * 1024 };

/* volatile: nothing ever reads the memory, so the compiler would leave it out */
static void *volatile memory_reserve[RESERVE_PIECES];

static void keep_memory_reserve(void)
{
    int i;

    for (i = 0; i < RESERVE_PIECES; i++)
        if (!memory_reserve[i])
            memory_reserve[i] = malloc(RESERVE_PIECE_BYTES);
}

static void release_memory_reserve(void)
{
    int i;

    for (i = 0; i < RESERVE_PIECES; i++) {
        if (memory_reserve[i]) {
            free(memory_reserve[i]);
            memory_reserve[i] = NULL;
            return;
        }
    }
}
