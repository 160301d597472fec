/* Shared parts of the tensor-core attention kernels for float16 and bfloat16. A block has four warps, each
 * with 16 rows of the tile that the block keeps, and loops over the tiles of the other operand; rows in
 * shared memory are D + 8 elements apart, which avoids bank conflicts. May use devices/cuda. */
#ifndef PROA_OPS_ATTENTION_CUDA_TENSOR_H
#define PROA_OPS_ATTENTION_CUDA_TENSOR_H

#include "devices/cuda/mma.h"
#include "ops/attention/cuda/attention.h"

enum { TENSOR_WARPS = 4, TENSOR_ROWS = 16 * TENSOR_WARPS, TENSOR_THREADS = 32 * TENSOR_WARPS };

/* Number of rows of the next tile if `left` rows remain. */
CUDA_FN int64_t tensor_rows(int64_t left)
{
    return left < (int64_t)TENSOR_ROWS ? left : (int64_t)TENSOR_ROWS;
}

/* n rows of `size` halves, row r at base + row(r) · size, into a tile of R rows of D, and zeros around.
 * quick: rows are multiples of 16 bytes, and aligned. */
template <class X, int R, int D, class F>
CUDA_FN void tensor_load(X *tile, const char *base, int64_t n, int64_t size, bool quick, F row)
{
    const X *from = (const X *)(const void *)base;
    typedef cuda_pack<X, 8> pack;
    if (quick) {
        for (int i = (int)threadIdx.x; i < R * D / 8; i += TENSOR_THREADS) {
            int r = i / (D / 8), d = i % (D / 8) * 8;
            *(pack *)(void *)(tile + r * (D + 8) + d) =
                r < n && d < size ? *(const pack *)(const void *)(from + row(r) * size + d) : pack{};
        }
        return;
    }
    for (int i = (int)threadIdx.x; i < R * D; i += TENSOR_THREADS) {
        int r = i / D, d = i % D;
        tile[r * (D + 8) + d] = r < n && d < size ? from[row(r) * size + d] : X{};
    }
}

/* 16 rows of a tile of rows of D as operands: kept in registers, or read again each time. */
template <class X, int D> struct tensor_kept {
    mma_a at[D / 16];
    CUDA_MEMBER explicit tensor_kept(const X *p)
    {
#pragma unroll
        for (int k = 0; k < D / 16; k++) at[k] = mma_load_a(p + k * 16, D + 8);
    }
    CUDA_MEMBER mma_a operator[](int k) const { return at[k]; }
};
template <class X, int D> struct tensor_read {
    const X *p;
    CUDA_MEMBER explicit tensor_read(const X *from) : p(from) {}
    CUDA_MEMBER mma_a operator[](int k) const { return mma_load_a(p + k * 16, D + 8); }
};

/* s[e] = a (16 rows, D wide) times rows 8e ... 8e + 7 of the tile b, transposed. */
template <class X, int N, int D, class Side> CUDA_FN void tensor_dot(mma_c (&s)[N], const Side &a, const X *b)
{
#pragma unroll
    for (int e = 0; e < N; e++) s[e] = {};
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        mma_a x = a[k];
#pragma unroll
        for (int e = 0; e < N; e += 2) {
            mma_b_two y = mma_load_b(b + e * 8 * (D + 8) + k * 16, D + 8);
            mma_add<X>(s[e], x, y.b[0]);
            mma_add<X>(s[e + 1], x, y.b[1]);
        }
    }
}

/* out += p . b: p is 16 rows of 8 N columns, b a tile of 8 N rows of D. */
template <class X, int N, int D> CUDA_FN void tensor_add(mma_c (&out)[D / 8], const mma_c (&p)[N], const X *b)
{
#pragma unroll
    for (int j = 0; j < N / 2; j++) {
        mma_a x = mma_again<X>(p[2 * j], p[2 * j + 1]);
#pragma unroll
        for (int e = 0; e < D / 8; e += 2) {
            mma_b_two y = mma_load_b_rows(b + j * 16 * (D + 8) + e * 8, D + 8);
            mma_add<X>(out[e], x, y.b[0]);
            mma_add<X>(out[e + 1], x, y.b[1]);
        }
    }
}

/* Position of element i of a result: its row among the warp's 16, its column among 8. */
CUDA_FN int tensor_row(int i) { return (int)threadIdx.x % 32 / 4 + i / 2 * 8; }
CUDA_FN int tensor_column(int i) { return (int)threadIdx.x % 4 * 2 + i % 2; }

/* Stores the warp's 16 rows, multiplied by `by`, to rows of `size` at to + row(r) · size, for r < n in the
 * block. */
template <class X, int D, class F, class By>
CUDA_FN void tensor_store(const mma_c (&out)[D / 8], X *to, int64_t n, int64_t size, By by, F row)
{
    int first = (int)threadIdx.x / 32 * 16;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int r = first + tensor_row(i);
        if (r >= n) continue;
        float scale = by(i / 2);
        X *at = to + row(r) * size;
#pragma unroll
        for (int e = 0; e < D / 8; e++) {
            int d = e * 8 + tensor_column(i);
            if (d < size) at[d] = cuda_cast<X>(out[e].v[i] * scale);
        }
    }
}

/* exp is computed as 2^x, for which GPUs have an instruction, so scores are in units of ln 2. */
constexpr float TENSOR_LOG2E = 1.44269504f, TENSOR_LN2 = 0.69314718f;
CUDA_FN float tensor_unit(const attention_problem &w) { return (float)w.scale * TENSOR_LOG2E; }
template <class X>
CUDA_FN float tensor_mask(const attention_problem &w, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return attention_mask<X, float>(w, b, h, i, j) * TENSOR_LOG2E;
}

/* True if tensor_load may use 16-byte accesses. */
static inline bool tensor_quick(const attention_problem &w, const void *more)
{
    return w.size % 8 == 0 && w.value_size % 8 == 0 &&
           ((uintptr_t)w.q | (uintptr_t)w.k | (uintptr_t)w.v | (uintptr_t)more) % 16 == 0;
}

/* Largest head size on tensor cores, for half types; the other kernels take larger heads, float32, float64
 * and old GPUs. */
enum { TENSOR_MAX = 128 };
static inline bool tensor_fits(const cuda_context *c, const attention_problem &w)
{
    return CUDA_HALVES >> w.dtype & 1 && w.size <= TENSOR_MAX && w.value_size <= TENSOR_MAX && mma_can(c);
}

/* Launch the kernels of tensor.cu. delta: Σ d_out · out of every query and head, from the caller. */
proa_status attention_tensor(cuda_context *c, const attention_problem &w, const proa_tensor *out,
                             const proa_tensor *lse);
proa_status attention_tensor_grad(cuda_context *c, const attention_problem &w,
                                  const proa_scaled_dot_product_attention_grad_args *a, const float *delta);

#endif
