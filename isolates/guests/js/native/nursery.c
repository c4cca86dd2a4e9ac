/* What a fresh isolate writes to first, side by side.

   An isolate shares its image's pages until it writes to them; each page it writes to costs it two
   microseconds and four kilobytes. The engine keeps blocks of different sizes in different arenas,
   so that a first request, which makes blocks of a dozen sizes, would write to two dozen pages. The
   nursery holds a small arena for each size, all in a few pages, and a restored isolate uses those
   before any other. It is made in the base image, which all workers share, and opened in a
   worker's. */

enum { NURSERY_PAGE_BYTES = 4096 };

static struct {
    JSArena *arenas[JS_ARENA_BLOCK_SIZE_COUNT];
    bool made, opened;
} nursery;

static unsigned nursery_blocks(unsigned block_bytes)
{
    return block_bytes <= 128 ? 12 : block_bytes <= 256 ? 6 : 3;
}

static size_t nursery_arena_bytes(unsigned index)
{
    unsigned block_bytes = arena_block_sizes[index];

    return sizeof(JSArena) + (size_t)nursery_blocks(block_bytes) * block_bytes;
}

/* One block more than there is counts as used, so that the arena is never given back. */
static void lay_out_arena(JSArena *arena, unsigned index)
{
    unsigned block_bytes = arena_block_sizes[index], blocks = nursery_blocks(block_bytes), i;

    memset(arena, 0, nursery_arena_bytes(index));
    init_list_head(&arena->link);
    arena->block_size_idx = (uint8_t)index;
    arena->n_blocks = (uint16_t)(blocks + 1);
    arena->n_used_blocks = 1;
    for (i = 0; i < blocks; i++) {
        JSMallocBlockHeader *block = arena_get_block(arena, i, block_bytes);
        block->u.free_next = (uint16_t)(i + 1 < blocks ? i + 1 : JS_ARENA_FREE_NIL);
        block->block_size_idx = (uint8_t)index;
    }
}

static void make_nursery(void)
{
    size_t total = NURSERY_PAGE_BYTES;
    uint8_t *at;
    unsigned i;

    for (i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++)
        total += nursery_arena_bytes(i);
    at = malloc(total);
    if (!at)
        return;
    at += -(uintptr_t)at % NURSERY_PAGE_BYTES;
    for (i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++) {
        nursery.arenas[i] = (JSArena *)at;
        lay_out_arena(nursery.arenas[i], i);
        at += nursery_arena_bytes(i);
    }
    nursery.made = true;
}

static void open_nursery(JSContext *ctx)
{
    unsigned i;

    if (!nursery.made || nursery.opened)
        return;
    nursery.opened = true;
    for (i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++)
        list_add(&nursery.arenas[i]->free_link, &ctx->rt->arena_state.free_arena_list[i]);
    /* The next object is linked to the last one, which had better be here too. Never freed. */
    JS_NewObjectProtoClass(ctx, JS_NULL, JS_CLASS_OBJECT);
}

/* So that no request of a restored isolate makes the table larger, which writes to every shape. */
static void make_room_for_shapes(JSRuntime *rt)
{
    enum { SPARE_SHAPES = 256 };

    while (2 * (rt->shape_hash_count + SPARE_SHAPES) > rt->shape_hash_size)
        if (resize_shape_hash(rt, rt->shape_hash_bits + 1))
            return;
}
