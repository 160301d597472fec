/* Computes Philox blocks sixteen at a time, in loops that the compiler vectorizes. May use core; for kernel
 * files. */
#ifndef PROA_KERNELS_SIMD_PHILOX_H
#define PROA_KERNELS_SIMD_PHILOX_H

#include "core/internal.h"
#include "core/philox.h"

enum { PHILOX_LANES = 16 };

/* word[v][i] = word v of block `first` + i of the stream; n is a multiple of PHILOX_LANES. */
static inline __attribute__((unused)) void philox_lanes(proa_rng_state stream, uint64_t first, int n,
                                                        uint32_t *const word[4])
{
    for (int at = 0; at < n; at += PHILOX_LANES) {
        uint32_t w0[PHILOX_LANES], w1[PHILOX_LANES], w2[PHILOX_LANES], w3[PHILOX_LANES];
        uint32_t k0 = (uint32_t)stream.seed, k1 = (uint32_t)(stream.seed >> 32);
        for (int i = 0; i < PHILOX_LANES; i++) {
            uint64_t index = stream.offset + first + (uint64_t)(at + i);
            w0[i] = (uint32_t)index, w1[i] = (uint32_t)(index >> 32);
            w2[i] = w3[i] = 0;
        }
        _Pragma("GCC unroll 10") for (int round = 0; round < 10; round++)
        {
            for (int i = 0; i < PHILOX_LANES; i++) {
                proa__philox_block c = {{w0[i], w1[i], w2[i], w3[i]}};
                c = proa__philox_round(c, k0, k1);
                w0[i] = c.v[0], w1[i] = c.v[1], w2[i] = c.v[2], w3[i] = c.v[3];
            }
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        memcpy(word[0] + at, w0, sizeof w0), memcpy(word[1] + at, w1, sizeof w1);
        memcpy(word[2] + at, w2, sizeof w2), memcpy(word[3] + at, w3, sizeof w3);
    }
}

#endif
