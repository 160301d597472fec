/* hash on the CPU: XXH64 (Collet, "xxHash fast digest algorithm", 2023) of each row's bytes. Compiled once
 * per CPU level; static functions and the kernel only. */
#include "core/tensor.h"
#include "impl/hash.h"

#include <string.h>

static const uint64_t PRIME[] = {0,
                                 11400714785074694791u,
                                 14029467366897019727u,
                                 1609587929392839161u,
                                 9650029242287828579u,
                                 2870177450012600261u};

static uint64_t rotated(uint64_t v, int bits) { return v << bits | v >> (64 - bits); }

static uint64_t round_of(uint64_t lane, uint64_t word)
{
    return rotated(lane + word * PRIME[2], 31) * PRIME[1];
}

/* Little-endian, as all platforms of Proa. */
static uint64_t word_at(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t half_word_at(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* XXH64 of n bytes, a multiple of 4. */
static uint64_t xxh64(const char *p, size_t n, uint64_t seed)
{
    const char *end = p + n;
    uint64_t h = seed + PRIME[5];
    if (n >= 32) {
        uint64_t lane[] = {seed + PRIME[1] + PRIME[2], seed + PRIME[2], seed, seed - PRIME[1]};
        for (; end - p >= 32; p += 32)
            for (int i = 0; i < 4; i++) lane[i] = round_of(lane[i], word_at(p + 8 * i));
        h = rotated(lane[0], 1) + rotated(lane[1], 7) + rotated(lane[2], 12) + rotated(lane[3], 18);
        for (int i = 0; i < 4; i++) h = (h ^ round_of(0, lane[i])) * PRIME[1] + PRIME[4];
    }
    h += n;
    for (; end - p >= 8; p += 8) h = rotated(h ^ round_of(0, word_at(p)), 27) * PRIME[1] + PRIME[4];
    if (end - p >= 4) h = rotated(h ^ half_word_at(p) * PRIME[1], 23) * PRIME[2] + PRIME[3];
    h = (h ^ h >> 33) * PRIME[2];
    h = (h ^ h >> 29) * PRIME[3];
    return h ^ h >> 32;
}

PROA_KERNEL(hash_cpu, hash)
{
    size_t item = proa_dtype_size((proa_dtype)a->x->dtype), size = (size_t)a->x->shape[1] * item;
    char *out = a->out->data;
    for (int64_t row = 0; row < a->x->shape[0]; row++)
        for (int64_t seed = 0; seed < a->num_hash; seed++) {
            const char *ids = a->x->data + (size_t)row * size;
            uint64_t found = xxh64(ids, size, (uint64_t)seed) % (uint64_t)a->mod_by;
            memcpy(out, &found, item); /* int32 keeps the lower half, as Paddle's conversion */
            out += item;
        }
    return PROA_OK;
}
