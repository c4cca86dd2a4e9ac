/* Randomness: ChaCha20 (RFC 8439) with fast key erasure. Each request makes a keystream whose first
   half block becomes the next key, so memory never holds what could give earlier output away. The
   host is the only source of entropy. */

enum { CHACHA_BLOCK_BYTES = 64, CHACHA_KEY_WORDS = 8 };

static struct {
    uint32_t key[CHACHA_KEY_WORDS];
    bool seeded;
} generator;

static uint32_t rotate_left(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

static void quarter_round(uint32_t *s, int a, int b, int c, int d)
{
    s[a] += s[b];
    s[d] = rotate_left(s[d] ^ s[a], 16);
    s[c] += s[d];
    s[b] = rotate_left(s[b] ^ s[c], 12);
    s[a] += s[b];
    s[d] = rotate_left(s[d] ^ s[a], 8);
    s[c] += s[d];
    s[b] = rotate_left(s[b] ^ s[c], 7);
}

/* One block of keystream. The nonce is always 0: no key is used for a second stream. */
static void chacha20_block(const uint32_t *key, uint32_t counter, uint8_t *out)
{
    uint32_t start[16] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 }, state[16];
    int i;

    memcpy(start + 4, key, CHACHA_KEY_WORDS * sizeof *key);
    start[12] = counter;
    memcpy(state, start, sizeof state);
    for (i = 0; i < 10; i++) {
        quarter_round(state, 0, 4, 8, 12);
        quarter_round(state, 1, 5, 9, 13);
        quarter_round(state, 2, 6, 10, 14);
        quarter_round(state, 3, 7, 11, 15);
        quarter_round(state, 0, 5, 10, 15);
        quarter_round(state, 1, 6, 11, 12);
        quarter_round(state, 2, 7, 8, 13);
        quarter_round(state, 3, 4, 9, 14);
    }
    for (i = 0; i < 16; i++)
        state[i] += start[i];
    memcpy(out, state, sizeof state); /* wasm is little-endian, as the RFC wants */
}

static void random_bytes(uint8_t *out, size_t length)
{
    uint8_t block[CHACHA_BLOCK_BYTES];
    uint32_t key[CHACHA_KEY_WORDS], counter = 0;
    size_t taken, skipped = sizeof generator.key;

    memcpy(key, generator.key, sizeof key);
    do {
        chacha20_block(key, counter, block);
        if (counter++ == 0)
            memcpy(generator.key, block, sizeof generator.key);
        taken = sizeof block - skipped < length ? sizeof block - skipped : length;
        memcpy(out, block + skipped, taken);
        out += taken;
        length -= taken;
        skipped = 0;
    } while (length);
    wipe(block, sizeof block);
    wipe(key, sizeof key);
}

/* Math.random and the hashing of Map keys are not secrets, but must differ between isolates of one
   image. */
static void seed_engine(JSContext *ctx)
{
    uint64_t state;

    random_bytes((uint8_t *)&state, sizeof state);
    ctx->random_state = state ? state : 1;
}

/* Mixes entropy into the key, 32 bytes at a time, each through a block. Less than 32 bytes is none.
 */
static void seed_generator(const uint8_t *entropy, size_t length)
{
    uint8_t block[CHACHA_BLOCK_BYTES];
    uint32_t word;
    size_t at, i;

    for (at = 0; at + sizeof generator.key <= length; at += sizeof generator.key) {
        for (i = 0; i < CHACHA_KEY_WORDS; i++) {
            memcpy(&word, entropy + at + i * sizeof word, sizeof word);
            generator.key[i] ^= word;
        }
        chacha20_block(generator.key, 0, block);
        memcpy(generator.key, block, sizeof generator.key);
        generator.seeded = true;
    }
}

/* random(bytes) -> the same view, filled */
static JSValue host_random(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
    uint8_t *bytes;
    size_t length;

    if (!generator.seeded)
        return JS_ThrowPlainError(ctx, "Disallowed operation called within global scope. Random "
                                       "values, timers and "
                                       "I/O are not available before the first event");
    if (!require_bytes(ctx, argv[0], &bytes, &length))
        return JS_EXCEPTION;
    if (length)
        random_bytes(bytes, length);
    return js_dup(argv[0]);
}
