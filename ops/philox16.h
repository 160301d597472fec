/* Sixteen random bits an element, for dropout masks: a 128-bit Philox block serves eight neighbours, so
 * element i's bits depend on the stream and i alone. May use core; for kernel files. */
#ifndef PROA_OPS_PHILOX16_H
#define PROA_OPS_PHILOX16_H

#include "ops/philox_lanes.h"

enum { PHILOX16_EACH = 8, PHILOX16_BLOCKS = 32 };

/* Blocks that n elements take. */
static inline uint64_t philox16_blocks(int64_t n)
{
    return ((uint64_t)n + PHILOX16_EACH - 1) / PHILOX16_EACH;
}

/* An element is dropped when its bits are below this: p of 65536. */
static inline uint32_t philox16_threshold(double p) { return (uint32_t)(p * 65536.0 + 0.5); }

/* keep[k] = 1 or 0 for elements [at, at + n) of the stream. Blocks are made PHILOX16_BLOCKS side by side,
 * which the compiler turns into vectors. */
static inline void philox16_keep(proa_rng_state stream, int64_t at, int64_t n, uint32_t threshold,
                                 uint8_t *keep)
{
    uint64_t block = (uint64_t)at / PHILOX16_EACH;
    int64_t skip = at % PHILOX16_EACH, done = 0;
    while (done < n) {
        uint32_t word[4][PHILOX16_BLOCKS], low[PHILOX16_BLOCKS], high[PHILOX16_BLOCKS];
        uint8_t kept[PHILOX16_BLOCKS * PHILOX16_EACH];
        uint32_t *const words[4] = {word[0], word[1], word[2], word[3]};
        philox_lanes(stream, block, PHILOX16_BLOCKS, words);
        for (int i = 0; i < PHILOX16_BLOCKS; i++) { /* eight bytes a block, the first element's lowest */
            uint32_t pair[4];
            for (int v = 0; v < 4; v++)
                pair[v] = ((word[v][i] & 0xffffu) >= threshold) | (uint32_t)((word[v][i] >> 16) >= threshold)
                                                                      << 8;
            low[i] = pair[0] | pair[1] << 16;
            high[i] = pair[2] | pair[3] << 16;
        }
        for (int i = 0; i < PHILOX16_BLOCKS; i++) {
            uint32_t both[2] = {low[i], high[i]};
            memcpy(kept + i * PHILOX16_EACH, both, sizeof both);
        }
        int64_t have = PHILOX16_BLOCKS * PHILOX16_EACH - skip;
        if (have > n - done) have = n - done;
        memcpy(keep + done, kept + skip, (size_t)have);
        done += have;
        block += PHILOX16_BLOCKS;
        skip = 0;
    }
}

#endif
