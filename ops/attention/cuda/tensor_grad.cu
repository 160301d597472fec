/* Attention backward on tensor cores. Softmax weights are recomputed from each query's log-sum-exp; one
 * kernel loops over the queries for dK and dV, another over the keys for dQ, so there are no atomics and
 * results are bitwise reproducible. */
#include "ops/attention/cuda/tensor.h"

/* Statistics of a query: its log-sum-exp in units of ln 2, and Σ d_out · out. */
struct alignas(8) tensor_query {
    float lse, delta;
};

/* Makes the statistics of all queries; eight lanes share a query. */
template <class X>
__global__ void attention_tensor_delta_kernel(attention_problem w, const X *out, const X *d_out,
                                              const float *lse, tensor_query *to, bool quick)
{
    enum { V = mma_of<X>::PACK };
    int64_t rows = w.batch * w.queries * w.heads, size = w.value_size;
    for (CUDA_ROWS(8, row, (rows + 3) / 4 * 4)) { /* whole warps */
        int lane = (int)threadIdx.x % 8;
        const X *a = out + row * size, *b = d_out + row * size;
        float sum = 0;
        for (int64_t d = lane * V; quick && row < rows && d < size; d += 8 * V) {
            float x[V], y[V];
            cuda_take<V>(a + d, x);
            cuda_take<V>(b + d, y);
            for (int k = 0; k < V; k++) sum += x[k] * y[k];
        }
        for (int64_t d = lane; !quick && row < rows && d < size; d += 8)
            sum += cuda_cast<float>(a[d]) * cuda_cast<float>(b[d]);
        for (int by = 1; by < 8; by *= 2) sum += cuda_shuffle_xor(sum, by);
        if (lane != 0 || row >= rows) continue;
        int64_t b_i = row, h = cuda_split(b_i, w.heads), i = cuda_split(b_i, w.queries);
        int64_t at = w.lse_at(b_i, h, i);
        to[at] = {lse[at] * TENSOR_LOG2E, sum};
    }
}

/* Scores q · k to softmax weights, and d_out · v to the gradients of the scores. of(m, e, c): statistics of
 * the query of an element. */
template <bool PLAIN, bool TURNED, int M, int N, class Of>
CUDA_FN void grad_weights(const attention_problem &w, const tensor_scores<TURNED> &at, mma_c (&p)[M][N],
                          mma_c (&ds)[M][N], Of of)
{
    float unit = tensor_unit(w), kept = !PLAIN && w.drop ? (float)w.kept_scale : 1.0f;
    uint32_t dropped[M][(N + 7) / 8] = {}; /* four bits per block of eight columns */
    if (!PLAIN && w.drop)
        tensor_drop<M, N>(w, at, [&](int m, int e, int c) { dropped[m][e / 8] |= 1u << (e % 8 * 4 + c); });
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int e = 0; e < N; e++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const tensor_query query = of(m, e, c);
                float weight = cuda_approximate_exp2(p[m][e].v[c] * unit - query.lse);
                float factor = dropped[m][e / 8] >> (e % 8 * 4 + c) & 1 ? 0.0f : kept;
                p[m][e].v[c] = weight * factor;
                ds[m][e].v[c] = weight * (ds[m][e].v[c] * factor - query.delta);
            }
}

/* Tiles of the two kernels: W warps of 16 M rows that stay, in registers or (KEPT false) in shared memory,
 * and LOOP rows that pass. */
template <class X, int DIM, int LOOP, int TIMES, int W, bool IN_REGISTERS> struct grad_tiles {
    enum { D = DIM, B = LOOP, M = TIMES, THREADS = 32 * W, ROWS = 16 * M * W, KEPT = IN_REGISTERS };
    enum { STEP = tensor_step<X, D>::value, STAGE = 2 * B * STEP, STAY = 2 * ROWS * STEP };
    enum { TILES = (2 * STAGE + STAY) * (int)sizeof(X), BYTES = TILES + 2 * B * (int)sizeof(tensor_query) };
    typedef typename tensor_side<IN_REGISTERS, X, D, M>::type side;
    static_assert(BYTES <= 99 << 10, "more shared memory than some GPUs have");
};

/* The gradients of T::ROWS keys and values of one key/value head. Scores have the keys as rows. */
template <class X, class T, bool PLAIN>
__global__ void __launch_bounds__(T::THREADS, 256 / T::THREADS)
    attention_tensor_keys_kernel(attention_problem w, const char *d_out, const tensor_query *queries, X *d_k,
                                 X *d_v, int64_t blocks, bool quick)
{
    enum { D = T::D, BQ = T::B, M = T::M, N = BQ / 8, THREADS = T::THREADS, WARP = 16 * M };
    X *memory = (X *)(void *)cuda_shared(), *stay = memory + 2 * T::STAGE;
    tensor_query *of = (tensor_query *)(void *)(cuda_shared() + T::TILES);
    int64_t item = blockIdx.x, k0 = cuda_split(item, blocks) * T::ROWS, kvh = cuda_split(item, w.kv_heads),
            b = item, end = k0 + T::ROWS < w.keys ? k0 + T::ROWS : w.keys;
    int64_t before = w.causal ? k0 + w.queries - w.keys : 0; /* queries that see none of the keys: not all */
    int64_t q_first = before < 0 ? 0 : before / BQ * BQ;
    auto fetch = [&](int64_t h, int64_t q0, int stage) {
        int64_t row = w.q_row(b, h, 0);
        tensor_fetch_two<BQ, D, THREADS>(
            memory + stage * T::STAGE, tensor_rows_of<X>(w.q, row, w.heads, w.size, quick),
            tensor_rows_of<X>(d_out, row, w.heads, w.value_size, quick), q0, w.queries);
        int64_t i = q0 + threadIdx.x;
        if (threadIdx.x < BQ)
            async_copy<8>(of + stage * BQ + threadIdx.x, queries + w.lse_at(b, h, i), i < w.queries);
        async_close();
    };
    auto k_rows = tensor_rows_of<X>(w.k, w.k_row(b, kvh, 0), w.kv_heads, w.size, quick);
    auto v_rows = tensor_rows_of<X>(w.v, w.k_row(b, kvh, 0), w.kv_heads, w.value_size, quick);
    tensor_fetch_two<T::ROWS, D, THREADS>(stay, k_rows, v_rows, k0, end);
    async_close();
    int64_t h = kvh * w.group, last_h = h + w.group - 1, q0 = q_first;
    fetch(h, q0, 0);
    async_wait<1>();
    tensor_round_two<T::ROWS, D, THREADS>(stay, quick);
    __syncthreads();
    int first = (int)threadIdx.x / 32 * WARP;
    typename T::side k(stay + first * T::STEP), v(stay + T::STAY / 2 + first * T::STEP);
    mma_c dk[M][D / 8] = {}, dv[M][D / 8] = {};
    for (int stage = 0; h <= last_h; stage ^= 1) {
        X *q = memory + stage * T::STAGE, *d = q + T::STAGE / 2;
        tensor_scores<true> at = {b, h, q0, k0 + first};
        async_wait<0>();
        tensor_round_two<BQ, D, THREADS>(q, quick);
        __syncthreads();
        q0 += BQ;
        if (q0 >= w.queries) q0 = q_first, h++;
        if (h <= last_h) fetch(h, q0, stage ^ 1);
        if (w.visible(at.i0 + BQ < w.queries ? at.i0 + BQ - 1 : w.queries - 1) <= at.j0) continue;
        mma_c p[M][N], ds[M][N];
        tensor_dot<D>(p, k, q);
        tensor_dot<D>(ds, v, d);
        if (!PLAIN && w.mask) tensor_mask<X>(w, at, p);
        if (!at.open(w, BQ, WARP)) tensor_hide(w, at, p);
        grad_weights<PLAIN>(w, at, p, ds, [&](int, int e, int c) {
            typedef cuda_pack<tensor_query, 2> two;
            return ((const two *)(const void *)(of + stage * BQ))[e * 4 + threadIdx.x % 4].at[c % 2];
        });
        tensor_add<D>(dv, p, (const X *)d);
        tensor_add<D>(dk, ds, (const X *)q);
    }
    k_rows.at = d_k + w.k_row(b, kvh, 0) * w.size;
    v_rows.at = d_v + w.k_row(b, kvh, 0) * w.value_size;
    tensor_store<D>(dk, k_rows, k0 + first, end, [&](int, int) { return (float)w.scale; });
    tensor_store<D>(dv, v_rows, k0 + first, end, [](int, int) { return 1.0f; });
}

/* The gradients of T::ROWS queries of one head; the last ones, which see most keys if causal, come first. */
template <class X, class T, bool PLAIN>
__global__ void __launch_bounds__(T::THREADS, 256 / T::THREADS)
    attention_tensor_queries_kernel(attention_problem w, const char *d_out, const tensor_query *queries,
                                    X *d_q, int64_t blocks, bool quick)
{
    enum { D = T::D, BK = T::B, M = T::M, N = BK / 8, THREADS = T::THREADS, WARP = 16 * M };
    X *memory = (X *)(void *)cuda_shared(), *stay = memory + 2 * T::STAGE;
    int64_t item = blockIdx.x, q0 = (blocks - 1 - cuda_split(item, blocks)) * T::ROWS,
            h = cuda_split(item, w.heads), b = item, kvh = cuda_div(h, w.group);
    int64_t last = q0 + T::ROWS < w.queries ? q0 + T::ROWS : w.queries, end = w.visible(last - 1);
    auto k_rows = tensor_rows_of<X>(w.k, w.k_row(b, kvh, 0), w.kv_heads, w.size, quick);
    auto v_rows = tensor_rows_of<X>(w.v, w.k_row(b, kvh, 0), w.kv_heads, w.value_size, quick);
    auto q_rows = tensor_rows_of<X>(w.q, w.q_row(b, h, 0), w.heads, w.size, quick);
    auto fetch = [&](int64_t k0, int stage) {
        tensor_fetch_two<BK, D, THREADS>(memory + stage * T::STAGE, k_rows, v_rows, k0, end);
        async_close();
    };
    tensor_fetch_two<T::ROWS, D, THREADS>(
        stay, q_rows, tensor_rows_of<X>(d_out, w.q_row(b, h, 0), w.heads, w.value_size, quick), q0, last);
    async_close();
    fetch(0, 0);
    async_wait<1>();
    tensor_round_two<T::ROWS, D, THREADS>(stay, quick);
    __syncthreads();
    int first = (int)threadIdx.x / 32 * WARP;
    typename T::side q(stay + first * T::STEP), d(stay + T::STAY / 2 + first * T::STEP);
    tensor_scores<false> at = {b, h, q0 + first, 0};
    tensor_query mine[M][2];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t i = at.i0 + m * 16 + tensor_row(2 * half);
            mine[m][half] = i < last ? queries[w.lse_at(b, h, i)] : tensor_query{0, 0};
        }
    int64_t seen = w.visible(at.i0 + WARP < last ? at.i0 + WARP - 1 : last - 1);
    mma_c dq[M][D / 8] = {};
    int stage = 0;
    for (at.j0 = 0; at.j0 < end; at.j0 += BK, stage ^= 1) {
        X *k = memory + stage * T::STAGE, *v = k + T::STAGE / 2;
        async_wait<0>();
        tensor_round_two<BK, D, THREADS>(k, quick);
        __syncthreads();
        if (at.j0 + BK < end) fetch(at.j0 + BK, stage ^ 1);
        if (at.j0 >= seen) continue;
        mma_c p[M][N], ds[M][N];
        tensor_dot<D>(p, q, (const X *)k);
        tensor_dot<D>(ds, d, (const X *)v);
        if (!PLAIN && w.mask) tensor_mask<X>(w, at, p);
        if (!at.open(w, WARP, BK)) tensor_hide(w, at, p);
        grad_weights<PLAIN>(w, at, p, ds, [&](int m, int, int c) { return mine[m][c / 2]; });
        tensor_add<D>(dq, ds, (const X *)k);
    }
    async_wait<0>(); /* where no key is seen, the first tile is still under way */
    q_rows.at = d_q + w.q_row(b, h, 0) * w.size;
    tensor_store<D>(dq, q_rows, at.i0, last, [&](int, int) { return (float)w.scale; });
}

template <class X, class CHOICE, bool PLAIN>
static proa_status backward(cuda_context *c, const attention_problem &w,
                            const proa_scaled_dot_product_attention_grad_args *a, const tensor_query *queries)
{
    typedef typename CHOICE::keys KEYS;
    typedef typename CHOICE::queries QUERIES;
    int64_t tiles;
    unsigned blocks;
    char *d_out = cuda_look(a->d_out).data;
    X *d_q = cuda_look(a->d_query).as<X>(), *d_k = cuda_look(a->d_key).as<X>(),
      *d_v = cuda_look(a->d_value).as<X>();
    bool quick = tensor_quick(w, d_out, d_q, d_k, d_v);
    PROA_TRY(tensor_grid(w.keys, KEYS::ROWS, w.kv_heads * w.batch, &tiles, &blocks));
    PROA_TRY(cuda_launch_shared(c, blocks, KEYS::THREADS, KEYS::BYTES,
                                (attention_tensor_keys_kernel<X, KEYS, PLAIN>), w, d_out, queries, d_k, d_v,
                                tiles, quick));
    PROA_TRY(tensor_grid(w.queries, QUERIES::ROWS, w.heads * w.batch, &tiles, &blocks));
    return cuda_launch_shared(c, blocks, QUERIES::THREADS, QUERIES::BYTES,
                              (attention_tensor_queries_kernel<X, QUERIES, PLAIN>), w, d_out, queries, d_q,
                              tiles, quick);
}

/* Tiles of either kernel for heads of up to D elements. */
template <class X, int D, bool PLAIN> struct grad_choice {
    typedef grad_tiles<X, D, 32, 1, 4, false> keys;
    typedef grad_tiles<X, D, 32, 1, 4, true> queries;
};
template <class X, bool PLAIN> struct grad_choice<X, 32, PLAIN> {
    typedef grad_tiles<X, 32, PLAIN ? 64 : 32, 1, 8, true> keys;
    typedef grad_tiles<X, 32, 32, PLAIN ? 2 : 1, 4, true> queries;
};
template <class X, bool PLAIN> struct grad_choice<X, 64, PLAIN> {
    typedef grad_tiles<X, 64, PLAIN ? 64 : 32, 1, 8, true> keys;
    typedef grad_tiles<X, 64, 32, PLAIN ? 2 : 1, 4, true> queries;
};
template <bool PLAIN> struct grad_choice<float, 64, PLAIN> {
    typedef grad_tiles<float, 64, 32, 1, 4, PLAIN> keys;
    typedef grad_tiles<float, 64, 32, 1, 4, true> queries;
};
template <bool PLAIN> struct grad_choice<float, 96, PLAIN> {
    typedef grad_tiles<float, 96, 16, 1, 4, false> keys;
    typedef grad_tiles<float, 96, 16, 1, 4, false> queries;
};
template <bool PLAIN> struct grad_choice<float, 128, PLAIN> {
    typedef grad_tiles<float, 128, 16, 1, 3, false> keys;
    typedef grad_tiles<float, 128, 16, 1, 3, false> queries;
};

template <class X, bool PLAIN>
static proa_status by_size(cuda_context *c, const attention_problem &w,
                           const proa_scaled_dot_product_attention_grad_args *a, const tensor_query *of)
{
    int64_t size = w.size > w.value_size ? w.size : w.value_size;
    if (size <= 32) return backward<X, grad_choice<X, 32, PLAIN>, PLAIN>(c, w, a, of);
    if (size <= 64) return backward<X, grad_choice<X, 64, PLAIN>, PLAIN>(c, w, a, of);
    if (size <= 96) return backward<X, grad_choice<X, 96, PLAIN>, PLAIN>(c, w, a, of);
    return backward<X, grad_choice<X, 128, PLAIN>, PLAIN>(c, w, a, of);
}

template <class X>
static proa_status by_type(cuda_context *c, const attention_problem &w,
                           const proa_scaled_dot_product_attention_grad_args *a)
{
    int64_t rows = w.batch * w.queries * w.heads;
    X *out = cuda_look(a->out).as<X>(), *d_out = cuda_look(a->d_out).as<X>();
    tensor_query *queries = (tensor_query *)cuda_scratch(c, (size_t)rows * sizeof *queries);
    if (!queries) return cuda_host->error();
    proa_status status =
        cuda_launch(c, CUDA_ROW_BLOCKS(8, rows), CUDA_BLOCK, attention_tensor_delta_kernel<X>, w, out, d_out,
                    cuda_look(a->softmax_lse).as<float>(), queries, tensor_quick(w, out, d_out, NULL, NULL));
    if (status == PROA_OK)
        status = w.mask || w.drop ? by_size<X, false>(c, w, a, queries) : by_size<X, true>(c, w, a, queries);
    cuda_scratch_free(c, queries);
    return status;
}

proa_status attention_tensor_grad(cuda_context *c, const attention_problem &of,
                                  const proa_scaled_dot_product_attention_grad_args *a)
{
    attention_problem w = of;
    void *kept;
    proa_status status = attention_make_kept(c, &w, &kept);
    if (status == PROA_OK)
        status = w.dtype == PROA_F32   ? by_type<float>(c, w, a)
                 : w.dtype == PROA_F16 ? by_type<cuda_f16>(c, w, a)
                                       : by_type<cuda_bf16>(c, w, a);
    if (kept) cuda_scratch_free(c, kept);
    return status;
}
