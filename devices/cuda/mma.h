/* Tensor cores, as a warp uses them: products of 16 x 16 by 16 x 8 halves, sums in float32 (PTX's
 * mma.sync.m16n8k16; compute capability 8.0 and later). Lane 4g + t holds of
 *   a: rows g and g + 8, columns 2t, 2t + 1 and 2t + 8, 2t + 9: two halves a word, in the order (g, 2t),
 *      (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8);
 *   b: rows 2t, 2t + 1 of column g, then rows 2t + 8, 2t + 9;
 *   c: rows g and g + 8, columns 2t, 2t + 1: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
 * So two neighboring results c are, as halves, one operand a. The emulator has each lane put its words where
 * the warp can see them. May use kernel.h. */
#ifndef PROA_CUDA_MMA_H
#define PROA_CUDA_MMA_H

#include "devices/cuda/kernel.h"

struct mma_a {
    uint32_t w[4];
};
struct mma_b {
    uint32_t w[2];
};
struct mma_c {
    float v[4];
};

/* True if the GPU has such tensor cores. */
static inline bool mma_can(const cuda_context *c) { return c->description.major >= 8; }

/* Two halves as a word: neighbors in memory, word-aligned (mma_word); two floats, rounded (mma_pair). */
template <class X> CUDA_FN uint32_t mma_word(const X *p) { return *(const uint32_t *)(const void *)p; }
CUDA_FN uint16_t mma_round(float x, cuda_f16) { return cuda_to_f16(x).bits; }
CUDA_FN uint16_t mma_round(float x, cuda_bf16) { return cuda_to_bf16(x).bits; }
template <class X> CUDA_FN uint32_t mma_pair(float low, float high)
{
    return mma_round(low, X()) | (uint32_t)mma_round(high, X()) << 16;
}
/* The results of two neighboring blocks of 8 columns, rounded, as the operand a of another product. */
template <class X> CUDA_FN mma_a mma_again(const mma_c &left, const mma_c &right)
{
    return {{mma_pair<X>(left.v[0], left.v[1]), mma_pair<X>(left.v[2], left.v[3]),
             mma_pair<X>(right.v[0], right.v[1]), mma_pair<X>(right.v[2], right.v[3])}};
}

/* ---- operands out of shared memory ---------------------------------------------------- */

template <int N, bool TURNED, class X> CUDA_FN void mma_matrices(const X *row, uint32_t *w);

/* a from rows of `step` elements, 16 x 16 from p on. p and step: multiples of 16 bytes, here and below. */
template <class X> CUDA_FN mma_a mma_load_a(const X *p, int step)
{
    int lane = (int)threadIdx.x % 32;
    mma_a a;
    mma_matrices<4, false>(p + lane % 16 * step + lane / 16 * 8, a.w);
    return a;
}
/* Two operands b, whose columns are rows of memory (8 rows of 16, then the next 8); or whose rows are (16
 * rows of 8, then the columns behind them). */
struct mma_b_two {
    mma_b b[2];
};
template <class X> CUDA_FN mma_b_two mma_load_b(const X *p, int step)
{
    int lane = (int)threadIdx.x % 32;
    uint32_t w[4];
    mma_matrices<4, false>(p + (lane / 16 * 8 + lane % 8) * step + lane / 8 % 2 * 8, w);
    return {{{{w[0], w[1]}}, {{w[2], w[3]}}}};
}
template <class X> CUDA_FN mma_b_two mma_load_b_rows(const X *p, int step)
{
    int lane = (int)threadIdx.x % 32;
    uint32_t w[4];
    mma_matrices<4, true>(p + lane % 16 * step + lane / 16 * 8, w);
    return {{{{w[0], w[1]}}, {{w[2], w[3]}}}};
}

/* ---- what a GPU has, and the emulator's loops ------------------------------------------- */

#if defined(CUDA_EMULATED)

CUDA_FN float mma_value(uint32_t bits, cuda_f16) { return cuda_float(cuda_f16{(uint16_t)bits}); }
CUDA_FN float mma_value(uint32_t bits, cuda_bf16) { return cuda_float(cuda_bf16{(uint16_t)bits}); }
template <class X> CUDA_FN float mma_half(const uint32_t *w, int i)
{
    return mma_value(w[i / 2] >> (i % 2 * 16) & 0xffffu, X());
}

/* c += a · b */
template <class X> static void mma_add(mma_c &c, const mma_a &a, const mma_b &b)
{
    static struct {
        mma_a a;
        mma_b b;
    } all[1024];
    int me = (int)threadIdx.x, lane = me % 32, warp = me - lane;
    all[me] = {a, b};
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        int row = lane / 4, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++) {
            int t = k % 8 / 2, half = k / 8;
            float x = mma_half<X>(all[warp + row * 4 + t].a.w, (half * 2 + i / 2) * 2 + k % 2);
            float y = mma_half<X>(all[warp + column * 4 + t].b.w, half * 2 + k % 2);
            c.v[i] += x * y;
        }
    }
    __syncwarp();
}

/* N matrices of 8 x 8 halves: lane 8 i + r gives where row r of number i is (PTX's ldmatrix). Lane 4g + t
 * gets of each row g, columns 2t and 2t + 1; TURNED: of column g rows 2t and 2t + 1. */
template <int N, bool TURNED, class X> CUDA_FN void mma_matrices(const X *row, uint32_t *w)
{
    static const X *all[1024];
    int me = (int)threadIdx.x, g = me % 32 / 4, t = me % 4 * 2;
    all[me] = row;
    __syncwarp();
    for (int i = 0; i < N; i++) {
        const X *const *rows = all + me / 32 * 32 + 8 * i;
        w[i] = TURNED ? rows[t][g].bits | (uint32_t)rows[t + 1][g].bits << 16 : mma_word(rows[g] + t);
    }
    __syncwarp();
}

#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 /* the host takes other kernels there (mma_can) */

template <class X> CUDA_FN void mma_add(mma_c &, const mma_a &, const mma_b &) { __trap(); }
template <int N, bool TURNED, class X> CUDA_FN void mma_matrices(const X *, uint32_t *) { __trap(); }

#else

CUDA_FN void mma_add_words(mma_c &c, const mma_a &a, const mma_b &b, cuda_f16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]), "+f"(c.v[3])
        : "r"(a.w[0]), "r"(a.w[1]), "r"(a.w[2]), "r"(a.w[3]), "r"(b.w[0]), "r"(b.w[1]));
}
CUDA_FN void mma_add_words(mma_c &c, const mma_a &a, const mma_b &b, cuda_bf16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]), "+f"(c.v[3])
        : "r"(a.w[0]), "r"(a.w[1]), "r"(a.w[2]), "r"(a.w[3]), "r"(b.w[0]), "r"(b.w[1]));
}
template <class X> CUDA_FN void mma_add(mma_c &c, const mma_a &a, const mma_b &b)
{
    mma_add_words(c, a, b, X());
}
template <int N, bool TURNED, class X> CUDA_FN void mma_matrices(const X *row, uint32_t *w)
{
    static_assert(N == 4, "four at once");
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "r"(at)
                     : "memory");
}

#endif
#endif
