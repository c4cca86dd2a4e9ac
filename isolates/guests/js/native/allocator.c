/* malloc and its family: two-level segregated fit, which is constant in time and joins neighbours.

   The compiler's own allocator for wasm rounds everything up to powers of two and never joins what
   is freed, so that the engine's 4 KiB arenas take 8 KiB each and one large body makes a hole that
   nothing smaller ever fills. An isolate's memory limit is worth twice as much with this one.

   Memory is a row of chunks. A chunk in use has four bytes of overhead; the size of a free one is
   also at its end, where its successor finds it. Payloads are aligned to 16 bytes, so chunks begin
   8 bytes before a multiple of 16. Compiled with -fno-builtin, or calloc would become a call of
   itself. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct chunk {
    uint32_t previous_size; /* of the chunk before, if that is free; else the end of its payload */
    uint32_t size_and_flags;
    struct chunk *next, *previous; /* in the list of a bin, if free; else payload */
};

enum { FREE = 1, PREVIOUS_FREE = 2, FLAGS = 15 };
enum { ALIGNMENT = 16, HEAD_BYTES = 8, OVERHEAD_BYTES = 4, SMALLEST_CHUNK = 16 };
enum {
    SUBDIVISIONS_LOG2 = 4,
    SUBDIVISIONS = 1 << SUBDIVISIONS_LOG2,
    LINEAR_BELOW = 256,
    LEVELS = 25
};
enum { PAGE_BYTES = 65536, GROWTH_BYTES = 4 * PAGE_BYTES };

static const uint32_t LARGEST_REQUEST = 0x7FFF0000;

extern char __heap_base; /* from the linker: the first address after static data */

static struct {
    uint32_t levels; /* which have a free chunk */
    uint32_t subdivisions[LEVELS];
    struct chunk *bins[LEVELS][SUBDIVISIONS];
    struct chunk *end; /* the sentinel after the last chunk; NULL before the first use */
} heap;

static uint32_t size_of(const struct chunk *chunk)
{
    return chunk->size_and_flags & ~(uint32_t)FLAGS;
}

static struct chunk *at_offset(struct chunk *chunk, int32_t offset)
{
    return (struct chunk *)((char *)chunk + offset);
}

static struct chunk *successor(struct chunk *chunk)
{
    return at_offset(chunk, (int32_t)size_of(chunk));
}

static int log2_of(uint32_t size)
{
    return 31 - __builtin_clz(size);
}

/* The bin that holds free chunks of this size. */
static void bin_of(uint32_t size, int *level, int *subdivision)
{
    if (size < LINEAR_BELOW) {
        *level = 0;
        *subdivision = (int)(size / ALIGNMENT);
    } else {
        int log2 = log2_of(size);
        *level = log2 - 7;
        *subdivision = (int)(size >> (log2 - SUBDIVISIONS_LOG2)) & (SUBDIVISIONS - 1);
    }
}

/* Marks a chunk as free and puts it in its bin. */
static void insert(struct chunk *chunk, uint32_t size)
{
    int level, subdivision;
    struct chunk **bin, *after = at_offset(chunk, (int32_t)size);

    chunk->size_and_flags = size | FREE | (chunk->size_and_flags & PREVIOUS_FREE);
    after->previous_size = size;
    after->size_and_flags |= PREVIOUS_FREE;
    bin_of(size, &level, &subdivision);
    bin = &heap.bins[level][subdivision];
    chunk->previous = NULL;
    chunk->next = *bin;
    if (*bin)
        (*bin)->previous = chunk;
    *bin = chunk;
    heap.levels |= 1u << level;
    heap.subdivisions[level] |= 1u << subdivision;
}

/* Takes a free chunk out of its bin and marks it as used. */
static void take(struct chunk *chunk)
{
    int level, subdivision;

    bin_of(size_of(chunk), &level, &subdivision);
    if (chunk->next)
        chunk->next->previous = chunk->previous;
    if (chunk->previous) {
        chunk->previous->next = chunk->next;
    } else {
        heap.bins[level][subdivision] = chunk->next;
        if (!chunk->next) {
            heap.subdivisions[level] &= ~(1u << subdivision);
            if (!heap.subdivisions[level])
                heap.levels &= ~(1u << level);
        }
    }
    chunk->size_and_flags &= ~(uint32_t)FREE;
    successor(chunk)->size_and_flags &= ~(uint32_t)PREVIOUS_FREE;
}

/* Any chunk of a bin whose every chunk is large enough. */
static struct chunk *find_larger_bin(uint32_t size)
{
    int level, subdivision;
    uint32_t candidates;

    if (size >= LINEAR_BELOW)
        size += (1u << (log2_of(size) - SUBDIVISIONS_LOG2)) - 1;
    bin_of(size, &level, &subdivision);
    candidates = heap.subdivisions[level] & ~0u << subdivision;
    if (!candidates) {
        uint32_t levels = level + 1 < LEVELS ? heap.levels & ~0u << (level + 1) : 0;
        if (!levels)
            return NULL;
        level = __builtin_ctz(levels);
        candidates = heap.subdivisions[level];
    }
    return heap.bins[level][__builtin_ctz(candidates)];
}

/* A chunk that does among those that may be too small: looks at `most` of them. */
static struct chunk *find_in_same_bin(uint32_t size, int most)
{
    int level, subdivision;
    struct chunk *chunk;

    bin_of(size, &level, &subdivision);
    for (chunk = heap.bins[level][subdivision]; chunk && most; chunk = chunk->next, most--)
        if (size_of(chunk) >= size)
            return chunk;
    return NULL;
}

/* Gives back what of a used chunk is more than `size`, joined to what is free behind it. */
static void trim(struct chunk *chunk, uint32_t size)
{
    uint32_t rest = size_of(chunk) - size;
    struct chunk *after;

    if (rest < SMALLEST_CHUNK)
        return;
    after = successor(chunk);
    chunk->size_and_flags -= rest;
    if (after->size_and_flags & FREE) {
        take(after);
        rest += size_of(after);
    }
    after = successor(chunk);
    after->size_and_flags = rest;
    insert(after, rest);
}

/* Frees a used chunk, joined to its free neighbours. */
static void release(struct chunk *chunk)
{
    uint32_t size = size_of(chunk);
    struct chunk *after = successor(chunk);

    if (after->size_and_flags & FREE) {
        take(after);
        size += size_of(after);
    }
    if (chunk->size_and_flags & PREVIOUS_FREE) {
        struct chunk *before = at_offset(chunk, -(int32_t)chunk->previous_size);
        take(before);
        size += size_of(before);
        chunk = before;
    }
    insert(chunk, size);
}

static void put_sentinel(uint32_t end, uint32_t flags)
{
    heap.end = (struct chunk *)(uintptr_t)(end - HEAD_BYTES);
    heap.end->size_and_flags = flags; /* of size 0, in use: nothing joins it */
}

/* The heap begins as what lies between static data and the end of memory. */
static void begin(void)
{
    uint32_t start =
        ((uint32_t)(uintptr_t)&__heap_base + HEAD_BYTES + ALIGNMENT - 1) & ~(ALIGNMENT - 1u);
    uint32_t end = __builtin_wasm_memory_size(0) * PAGE_BYTES;
    struct chunk *first = (struct chunk *)(uintptr_t)(start - HEAD_BYTES);

    if (start + SMALLEST_CHUNK + ALIGNMENT > end) {
        if (__builtin_wasm_memory_grow(0, 1) == (size_t)-1)
            __builtin_trap();
        end += PAGE_BYTES;
    }
    put_sentinel(end, 0);
    first->size_and_flags = 0;
    insert(first, (uint32_t)((char *)heap.end - (char *)first));
}

/* Adds memory at the end for a chunk of `size`. False when the host refuses. */
static bool grow(uint32_t size)
{
    uint32_t free_at_end = heap.end->size_and_flags & PREVIOUS_FREE ? heap.end->previous_size : 0;
    uint32_t missing =
        (size - (free_at_end < size ? free_at_end : 0) + PAGE_BYTES - 1) / PAGE_BYTES;
    uint32_t pages = missing > GROWTH_BYTES / PAGE_BYTES ? missing : GROWTH_BYTES / PAGE_BYTES;
    uint32_t end = (uint32_t)(uintptr_t)heap.end + HEAD_BYTES;
    size_t before = __builtin_wasm_memory_grow(0, pages);
    struct chunk *added = heap.end;

    if (before == (size_t)-1) {
        pages = missing;
        before = __builtin_wasm_memory_grow(0, pages);
    }
    if (before == (size_t)-1)
        return false;
    if (before * PAGE_BYTES != end)
        __builtin_trap(); /* nobody else may grow the memory */
    added->size_and_flags |= pages * PAGE_BYTES;
    put_sentinel(end + pages * PAGE_BYTES, 0);
    release(added);
    return true;
}

static uint32_t chunk_size_for(size_t payload)
{
    uint32_t size = ((uint32_t)payload + OVERHEAD_BYTES + ALIGNMENT - 1) & ~(ALIGNMENT - 1u);
    return size < SMALLEST_CHUNK ? SMALLEST_CHUNK : size;
}

void *malloc(size_t wanted)
{
    uint32_t size;
    struct chunk *chunk;

    if (wanted > LARGEST_REQUEST)
        return NULL;
    if (!heap.end)
        begin();
    size = chunk_size_for(wanted);
    chunk = find_larger_bin(size);
    if (!chunk)
        chunk = find_in_same_bin(size, 16);
    if (!chunk && grow(size))
        chunk = find_larger_bin(size);
    if (!chunk)
        chunk = find_in_same_bin(size, -1); /* all of them */
    if (!chunk)
        return NULL;
    take(chunk);
    trim(chunk, size);
    return (char *)chunk + HEAD_BYTES;
}

void free(void *payload)
{
    struct chunk *chunk = at_offset(payload, -HEAD_BYTES);

    if (!payload)
        return;
    if (chunk->size_and_flags & FREE)
        __builtin_trap(); /* freed twice */
    release(chunk);
}

size_t malloc_usable_size(void *payload)
{
    return payload ? size_of(at_offset(payload, -HEAD_BYTES)) - OVERHEAD_BYTES : 0;
}

void *calloc(size_t count, size_t each)
{
    size_t total;
    void *payload;

    if (__builtin_mul_overflow(count, each, &total))
        return NULL;
    payload = malloc(total);
    if (payload)
        memset(payload, 0, total);
    return payload;
}

void *realloc(void *payload, size_t wanted)
{
    struct chunk *chunk = at_offset(payload, -HEAD_BYTES), *after;
    uint32_t size;
    void *moved;

    if (!payload)
        return malloc(wanted);
    if (!wanted) {
        free(payload);
        return NULL;
    }
    if (wanted > LARGEST_REQUEST)
        return NULL;
    size = chunk_size_for(wanted);
    after = successor(chunk);
    if (size > size_of(chunk) && (after->size_and_flags & FREE) &&
        size_of(chunk) + size_of(after) >= size) {
        take(after);
        chunk->size_and_flags += size_of(after);
    }
    if (size <= size_of(chunk)) {
        trim(chunk, size);
        return payload;
    }
    moved = malloc(wanted);
    if (moved) {
        memcpy(moved, payload, malloc_usable_size(payload));
        free(payload);
    }
    return moved;
}
