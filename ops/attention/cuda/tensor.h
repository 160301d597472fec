/* Shared parts of the tensor-core attention kernels for float16, bfloat16 and, as TF32, float32. A warp keeps
 * 16 M rows of one operand and loops over the tiles of the other, which are copied to shared memory one tile
 * ahead; rows there are 16 bytes longer than D elements against bank conflicts. May use devices/cuda. */
#ifndef PROA_OPS_ATTENTION_CUDA_TENSOR_H
#define PROA_OPS_ATTENTION_CUDA_TENSOR_H

#include "devices/cuda/approximate.h"
#include "devices/cuda/async.h"
#include "devices/cuda/mma.h"
#include "ops/attention/cuda/attention.h"

/* Elements from a row of a tile of D columns to the next. */
template <class X, int D> struct tensor_step {
    enum { value = D + mma_of<X>::PACK };
};

/* The rows that belong to one batch entry and one head: row r at `at` + r · pitch, `size` elements. quick:
 * rows are multiples of 16 bytes, and aligned. */
template <class X> struct tensor_rows {
    const X *at;
    int pitch, size;
    bool quick;
};
template <class X>
CUDA_FN tensor_rows<X> tensor_rows_of(const char *base, int64_t first, int64_t heads, int64_t size,
                                      bool quick)
{
    return {(const X *)(const void *)base + first * size, (int)(heads * size), (int)size, quick};
}

/* Division of a tile of D columns among THREADS threads: each has 16 bytes of every ROWS-th row. */
template <class X, int D, int THREADS> struct tensor_share {
    enum { V = mma_of<X>::PACK, C = D / V, ROWS = THREADS / C };
    int row, column;
    bool any;
    CUDA_MEMBER tensor_share()
        : row((int)threadIdx.x / C), column((int)threadIdx.x % C * V), any(THREADS % C == 0 || row < ROWS)
    {
    }
};

/* Rows first … first + R − 1 into a tile of D columns; from row `end` on, and behind `size`, zeros. Complete
 * after async_wait and a barrier. */
template <int R, int D, int THREADS, class X>
CUDA_FN void tensor_fetch(X *tile, const tensor_rows<X> &of, int64_t first, int64_t end)
{
    typedef tensor_share<X, D, THREADS> share;
    enum { ROWS = share::ROWS, STEP = tensor_step<X, D>::value };
    const X *from = of.at + first * of.pitch;
    int n = end - first < R ? (int)(end - first) : R;
    if (of.quick) {
        share me;
        tile += me.row * STEP + me.column;
        from += me.row * of.pitch + me.column;
        if (me.column >= of.size) n = 0;
#pragma unroll
        for (int k = 0; k < R; k += ROWS)
            if (me.any && (R % ROWS == 0 || me.row + k < R))
                async_copy<16>(tile + k * STEP, from + k * of.pitch, me.row + k < n);
        return;
    }
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < R * D; i += THREADS) {
        int r = i / D, d = i % D;
        tile[r * STEP + d] = r < n && d < of.size ? from[r * of.pitch + d] : X{};
    }
}

/* Rounds to TF32 what this thread fetched into a tile; halves are left alone. */
template <int R, int D, int THREADS, class X> CUDA_FN void tensor_round(X *, bool) {}
template <int R, int D, int THREADS> CUDA_FN void tensor_round(float *tile, bool quick)
{
    typedef tensor_share<float, D, THREADS> share;
    enum { ROWS = share::ROWS, STEP = tensor_step<float, D>::value };
    typedef cuda_pack<float, 4> pack;
    share me;
#pragma unroll 4
    for (int r = me.row; quick && me.any && r < R; r += ROWS) {
        pack *p = (pack *)(void *)(tile + r * STEP + me.column), x = *p;
        for (int k = 0; k < 4; k++) x.at[k] = cuda_bits_f32(mma_tf32(x.at[k]));
        *p = x;
    }
#pragma unroll 1
    for (int i = (int)threadIdx.x; !quick && i < R * D; i += THREADS) {
        float *p = tile + i / D * STEP + i % D;
        *p = cuda_bits_f32(mma_tf32(*p));
    }
}

/* Two tiles of R rows, one behind the other: rows first … of either tensor. */
template <int R, int D, int THREADS, class X>
CUDA_FN void tensor_fetch_two(X *tiles, const tensor_rows<X> &a, const tensor_rows<X> &b, int64_t first,
                              int64_t end)
{
    tensor_fetch<R, D, THREADS>(tiles, a, first, end);
    tensor_fetch<R, D, THREADS>(tiles + R * tensor_step<X, D>::value, b, first, end);
}
template <int R, int D, int THREADS, class X> CUDA_FN void tensor_round_two(X *tiles, bool quick)
{
    tensor_round<R, D, THREADS>(tiles, quick);
    tensor_round<R, D, THREADS>(tiles + R * tensor_step<X, D>::value, quick);
}

/* 16 M rows of a tile of D columns as operands: kept in registers, or read again each time. */
template <class X, int D, int M> struct tensor_kept {
    enum { K = D / mma_of<X>::DEPTH };
    mma_a all[M][K];
    CUDA_MEMBER explicit tensor_kept(const X *p)
    {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int k = 0; k < K; k++)
                all[m][k] = mma_load_a(p + m * 16 * tensor_step<X, D>::value + k * mma_of<X>::DEPTH,
                                       tensor_step<X, D>::value);
    }
    CUDA_MEMBER mma_a at(int m, int k) const { return all[m][k]; }
};
template <class X, int D, int M> struct tensor_read {
    const X *p;
    CUDA_MEMBER explicit tensor_read(const X *from) : p(from) {}
    CUDA_MEMBER mma_a at(int m, int k) const
    {
        return mma_load_a(p + m * 16 * tensor_step<X, D>::value + k * mma_of<X>::DEPTH,
                          tensor_step<X, D>::value);
    }
};
template <bool KEPT, class X, int D, int M> struct tensor_side {
    typedef tensor_kept<X, D, M> type;
};
template <class X, int D, int M> struct tensor_side<false, X, D, M> {
    typedef tensor_read<X, D, M> type;
};

/* s[m][e] = rows 16 m … of a, D wide, times rows 8 e … of the tile b, transposed. */
template <int D, class X, int M, int N, class Side>
CUDA_FN void tensor_dot(mma_c (&s)[M][N], const Side &a, const X *b)
{
    enum { STEP = tensor_step<X, D>::value };
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int e = 0; e < N; e++) s[m][e] = {};
#pragma unroll
    for (int k = 0; k < D / mma_of<X>::DEPTH; k++) {
        mma_a x[M];
#pragma unroll
        for (int m = 0; m < M; m++) x[m] = a.at(m, k);
#pragma unroll
        for (int e = 0; e < N; e += 2) {
            mma_b_two y = mma_load_b(b + e * 8 * STEP + k * mma_of<X>::DEPTH, STEP);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_add<X>(s[m][e], x[m], y.b[0]);
                mma_add<X>(s[m][e + 1], x[m], y.b[1]);
            }
        }
    }
}

/* out += p · b: p is 16 M rows of 8 N columns, b a tile of 8 N rows of D. */
template <int D, class X, int M, int N>
CUDA_FN void tensor_add(mma_c (&out)[M][D / 8], const mma_c (&p)[M][N], const X *b)
{
    enum { DEPTH = mma_of<X>::DEPTH, STEP = tensor_step<X, D>::value };
#pragma unroll
    for (int j = 0; j < N * 8 / DEPTH; j++) {
        mma_a x[M];
#pragma unroll
        for (int m = 0; m < M; m++) x[m] = mma_again<X>(p[m] + j * DEPTH / 8);
#pragma unroll
        for (int e = 0; e < D / 8; e += 2) {
            mma_b_two y = mma_load_b_rows(b + j * DEPTH * STEP + e * 8, STEP);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_add<X>(out[m][e], x[m], y.b[0]);
                mma_add<X>(out[m][e + 1], x[m], y.b[1]);
            }
        }
    }
}

/* Element i of a result: its row among 16, and its column among 8. */
CUDA_FN int tensor_row(int i) { return (int)threadIdx.x % 32 / 4 + i / 2 * 8; }
CUDA_FN int tensor_column(int i) { return (int)threadIdx.x % 4 * 2 + i % 2; }

/* Two neighboring elements as one access. */
template <class X> CUDA_FN void tensor_put(X *at, float low, float high)
{
    *(uint32_t *)(void *)at = mma_pair(low, high, X());
}
CUDA_FN void tensor_put(float *at, float low, float high)
{
    *(cuda_pack<float, 2> *)(void *)at = {{low, high}};
}

/* Stores 16 M rows of D columns, multiplied by by(m, half), from row `first` on, if they come before row
 * `end`. */
template <int D, class X, int M, class By>
CUDA_FN void tensor_store(const mma_c (&out)[M][D / 8], const tensor_rows<X> &of, int64_t first, int64_t end,
                          By by)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t r = first + m * 16 + tensor_row(2 * half);
            if (r >= end) continue;
            float scale = by(m, half);
            X *at = const_cast<X *>(of.at) + r * of.pitch;
#pragma unroll
            for (int e = 0; e < D / 8; e++) {
                int d = e * 8 + tensor_column(0);
                float low = out[m][e].v[2 * half] * scale, high = out[m][e].v[2 * half + 1] * scale;
                if (of.quick && d < of.size) tensor_put(at + d, low, high);
                if (!of.quick && d < of.size) at[d] = cuda_cast<X>(low);
                if (!of.quick && d + 1 < of.size) at[d + 1] = cuda_cast<X>(high);
            }
        }
}

/* A warp's scores: rows from i0 on, of queries, and columns from j0 on, of keys; TURNED: rows are keys. */
template <bool TURNED> struct tensor_scores {
    int64_t b, h, i0, j0;

    CUDA_MEMBER int query(int row, int column) const { return TURNED ? column : row; }
    CUDA_MEMBER int key(int row, int column) const { return TURNED ? row : column; }
    /* True if each of `queries` queries sees all of `keys` keys. */
    CUDA_MEMBER bool open(const attention_problem &w, int queries, int keys) const
    {
        return i0 + queries <= w.queries && j0 + keys <= w.visible(i0);
    }
};

CUDA_FN int tensor_clip(int64_t n) { return n < -4096 ? -4096 : n > 4096 ? 4096 : (int)n; }

/* v, of which the compiler is not to know that it is the same in every tile: what is made of it in a branch
 * that is rarely taken must not occupy registers elsewhere. */
CUDA_FN int64_t tensor_anew(int64_t v)
{
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+l"(v));
#endif
    return v;
}

/* Adds the mask, divided by the scale, to scores q · k. */
template <class X, bool TURNED, int M, int N>
CUDA_FN void tensor_mask(const attention_problem &w, const tensor_scores<TURNED> &at, mma_c (&s)[M][N])
{
    int queries = tensor_clip(w.queries - at.i0), keys = tensor_clip(w.keys - at.j0);
    int64_t of_query = tensor_anew(w.mask_stride[2]), of_key = tensor_anew(w.mask_stride[3]);
    const X *mask = (const X *)(const void *)w.mask + at.b * w.mask_stride[0] + at.h * w.mask_stride[1] +
                    at.i0 * of_query + at.j0 * of_key;
    float inverse = 1 / (float)w.scale;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int e = 0; e < N; e++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                int row = m * 16 + tensor_row(c), column = e * 8 + tensor_column(c);
                int i = at.query(row, column), j = at.key(row, column);
                if (i < queries && j < keys)
                    s[m][e].v[c] += cuda_cast<float>(mask[i * of_query + j * of_key]) * inverse;
            }
}

/* Sets to −∞ the scores of queries and keys that there are not, and of keys that a query does not see. */
template <bool TURNED, int M, int N>
CUDA_FN void tensor_hide(const attention_problem &w, const tensor_scores<TURNED> &at, mma_c (&s)[M][N])
{
    int queries = tensor_clip(w.queries - at.i0), keys = tensor_clip(w.keys - at.j0);
    int ahead = w.causal ? tensor_clip(at.i0 + w.keys - w.queries - at.j0) : 8192;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int e = 0; e < N; e++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                int row = m * 16 + tensor_row(c), column = e * 8 + tensor_column(c);
                int i = at.query(row, column), j = at.key(row, column);
                if (i >= queries || j >= keys || j > i + ahead) s[m][e].v[c] = -INFINITY;
            }
}

/* Calls drop(m, e, c) for each element of the scores that dropout does not keep: by the bits of w.kept, which
 * a lane reads by words of 32 keys, or without them by its own random numbers. */
template <bool TURNED, int M, int N, class Drop>
CUDA_FN void tensor_drop_slowly(const attention_problem &w, const tensor_scores<TURNED> &at, Drop drop)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int e = 0; e < N; e++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                int row = m * 16 + tensor_row(c), column = e * 8 + tensor_column(c);
                if (!w.keeps(at.b, at.h, at.i0 + at.query(row, column), at.j0 + at.key(row, column)))
                    drop(m, e, c);
            }
}
template <int M, int N, class Drop>
CUDA_FN void tensor_drop(const attention_problem &w, const tensor_scores<false> &at, Drop drop)
{
    if (!w.kept) return tensor_drop_slowly<false, M, N>(w, at, drop);
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t i = at.i0 + m * 16 + tensor_row(2 * half);
            const uint32_t *row = w.kept + w.lse_at(at.b, at.h, i) * w.words + at.j0 / 32;
            int shift = tensor_column(0) + (N < 4 ? (int)(at.j0 % 32) : 0);
#pragma unroll
            for (int q = 0; q < (N + 3) / 4; q++) {
                uint32_t bits = i < w.queries && at.j0 + 32 * q < w.keys ? row[q] >> shift : 0;
#pragma unroll
                for (int k = 0; k < (N < 4 ? 2 * N : 8); k++)
                    if (!(bits >> (k / 2 * 8 + k % 2) & 1)) drop(m, 4 * q + k / 2, 2 * half + k % 2);
            }
        }
}
template <int M, int N, class Drop>
CUDA_FN void tensor_drop(const attention_problem &w, const tensor_scores<true> &at, Drop drop)
{
    if (!w.kept) return tensor_drop_slowly<true, M, N>(w, at, drop);
#pragma unroll
    for (int e = 0; e < N; e++)
#pragma unroll
        for (int c = 0; c < 2; c++) {
            int64_t i = at.i0 + e * 8 + tensor_column(c);
            const uint32_t *row = w.kept + w.lse_at(at.b, at.h, i) * w.words;
#pragma unroll
            for (int m = 0; m < M; m++) {
                int64_t j = at.j0 + m * 16;
                uint32_t bits = i < w.queries && j < w.keys ? row[j / 32] >> (j % 32 + tensor_row(0)) : 0;
#pragma unroll
                for (int half = 0; half < 2; half++)
                    if (!(bits >> (8 * half) & 1)) drop(m, e, 2 * half + c);
            }
        }
}

/* exp is computed as 2^x, for which GPUs have an instruction: factor of scores q · k. */
constexpr float TENSOR_LOG2E = 1.44269504f, TENSOR_LN2 = 0.69314718f;
CUDA_FN float tensor_unit(const attention_problem &w) { return (float)w.scale * TENSOR_LOG2E; }

/* Whether rows may be accessed 16 bytes at a time. */
static inline bool tensor_quick(const attention_problem &w, const void *a, const void *b, const void *c,
                                const void *d)
{
    int64_t pack = 16 / cuda_item(w.dtype);
    return w.size % pack == 0 && w.value_size % pack == 0 &&
           ((uintptr_t)w.q | (uintptr_t)w.k | (uintptr_t)w.v | (uintptr_t)a | (uintptr_t)b | (uintptr_t)c |
            (uintptr_t)d) %
                   16 ==
               0;
}

/* Numbers of tiles of `rows` rows, and of blocks of a grid: `each` times as many. */
static inline proa_status tensor_grid(int64_t n, int rows, int64_t each, int64_t *tiles, unsigned *blocks)
{
    *tiles = (n + rows - 1) / rows;
    *blocks = (unsigned)(*tiles * each);
    if (*tiles * each <= INT32_MAX) return PROA_OK;
    return cuda_fail(
        PROA_ERR_OVERFLOW,
        "scaled_dot_product_attention: has %lld blocks of queries or keys; a GPU takes 2147483647",
        (long long)(*tiles * each));
}

/* Largest head size on tensor cores; the other kernels take larger heads, float32 unless FLAGS_allow_tf32 is
 * on, float64 and old GPUs. */
enum { TENSOR_MAX = 128 };
static inline bool tensor_fits(const cuda_context *c, const attention_problem &w)
{
    int64_t size = w.size > w.value_size ? w.size : w.value_size;
    bool type = CUDA_HALVES >> w.dtype & 1 || (w.dtype == PROA_F32 && cuda_flag("allow_tf32"));
    return type && size <= TENSOR_MAX && w.heads * size < 1 << 20 && mma_can(c);
}

/* Makes w->kept in scratch memory, which the caller frees. Without dropout, or if that would take more than
 * ATTENTION_KEPT_WORDS words, it remains NULL. The emulator has few, so that tests see both. */
#if defined(CUDA_EMULATED)
enum { ATTENTION_KEPT_WORDS = 1000 };
#else
enum { ATTENTION_KEPT_WORDS = 64 << 20 };
#endif
proa_status attention_make_kept(cuda_context *c, attention_problem *w, void **scratch);

/* Launch the kernels of tensor.cu and tensor_grad.cu. */
proa_status attention_tensor(cuda_context *c, const attention_problem &w, const proa_tensor *out,
                             const proa_tensor *lse);
proa_status attention_tensor_grad(cuda_context *c, const attention_problem &w,
                                  const proa_scaled_dot_product_attention_grad_args *a);

#endif
