/* Makes all that is alive immortal (see immortal.h): once for the base image, and once for what a
   worker's top level has added to it. */

static void immortalise(const void *counted)
{
    if (!js_immortal(counted))
        JS_REF_COUNT(counted) |= JS_IMMORTAL;
}

/* Small objects and strings. Blocks that nobody counts the references of have the field too. */
static void immortalise_arena(JSArena *arena)
{
    enum { MOST_BLOCKS = 4096 / 16 };
    const unsigned block_bytes = arena_block_sizes[arena->block_size_idx];
    bool is_free[MOST_BLOCKS] = { false };
    unsigned i, next;

    for (i = arena->first_free_block; i != JS_ARENA_FREE_NIL; i = next) {
        is_free[i] = true;
        next = ((JSMallocBlockHeader *)arena_get_block(arena, i, block_bytes))->u.free_next;
    }
    for (i = 0; i < arena->n_blocks; i++)
        if (!is_free[i]) {
            JSMallocBlockHeader *block = arena_get_block(arena, i, block_bytes);
            immortalise(block->user_data);
        }
}

static void make_immortal(JSRuntime *rt)
{
    struct list_head *at;
    unsigned i;

    for (i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++)
        list_for_each(at, &rt->arena_state.arena_list[i])
            immortalise_arena(list_entry(at, JSArena, link));
    list_for_each(at, &rt->gc_obj_list)
        immortalise(list_entry(at, JSGCObjectHeader, link));
    for (i = 1; i < (unsigned)rt->atom_size; i++)
        if (!atom_is_free(rt->atom_array[i]))
            immortalise(rt->atom_array[i]);
}
