/* Attention forward on tensor cores, after FlashAttention-2 (Dao, 2023). Softmax weights stay in the
 * registers of the lanes that computed them, as an operand of the next product; the matrix queries × keys is
 * never stored. */
#include "ops/attention/cuda/tensor.h"

/* Tiles of the kernel: W warps of 16 M queries, BK keys. The queries are kept in registers; they come by way
 * of the second stage, or of memory of their own if that is too small. */
template <class X, int DIM, int KEYS, int TIMES, int W> struct forward_tiles {
    enum { D = DIM, BK = KEYS, M = TIMES, THREADS = 32 * W, BQ = 16 * M * W };
    enum { STEP = tensor_step<X, D>::value, STAGE = 2 * BK * STEP, OWN = BQ > 2 * BK };
    enum { QUERIES = (OWN ? 2 : 1) * STAGE, BYTES = (2 * STAGE + OWN * BQ * STEP) * (int)sizeof(X) };
    static_assert(BYTES <= 99 << 10, "more shared memory than some GPUs have");
};

/* Statistics of the softmax of 16 M rows, of which a lane has 2 M: maximum of the scores and sum of the
 * lane's weights. */
template <int M> struct forward_rows {
    float top[M][2], sum[M][2];
};

/* Scores to softmax weights, relative to the maximum so far; what was added before shrinks. */
template <int M, int N, int E>
CUDA_FN void forward_softmax(forward_rows<M> &of, mma_c (&s)[M][N], mma_c (&out)[M][E], float unit)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float here = of.top[m][half];
#pragma unroll
            for (int e = 0; e < N; e++)
                here = fmaxf(here, fmaxf(s[m][e].v[2 * half], s[m][e].v[2 * half + 1]));
            here = fmaxf(here, cuda_shuffle_xor(here, 1));
            here = fmaxf(here, cuda_shuffle_xor(here, 2));
            float least = here == -INFINITY ? 0.0f : here * unit; /* sees nothing so far: weights of 0 */
            float shrink = cuda_approximate_exp2(of.top[m][half] * unit - least),
                  sum = of.sum[m][half] * shrink;
#pragma unroll
            for (int e = 0; e < N; e++)
#pragma unroll
                for (int c = 2 * half; c < 2 * half + 2; c++) {
                    s[m][e].v[c] = cuda_approximate_exp2(s[m][e].v[c] * unit - least);
                    sum += s[m][e].v[c];
                }
#pragma unroll
            for (int e = 0; e < E; e++) {
                out[m][e].v[2 * half] *= shrink;
                out[m][e].v[2 * half + 1] *= shrink;
            }
            of.top[m][half] = here;
            of.sum[m][half] = sum;
        }
}

/* A block computes BQ queries of one head. Of a causal problem the last queries, which see most keys, come
 * first. PLAIN: without a mask and dropout. */
template <class X, class T, bool PLAIN>
__global__ void __launch_bounds__(T::THREADS, 256 / T::THREADS)
    attention_tensor_kernel(attention_problem w, X *to, float *lse, int64_t blocks, bool quick)
{
    enum { D = T::D, BK = T::BK, M = T::M, N = BK / 8, THREADS = T::THREADS, WARP = 16 * M };
    X *memory = (X *)(void *)cuda_shared();
    int64_t item = blockIdx.x, q0 = (blocks - 1 - cuda_split(item, blocks)) * T::BQ,
            h = cuda_split(item, w.heads), b = item, kvh = cuda_div(h, w.group);
    int64_t last = q0 + T::BQ < w.queries ? q0 + T::BQ : w.queries, end = w.visible(last - 1);
    auto k = tensor_rows_of<X>(w.k, w.k_row(b, kvh, 0), w.kv_heads, w.size, quick);
    auto v = tensor_rows_of<X>(w.v, w.k_row(b, kvh, 0), w.kv_heads, w.value_size, quick);
    auto fetch = [&](int64_t k0, int stage) {
        tensor_fetch_two<BK, D, THREADS>(memory + stage * T::STAGE, k, v, k0, end);
        async_close();
    };
    tensor_fetch<T::BQ, D, THREADS>(
        memory + T::QUERIES, tensor_rows_of<X>(w.q, w.q_row(b, h, 0), w.heads, w.size, quick), q0, last);
    async_close();
    fetch(0, 0);
    async_wait<1>();
    tensor_round<T::BQ, D, THREADS>(memory + T::QUERIES, quick);
    __syncthreads();
    int first = (int)threadIdx.x / 32 * WARP;
    tensor_kept<X, D, M> q(memory + T::QUERIES + first * T::STEP);
    tensor_scores<false> at = {b, h, q0 + first, 0};
    int64_t mine = w.visible(at.i0 + WARP < last ? at.i0 + WARP - 1 : last - 1);
    mma_c out[M][D / 8] = {};
    forward_rows<M> rows;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) rows.top[m][half] = -INFINITY, rows.sum[m][half] = 0;
    int stage = 0;
    for (at.j0 = 0; at.j0 < end; at.j0 += BK, stage ^= 1) {
        const X *tile = memory + stage * T::STAGE;
        async_wait<0>();
        tensor_round_two<BK, D, THREADS>(memory + stage * T::STAGE, quick);
        __syncthreads();
        if (at.j0 + BK < end) fetch(at.j0 + BK, stage ^ 1);
        if (at.j0 >= mine) continue;
        mma_c s[M][N];
        tensor_dot<D>(s, q, tile);
        if (!PLAIN && w.mask) tensor_mask<X>(w, at, s);
        if (!at.open(w, WARP, BK)) tensor_hide(w, at, s);
        forward_softmax(rows, s, out, tensor_unit(w));
        if (!PLAIN && w.drop) tensor_drop<M, N>(w, at, [&](int m, int e, int c) { s[m][e].v[c] = 0; });
        tensor_add<D>(out, s, tile + T::STAGE / 2);
    }
    async_wait<0>(); /* where no key is seen, the first tile is still under way */
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float &sum = rows.sum[m][half];
            sum += cuda_shuffle_xor(sum, 1);
            sum += cuda_shuffle_xor(sum, 2);
            int64_t i = at.i0 + m * 16 + tensor_row(2 * half);
            if (threadIdx.x % 4 == 0 && i < last) /* a query that sees no key has no weight in backward */
                lse[w.lse_at(b, h, i)] =
                    sum == 0 ? (float)INFINITY : rows.top[m][half] * (float)w.scale + logf(sum);
        }
    float kept = !PLAIN && w.drop ? (float)w.kept_scale : 1.0f;
    tensor_store<D>(
        out, tensor_rows_of<X>((const char *)to, w.q_row(b, h, 0), w.heads, w.value_size, quick), at.i0, last,
        [&](int m, int half) { return rows.sum[m][half] == 0 ? 0.0f : kept / rows.sum[m][half]; });
}

template <class X, class T, bool PLAIN>
static proa_status forward(cuda_context *c, const attention_problem &w, const proa_tensor *out,
                           const proa_tensor *lse)
{
    int64_t tiles;
    unsigned blocks;
    char *to = cuda_look(out).data;
    PROA_TRY(tensor_grid(w.queries, T::BQ, w.heads * w.batch, &tiles, &blocks));
    return cuda_launch_shared(c, blocks, T::THREADS, T::BYTES, (attention_tensor_kernel<X, T, PLAIN>), w,
                              (X *)(void *)to, cuda_look(lse).as<float>(), tiles,
                              tensor_quick(w, to, NULL, NULL, NULL));
}

/* Chooses the tiles by the larger of the two head sizes; floats are twice as large. */
template <class X, bool PLAIN>
static proa_status by_size(cuda_context *c, const attention_problem &w, const proa_tensor *out,
                           const proa_tensor *lse)
{
    enum { WIDE = sizeof(X) == 4, SOME = WIDE ? 32 : 64, M = PLAIN ? 2 : 1, W = PLAIN && !WIDE ? 8 : 4 };
    int64_t size = w.size > w.value_size ? w.size : w.value_size;
    if (size <= 32) return forward<X, forward_tiles<X, 32, 64, M, 4>, PLAIN>(c, w, out, lse);
    if (size <= 64) return forward<X, forward_tiles<X, 64, SOME, M, 4>, PLAIN>(c, w, out, lse);
    if (size <= 96) return forward<X, forward_tiles<X, 96, SOME, 1, W>, PLAIN>(c, w, out, lse);
    return forward<X, forward_tiles<X, 128, PLAIN ? SOME : 32, 1, W>, PLAIN>(c, w, out, lse);
}

template <class X>
static proa_status by_kind(cuda_context *c, const attention_problem &w, const proa_tensor *out,
                           const proa_tensor *lse)
{
    return w.mask || w.drop ? by_size<X, false>(c, w, out, lse) : by_size<X, true>(c, w, out, lse);
}

proa_status attention_tensor(cuda_context *c, const attention_problem &of, const proa_tensor *out,
                             const proa_tensor *lse)
{
    attention_problem w = of;
    void *kept;
    proa_status status = attention_make_kept(c, &w, &kept);
    if (status == PROA_OK)
        status = w.dtype == PROA_F32   ? by_kind<float>(c, w, out, lse)
                 : w.dtype == PROA_F16 ? by_kind<cuda_f16>(c, w, out, lse)
                                       : by_kind<cuda_bf16>(c, w, out, lse);
    if (kept) cuda_scratch_free(c, kept);
    return status;
}
