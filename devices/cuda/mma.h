/* Tensor cores, as a warp uses them: products of 16 x 16 by 16 x 8 halves, or of 16 x 8 by 8 x 8 floats
 * rounded to TF32, sums in float32 (PTX's mma.sync.m16n8k16 and m16n8k8; compute capability 8.0 and later).
 * Lane 4g + t holds of
 *   a: rows g and g + 8, bytes 4t to 4t + 3 and 16 + 4t to 19 + 4t, two halves or a float a word, in the
 *      order (g, 4t), (g + 8, 4t), (g, 16 + 4t), (g + 8, 16 + 4t);
 *   b: column g, whose bytes are those of a's rows, then the later ones;
 *   c: rows g and g + 8, columns 2t, 2t + 1: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
 * So two neighboring results c are, as halves, one operand a; and one is, as floats, if the columns of a are
 * taken in the order 0, 2, 4, 6, 1, 3, 5, 7. The emulator has each lane put its words where the warp can see
 * them. May use kernel.h. */
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

/* Elements in 16 bytes, and in the depth of one product, 32 bytes. */
template <class X> struct mma_of {
    enum { PACK = 16 / sizeof(X), DEPTH = 32 / sizeof(X) };
};

/* ---- operands out of shared memory ---------------------------------------------------- */

template <int N, bool TURNED, class X> CUDA_FN void mma_matrices(const X *row, uint32_t *w);

/* a from rows of `step` elements, 16 rows from p on. p and step: multiples of 16 bytes, here and below. */
template <class X> CUDA_FN mma_a mma_load_a(const X *p, int step)
{
    int lane = (int)threadIdx.x % 32;
    mma_a a;
    mma_matrices<4, false>(p + lane % 16 * step + lane / 16 * mma_of<X>::PACK, a.w);
    return a;
}
/* Two operands b, whose columns are rows of memory (8 rows, then the next 8); or whose rows are (DEPTH rows
 * of 8, then the columns behind them), for floats in the order of columns in which mma_again takes them. */
struct mma_b_two {
    mma_b b[2];
};
template <class X> CUDA_FN mma_b_two mma_load_b(const X *p, int step)
{
    int lane = (int)threadIdx.x % 32;
    uint32_t w[4];
    mma_matrices<4, false>(p + (lane / 16 * 8 + lane % 8) * step + lane / 8 % 2 * mma_of<X>::PACK, w);
    return {{{{w[0], w[1]}}, {{w[2], w[3]}}}};
}
template <class X> CUDA_FN mma_b_two mma_load_b_rows(const X *p, int step)
{
    int lane = (int)threadIdx.x % 32;
    uint32_t w[4];
    mma_matrices<4, true>(p + lane % 16 * step + lane / 16 * 8, w);
    return {{{{w[0], w[1]}}, {{w[2], w[3]}}}};
}
CUDA_FN mma_b_two mma_load_b_rows(const float *p, int step)
{
    int lane = (int)threadIdx.x % 32;
    const uint32_t *w = (const uint32_t *)(const void *)(p + lane % 4 * 2 * step + lane / 4);
    return {{{{w[0], w[step]}}, {{w[8], w[step + 8]}}}};
}

/* Below: mma_pair(low, high, X()), two floats rounded to halves in a word; mma_tf32, a float rounded to
 * TF32. */

/* ---- what a GPU has, and the emulator's loops ------------------------------------------- */

#if defined(CUDA_EMULATED)

/* Element i of a row of words; tensor cores do not look at the lowest 13 bits of a float. */
CUDA_FN float mma_value(uint32_t w, int i, cuda_f16)
{
    return cuda_float(cuda_f16{(uint16_t)(w >> i % 2 * 16)});
}
CUDA_FN float mma_value(uint32_t w, int i, cuda_bf16)
{
    return cuda_float(cuda_bf16{(uint16_t)(w >> i % 2 * 16)});
}
CUDA_FN float mma_value(uint32_t w, int, float) { return cuda_bits_f32(w & ~0x1fffu); }

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
        for (int k = 0; k < mma_of<X>::DEPTH; k++) {
            int half = k / mma_of<X>::PACK, t = k % mma_of<X>::PACK * (int)sizeof(X) / 4;
            float x = mma_value(all[warp + row * 4 + t].a.w[half * 2 + i / 2], k, X());
            c.v[i] += x * mma_value(all[warp + column * 4 + t].b.w[half], k, X());
        }
    }
    __syncwarp();
}

/* N matrices of 8 rows of 16 bytes: lane 8 i + r gives where row r of number i is (PTX's ldmatrix). Lane
 * 4g + t gets of each row g word t; TURNED, of halves: of column g rows 2t and 2t + 1. */
template <int N, bool TURNED, class X> CUDA_FN void mma_matrices(const X *row, uint32_t *w)
{
    static const X *all[1024];
    int me = (int)threadIdx.x, g = me % 32 / 4, t = me % 4 * 2;
    all[me] = row;
    __syncwarp();
    for (int i = 0; i < N; i++) {
        const X *const *rows = all + me / 32 * 32 + 8 * i;
        if constexpr (TURNED) w[i] = rows[t][g].bits | (uint32_t)rows[t + 1][g].bits << 16;
        else w[i] = ((const uint32_t *)(const void *)rows[g])[t / 2];
    }
    __syncwarp();
}

CUDA_FN uint32_t mma_pair(float low, float high, cuda_f16)
{
    return cuda_to_f16(low).bits | (uint32_t)cuda_to_f16(high).bits << 16;
}
CUDA_FN uint32_t mma_pair(float low, float high, cuda_bf16)
{
    return cuda_to_bf16(low).bits | (uint32_t)cuda_to_bf16(high).bits << 16;
}
CUDA_FN uint32_t mma_tf32(float x) { return (cuda_f32_bits(x) + 0x1000u) & ~0x1fffu; }

#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 /* the host takes other kernels there (mma_can) */

template <class X> CUDA_FN void mma_add(mma_c &, const mma_a &, const mma_b &) { __trap(); }
template <int N, bool TURNED, class X> CUDA_FN void mma_matrices(const X *, uint32_t *) { __trap(); }
template <class X> CUDA_FN uint32_t mma_pair(float, float, X) { return 0; }
CUDA_FN uint32_t mma_tf32(float) { return 0; }

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
CUDA_FN void mma_add_words(mma_c &c, const mma_a &a, const mma_b &b, float)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
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

CUDA_FN uint32_t mma_pair(float low, float high, cuda_f16)
{
    uint32_t w;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
    return w;
}
CUDA_FN uint32_t mma_pair(float low, float high, cuda_bf16)
{
    uint32_t w;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
    return w;
}
CUDA_FN uint32_t mma_tf32(float x)
{
    uint32_t w;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));
    return w;
}

#endif

/* Results, rounded, as the operand a of another product: two neighboring blocks of 8 columns of halves
 * (mma_again), or one of floats. */
template <class X> CUDA_FN mma_a mma_again(const mma_c *c)
{
    return {{mma_pair(c[0].v[0], c[0].v[1], X()), mma_pair(c[0].v[2], c[0].v[3], X()),
             mma_pair(c[1].v[0], c[1].v[1], X()), mma_pair(c[1].v[2], c[1].v[3], X())}};
}
template <> CUDA_MEMBER mma_a mma_again<float>(const mma_c *c)
{
    return {{mma_tf32(c->v[0]), mma_tf32(c->v[2]), mma_tf32(c->v[1]), mma_tf32(c->v[3])}};
}

#endif
