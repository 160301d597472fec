/* Attention of float16 and bfloat16 on tensor cores, forward and backward, after FlashAttention-2 (Dao,
 * 2023). Softmax weights stay in the registers of the lanes that computed them, as an operand of the next
 * product; the matrix queries × keys is never stored, and there are no atomics. */
#include "ops/attention/cuda/tensor.h"

/* ---- forward -------------------------------------------------------------------------- */

/* Reduces over the four lanes that share a row. */
template <class Op> CUDA_FN float tensor_across(float v)
{
    v = Op::join(v, cuda_shuffle_xor(v, 1));
    return Op::join(v, cuda_shuffle_xor(v, 2));
}

/* Forward: a block computes TENSOR_ROWS queries of one head, over tiles of BK keys; heads have at most D
 * elements. quick: rows may be loaded 16 bytes at a time. */
template <class X, int D, int BK>
__global__ void __launch_bounds__(TENSOR_THREADS)
    attention_tensor_kernel(attention_problem w, X *to, float *lse, int64_t blocks, bool quick)
{
    enum { N = BK / 8 };
    alignas(16) __shared__ X q[TENSOR_ROWS * (D + 8)], k[BK * (D + 8)], v[BK * (D + 8)];
    int64_t item = blockIdx.x, q0 = item % blocks * TENSOR_ROWS, h = item / blocks % w.heads,
            b = item / blocks / w.heads, kvh = h / w.group;
    int64_t nq = tensor_rows(w.queries - q0), end = w.visible(q0 + nq - 1);
    int first = (int)threadIdx.x / 32 * 16;
    auto q_row = [&](int r) { return w.q_row(b, h, q0 + r); };
    mma_c out[D / 8] = {};
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, unit = tensor_unit(w);
    tensor_load<X, TENSOR_ROWS, D>(q, w.q, nq, w.size, quick, q_row);
    __syncthreads();
    tensor_kept<X, D> mine(q + first * (D + 8));
    for (int64_t k0 = 0; k0 < end; k0 += BK) {
        int64_t nk = end - k0 < BK ? end - k0 : BK;
        bool open = !w.mask && k0 + BK <= w.visible(q0); /* every query sees all keys of the tile */
        auto k_row = [&](int r) { return w.k_row(b, kvh, k0 + r); };
        __syncthreads();
        tensor_load<X, BK, D>(k, w.k, nk, w.size, quick, k_row);
        tensor_load<X, BK, D>(v, w.v, nk, w.value_size, quick, k_row);
        __syncthreads();
        mma_c s[N];
        tensor_dot<X, N, D>(s, mine, k);
        float here[2] = {top[0], top[1]}, total[2] = {0, 0}, shrink[2], least[2];
#pragma unroll
        for (int e = 0; e < N; e++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int64_t at = q0 + first + tensor_row(i), j = k0 + e * 8 + tensor_column(i);
                s[e].v[i] *= unit;
                if (!open) s[e].v[i] += tensor_mask<X>(w, b, h, at, j);
                here[i / 2] = cuda_max::join(here[i / 2], s[e].v[i]);
            }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            here[r] = tensor_across<cuda_max>(here[r]);
            least[r] = here[r] == -INFINITY ? 0.0f : here[r]; /* nothing is visible so far: weights of 0 */
            shrink[r] = exp2f(top[r] - least[r]);
        }
#pragma unroll
        for (int e = 0; e < N; e++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int64_t at = q0 + first + tensor_row(i), j = k0 + e * 8 + tensor_column(i);
                float weight = exp2f(s[e].v[i] - least[i / 2]);
                total[i / 2] += weight;
                if (w.drop) weight = w.keeps(b, h, at, j) ? weight * (float)w.kept_scale : 0.0f;
                s[e].v[i] = weight;
            }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            sum[r] = sum[r] * shrink[r] + tensor_across<cuda_sum>(total[r]);
            top[r] = here[r];
        }
#pragma unroll
        for (int e = 0; e < D / 8; e++)
#pragma unroll
            for (int i = 0; i < 4; i++) out[e].v[i] *= shrink[i / 2];
        tensor_add<X, N, D>(out, s, v);
    }
    /* A query that sees no key: the result is 0, and so is every weight in backward. */
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int64_t i = first + tensor_row(2 * r);
        if (threadIdx.x % 4 == 0 && i < nq)
            lse[w.lse_at(b, h, q0 + i)] = sum[r] == 0 ? (float)INFINITY : top[r] * TENSOR_LN2 + log(sum[r]);
    }
    tensor_store<X, D>(
        out, to, nq, w.value_size, [&](int r) { return sum[r] == 0 ? 0.0f : 1 / sum[r]; }, q_row);
}

/* ---- backward ------------------------------------------------------------------------- */

/* Statistics of a query for backward: its lse in units of ln 2, and its delta. */
struct tensor_query {
    float lse, delta;
};
CUDA_FN tensor_query tensor_query_at(const attention_problem &w, int64_t b, int64_t h, int64_t i,
                                     const float *lse, const float *delta)
{
    if (i >= w.queries) return {0, 0};
    int64_t at = w.lse_at(b, h, i);
    return {lse[at] * TENSOR_LOG2E, delta[at]};
}

/* From a score and d_out · v: the softmax weight, and its score's gradient. open: no mask applies. */
template <class X>
CUDA_FN void tensor_weight(const attention_problem &w, int64_t b, int64_t h, int64_t i, int64_t j, bool open,
                           tensor_query of, float &score, float &dp)
{
    float mask = open ? 0.0f : tensor_mask<X>(w, b, h, i, j);
    float weight = mask == -INFINITY ? 0.0f : exp2f(score * tensor_unit(w) + mask - of.lse);
    float factor = !w.drop ? 1.0f : w.keeps(b, h, i, j) ? (float)w.kept_scale : 0.0f;
    score = weight * factor;
    dp = mask == -INFINITY ? 0.0f : weight * (dp * factor - of.delta);
}

/* Keeps keys and values in registers as well, if the gradients leave enough of them. */
template <class X, int D> struct tensor_sides {
    typedef tensor_read<X, D> type;
};
template <class X> struct tensor_sides<X, 64> {
    typedef tensor_kept<X, 64> type;
};

/* Gradients of TENSOR_ROWS keys and values of one key/value head; BQ queries a tile. Scores are made with the
 * keys as rows. */
template <class X, int D, int BQ>
__global__ void __launch_bounds__(TENSOR_THREADS)
    attention_tensor_keys_kernel(attention_problem w, const char *d_out, const float *lse, const float *delta,
                                 X *d_k, X *d_v, int64_t blocks, bool quick)
{
    enum { N = BQ / 8 };
    alignas(16) __shared__ X k[TENSOR_ROWS * (D + 8)], v[TENSOR_ROWS * (D + 8)], q[BQ * (D + 8)],
        d[BQ * (D + 8)];
    __shared__ tensor_query of[BQ];
    typedef typename tensor_sides<X, D>::type side;
    int64_t item = blockIdx.x, k0 = item % blocks * TENSOR_ROWS, kvh = item / blocks % w.kv_heads,
            b = item / blocks / w.kv_heads, nk = tensor_rows(w.keys - k0);
    int first = (int)threadIdx.x / 32 * 16;
    auto k_row = [&](int r) { return w.k_row(b, kvh, k0 + r); };
    mma_c dk[D / 8] = {}, dv[D / 8] = {};
    tensor_load<X, TENSOR_ROWS, D>(k, w.k, nk, w.size, quick, k_row);
    tensor_load<X, TENSOR_ROWS, D>(v, w.v, nk, w.value_size, quick, k_row);
    __syncthreads();
    side mine_k(k + first * (D + 8)), mine_v(v + first * (D + 8));
    for (int64_t h = kvh * w.group; h < (kvh + 1) * w.group; h++)
        for (int64_t q0 = 0; q0 < w.queries; q0 += BQ) {
            int64_t nq = w.queries - q0 < BQ ? w.queries - q0 : BQ;
            if (w.visible(q0 + nq - 1) <= k0) continue;
            bool open = !w.mask && nq == BQ && k0 + TENSOR_ROWS <= w.visible(q0);
            auto q_row = [&](int r) { return w.q_row(b, h, q0 + r); };
            __syncthreads();
            tensor_load<X, BQ, D>(q, w.q, nq, w.size, quick, q_row);
            tensor_load<X, BQ, D>(d, d_out, nq, w.value_size, quick, q_row);
            if (threadIdx.x < BQ) of[threadIdx.x] = tensor_query_at(w, b, h, q0 + threadIdx.x, lse, delta);
            __syncthreads();
            mma_c p[N], ds[N];
            tensor_dot<X, N, D>(p, mine_k, q);
            tensor_dot<X, N, D>(ds, mine_v, d);
#pragma unroll
            for (int e = 0; e < N; e++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    tensor_weight<X>(w, b, h, q0 + e * 8 + tensor_column(i), k0 + first + tensor_row(i), open,
                                     of[e * 8 + tensor_column(i)], p[e].v[i], ds[e].v[i]);
            tensor_add<X, N, D>(dv, p, d);
            tensor_add<X, N, D>(dk, ds, q);
        }
    tensor_store<X, D>(
        dk, d_k, nk, w.size, [&](int) { return (float)w.scale; }, k_row);
    tensor_store<X, D>(
        dv, d_v, nk, w.value_size, [](int) { return 1.0f; }, k_row);
}

/* Gradients of TENSOR_ROWS queries of one head; BK keys a tile. */
template <class X, int D, int BK>
__global__ void __launch_bounds__(TENSOR_THREADS)
    attention_tensor_queries_kernel(attention_problem w, const char *d_out, const float *lse,
                                    const float *delta, X *d_q, int64_t blocks, bool quick)
{
    enum { N = BK / 8 };
    alignas(16) __shared__ X q[TENSOR_ROWS * (D + 8)], d[TENSOR_ROWS * (D + 8)], k[BK * (D + 8)],
        v[BK * (D + 8)];
    int64_t item = blockIdx.x, q0 = item % blocks * TENSOR_ROWS, h = item / blocks % w.heads,
            b = item / blocks / w.heads, kvh = h / w.group;
    int64_t nq = tensor_rows(w.queries - q0), end = w.visible(q0 + nq - 1);
    int first = (int)threadIdx.x / 32 * 16;
    auto q_row = [&](int r) { return w.q_row(b, h, q0 + r); };
    mma_c dq[D / 8] = {};
    tensor_load<X, TENSOR_ROWS, D>(q, w.q, nq, w.size, quick, q_row);
    tensor_load<X, TENSOR_ROWS, D>(d, d_out, nq, w.value_size, quick, q_row);
    __syncthreads();
    tensor_kept<X, D> mine_q(q + first * (D + 8)), mine_d(d + first * (D + 8));
    const tensor_query of[2] = {tensor_query_at(w, b, h, q0 + first + tensor_row(0), lse, delta),
                                tensor_query_at(w, b, h, q0 + first + tensor_row(2), lse, delta)};
    for (int64_t k0 = 0; k0 < end; k0 += BK) {
        int64_t nk = end - k0 < BK ? end - k0 : BK;
        bool open = !w.mask && nq == TENSOR_ROWS && k0 + BK <= w.visible(q0);
        auto k_row = [&](int r) { return w.k_row(b, kvh, k0 + r); };
        __syncthreads();
        tensor_load<X, BK, D>(k, w.k, nk, w.size, quick, k_row);
        tensor_load<X, BK, D>(v, w.v, nk, w.value_size, quick, k_row);
        __syncthreads();
        mma_c p[N], ds[N];
        tensor_dot<X, N, D>(p, mine_q, k);
        tensor_dot<X, N, D>(ds, mine_d, v);
#pragma unroll
        for (int e = 0; e < N; e++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                tensor_weight<X>(w, b, h, q0 + first + tensor_row(i), k0 + e * 8 + tensor_column(i), open,
                                 of[i / 2], p[e].v[i], ds[e].v[i]);
        tensor_add<X, N, D>(dq, ds, k);
    }
    tensor_store<X, D>(
        dq, d_q, nq, w.size, [&](int) { return (float)w.scale; }, q_row);
}

/* ---- launches ------------------------------------------------------------------------- */

static proa_status count_blocks(int64_t rows, int64_t each, int64_t *blocks, unsigned *items)
{
    *blocks = (rows + TENSOR_ROWS - 1) / TENSOR_ROWS;
    *items = (unsigned)(*blocks * each);
    if (*blocks * each <= INT32_MAX) return PROA_OK;
    return cuda_fail(
        PROA_ERR_OVERFLOW,
        "scaled_dot_product_attention: has %lld blocks of queries or keys; a GPU takes 2147483647",
        (long long)(*blocks * each));
}

template <class X, int D, int BK>
static proa_status forward(cuda_context *c, const attention_problem &w, const proa_tensor *out,
                           const proa_tensor *lse)
{
    int64_t blocks;
    unsigned items;
    PROA_TRY(count_blocks(w.queries, w.heads * w.batch, &blocks, &items));
    return cuda_launch(c, items, TENSOR_THREADS, (attention_tensor_kernel<X, D, BK>), w,
                       cuda_look(out).as<X>(), cuda_look(lse).as<float>(), blocks, tensor_quick(w, NULL));
}

template <class X, int D, int B>
static proa_status backward(cuda_context *c, const attention_problem &w,
                            const proa_scaled_dot_product_attention_grad_args *a, const float *delta)
{
    int64_t blocks;
    unsigned items;
    const char *d_out = cuda_look(a->d_out).data;
    const float *lse = cuda_look(a->softmax_lse).as<float>();
    bool quick = tensor_quick(w, d_out);
    PROA_TRY(count_blocks(w.keys, w.kv_heads * w.batch, &blocks, &items));
    PROA_TRY(cuda_launch(c, items, TENSOR_THREADS, (attention_tensor_keys_kernel<X, D, B>), w, d_out, lse,
                         delta, cuda_look(a->d_key).as<X>(), cuda_look(a->d_value).as<X>(), blocks, quick));
    PROA_TRY(count_blocks(w.queries, w.heads * w.batch, &blocks, &items));
    return cuda_launch(c, items, TENSOR_THREADS, (attention_tensor_queries_kernel<X, D, B>), w, d_out, lse,
                       delta, cuda_look(a->d_query).as<X>(), blocks, quick);
}

/* Chooses the kernel by dtype and by the larger of the two head sizes: rows of 64 elements and tiles of
 * `small` rows, or 128 and `large`, so that a block's tiles fit into 48 KiB of shared memory. */
#define BY_SIZE(w, X, f, small, large, ...)                                                   \
    do {                                                                                      \
        int64_t size = (w).size > (w).value_size ? (w).size : (w).value_size;                 \
        if ((w).dtype == PROA_F16) {                                                          \
            typedef cuda_f16 X;                                                               \
            return size <= 64 ? f<X, 64, small>(__VA_ARGS__) : f<X, 128, large>(__VA_ARGS__); \
        }                                                                                     \
        typedef cuda_bf16 X;                                                                  \
        return size <= 64 ? f<X, 64, small>(__VA_ARGS__) : f<X, 128, large>(__VA_ARGS__);     \
    } while (0)

proa_status attention_tensor(cuda_context *c, const attention_problem &w, const proa_tensor *out,
                             const proa_tensor *lse)
{
    BY_SIZE(w, X, forward, 64, 32, c, w, out, lse);
}

proa_status attention_tensor_grad(cuda_context *c, const attention_problem &w,
                                  const proa_scaled_dot_product_attention_grad_args *a, const float *delta)
{
    BY_SIZE(w, X, backward, 32, 16, c, w, a, delta);
}
