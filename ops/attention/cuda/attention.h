/* The attention problem, with mask and dropout, for all kernels of attention on a GPU, and the tiles in
 * shared memory of those without tensor cores. There a block has TS × TS threads; thread (ty, tx) computes
 * rows ty, ty + TS … and columns tx, tx + TS … of a tile. */
#ifndef PROA_OPS_ATTENTION_CUDA_ATTENTION_H
#define PROA_OPS_ATTENTION_CUDA_ATTENTION_H

#include "devices/cuda/kernel.h"

#include "core/philox.h"

/* Tensors are [batch, length, heads, size], lse [batch, heads, queries]; size ≤ the kernel's D. */
struct attention_problem {
    proa_dtype dtype;
    const char *q, *k, *v, *mask; /* mask NULL: none */
    int64_t mask_stride[4];
    int64_t batch, queries, keys, heads, kv_heads, group, size, value_size;
    double scale, kept_scale;
    bool causal, drop;
    uint32_t threshold;
    const int64_t *seed;  /* of the device: seed and offset of the stream */
    const uint32_t *kept; /* one bit per weight, 1 if dropout keeps it; rows of `words`. NULL: ask keeps() */
    int64_t words;

    __device__ __forceinline__ int64_t q_row(int64_t b, int64_t h, int64_t i) const
    {
        return (b * queries + i) * heads + h;
    }
    __device__ __forceinline__ int64_t k_row(int64_t b, int64_t h, int64_t j) const
    {
        return (b * keys + j) * kv_heads + h;
    }
    __device__ __forceinline__ int64_t lse_at(int64_t b, int64_t h, int64_t i) const
    {
        return (b * heads + h) * queries + i;
    }
    /* End of the range of keys that query i sees (causal mask). */
    __device__ __forceinline__ int64_t visible(int64_t i) const
    {
        int64_t end = causal ? i + 1 + keys - queries : keys;
        return end < 0 ? 0 : end > keys ? keys : end;
    }
    /* True if dropout keeps a weight: 16 bits of the Philox stream per element (kernels/philox16.h). */
    __device__ __forceinline__ bool keeps(int64_t b, int64_t h, int64_t i, int64_t j) const
    {
        if (!drop) return true;
        uint64_t at = (uint64_t)(lse_at(b, h, i) * keys + j);
        proa__philox_block r = proa__philox((uint64_t)seed[0], (uint64_t)seed[1] + at / 8);
        uint32_t low = at & 2 ? r.v[1] : r.v[0], high = at & 2 ? r.v[3] : r.v[2];
        return ((at & 4 ? high : low) >> (at % 2 * 16) & 0xffffu) >= threshold;
    }
};

/* Loads n rows of `size` elements, row r at base + row(first + r) · size, multiplied by `by`, into a tile of
 * R rows of D elements, padded with zeros. STEP: stride of the tile's rows. */
template <class X, class A, int R, int D, int STEP, class F>
CUDA_FN void attention_load(A *tile, const char *base, int64_t n, int64_t size, A by, F row)
{
    const X *from = (const X *)(const void *)base;
    for (int i = (int)threadIdx.x; i < R * D; i += (int)blockDim.x) {
        int r = i / D, d = i % D;
        tile[r * STEP + d] = r < n && d < size ? cuda_cast<A>(from[row(r) * size + d]) * by : (A)0;
    }
}

/* s[r][c] = Σ_d a[row r][d] · b[row c][d] of this thread's rows of a and b. */
template <class A, int RA, int RB, int TS, int D, int STEP_A, int STEP_B>
CUDA_FN void attention_dot(A (&s)[RA][RB], const A *a, const A *b)
{
    int ty = (int)threadIdx.x / TS, tx = (int)threadIdx.x % TS;
#pragma unroll
    for (int r = 0; r < RA; r++)
#pragma unroll
        for (int e = 0; e < RB; e++) s[r][e] = 0;
#pragma unroll 4
    for (int d = 0; d < D; d++) {
        A x[RA], y[RB];
#pragma unroll
        for (int r = 0; r < RA; r++) x[r] = a[(ty + r * TS) * STEP_A + d];
#pragma unroll
        for (int e = 0; e < RB; e++) y[e] = b[(tx + e * TS) * STEP_B + d];
#pragma unroll
        for (int r = 0; r < RA; r++)
#pragma unroll
            for (int e = 0; e < RB; e++) s[r][e] += x[r] * y[e];
    }
}

/* out[r][c] += Σ_j p(row r, j) · b[j][column c], for j < N; p has PR between rows and PJ between j. */
template <class A, int RA, int RD, int TS, int N, int PR, int PJ, int STEP_B>
CUDA_FN void attention_add(A (&out)[RA][RD], const A *p, const A *b)
{
    int ty = (int)threadIdx.x / TS, tx = (int)threadIdx.x % TS;
#pragma unroll 4
    for (int j = 0; j < N; j++) {
        A x[RA];
#pragma unroll
        for (int r = 0; r < RA; r++) x[r] = p[(ty + r * TS) * PR + j * PJ];
#pragma unroll
        for (int e = 0; e < RD; e++) {
            A y = b[j * STEP_B + tx + e * TS];
#pragma unroll
            for (int r = 0; r < RA; r++) out[r][e] += x[r] * y;
        }
    }
}

/* The value that a mask adds to a score; −∞ where query i does not see key j. */
template <class X, class A>
CUDA_FN A attention_mask(const attention_problem &w, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (i >= w.queries || j >= w.visible(i)) return (A)-INFINITY;
    if (!w.mask) return 0;
    return cuda_cast<A>(((const X *)(const void *)w.mask)[b * w.mask_stride[0] + h * w.mask_stride[1] +
                                                          i * w.mask_stride[2] + j * w.mask_stride[3]]);
}

/* Describes the problem for forward and backward; seed: in device memory, or NULL. */
static inline attention_problem attention_of(const proa_tensor *query, const proa_tensor *key,
                                             const proa_tensor *value, const proa_tensor *mask, double p,
                                             bool causal, const int64_t *seed)
{
    cuda_tensor q = cuda_look(query), k = cuda_look(key), v = cuda_look(value);
    attention_problem w = {q.dtype, q.data, k.data, v.data};
    w.batch = q.shape[0], w.queries = q.shape[1], w.keys = k.shape[1];
    w.heads = q.shape[2], w.kv_heads = k.shape[2], w.group = w.kv_heads ? w.heads / w.kv_heads : 1;
    w.size = q.shape[3], w.value_size = v.shape[3];
    w.scale = w.size > 0 ? 1 / sqrt((double)w.size) : 1;
    w.kept_scale = p < 1 ? 1 / (1 - p) : 0;
    w.causal = causal;
    w.drop = p > 0;
    w.threshold = (uint32_t)(p * 65536.0 + 0.5);
    w.seed = seed;
    if (!cuda_given(mask)) return w;
    cuda_tensor m = cuda_look(mask);
    w.mask = m.data;
    for (int64_t i = 3, step = 1, at = m.ndim - 1; i >= 0; i--, at--) {
        int64_t n = at >= 0 ? m.shape[at] : 1;
        w.mask_stride[i] = n == 1 ? 0 : step;
        step *= n;
    }
    return w;
}

static inline proa_status attention_clear(cuda_context *c, const proa_tensor *t)
{
    static const uint64_t zero = 0;
    cuda_tensor f = cuda_look(t);
    return cuda_fill(c, f.data, &zero, (size_t)cuda_item(f.dtype), f.numel);
}

/* Largest head size that has a tile. */
enum { ATTENTION_MAX = 256 };
static inline bool attention_fits(const proa_tensor *q, const proa_tensor *v)
{
    cuda_tensor a = cuda_look(q), b = cuda_look(v);
    return CUDA_FLOATS >> a.dtype & 1 && a.shape[3] <= ATTENTION_MAX && b.shape[3] <= ATTENTION_MAX;
}

#endif
