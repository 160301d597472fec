/* Attention backward without tensor cores. Softmax weights are recomputed tile by tile from lse (each query's
 * log-sum-exp); one kernel loops over the queries for dK and dV, another over the keys for dQ, so there are
 * no atomics and results are bitwise reproducible (Dao et al., 2022). */
#include "ops/attention/cuda/tensor.h"

/* delta = Σ d_out · out of every query and head. */
template <class X, class A>
__global__ void attention_delta_kernel(attention_problem w, const X *out, const X *d_out, A *delta)
{
    for (CUDA_ROWS(32, row, w.batch * w.queries * w.heads)) {
        int64_t h = row % w.heads, i = row / w.heads % w.queries, b = row / w.heads / w.queries;
        A sum = 0;
        for (int64_t d = threadIdx.x % 32; d < w.value_size; d += 32)
            sum += cuda_cast<A>(out[row * w.value_size + d]) * cuda_cast<A>(d_out[row * w.value_size + d]);
        sum = cuda_warp_reduce<cuda_sum>(sum);
        if (threadIdx.x % 32 == 0) delta[w.lse_at(b, h, i)] = sum;
    }
}

/* One softmax weight: its value after dropout and scale, and the gradient of its score. */
template <class A> struct attention_weight {
    A p, ds;
};

/* score: q · k / √D; dp: d_out · v. */
template <class X, class A>
CUDA_FN attention_weight<A> attention_again(const attention_problem &w, int64_t b, int64_t h, int64_t i,
                                            int64_t j, A score, A dp, const A *lse, const A *delta)
{
    A mask = attention_mask<X, A>(w, b, h, i, j);
    if (mask == (A)-INFINITY) return {0, 0};
    int64_t at = w.lse_at(b, h, i);
    A weight = exp(score + mask - lse[at]), factor = !w.keeps(b, h, i, j) ? (A)0
                                                     : w.drop             ? (A)w.kept_scale
                                                                          : (A)1;
    return {weight * factor, weight * (dp * factor - delta[at])};
}

/* Computes gradients of B keys and values of one key/value head. */
template <class X, class A, int D, int B, int TS>
__global__ void __launch_bounds__(TS *TS)
    attention_keys_kernel(attention_problem w, const char *d_out, const A *lse, const A *delta, X *d_k,
                          X *d_v, int64_t blocks)
{
    enum { R = B / TS, RD = D / TS, STEP = D + 1, PS = B + 1 };
    __shared__ A q[B * STEP], d[B * STEP], k[B * STEP], v[B * STEP], p[B * PS];
    int64_t item = blockIdx.x, k0 = item % blocks * B, kvh = item / blocks % w.kv_heads,
            b = item / blocks / w.kv_heads, nk = w.keys - k0 < B ? w.keys - k0 : B;
    int ty = (int)threadIdx.x / TS, tx = (int)threadIdx.x % TS;
    A dk[R][RD] = {}, dv[R][RD] = {};
    auto k_row = [&](int r) { return w.k_row(b, kvh, k0 + r); };
    attention_load<X, A, B, D, STEP>(k, w.k, nk, w.size, (A)1, k_row);
    attention_load<X, A, B, D, STEP>(v, w.v, nk, w.value_size, (A)1, k_row);
    for (int64_t h = kvh * w.group; h < (kvh + 1) * w.group; h++)
        for (int64_t q0 = 0; q0 < w.queries; q0 += B) {
            int64_t nq = w.queries - q0 < B ? w.queries - q0 : B;
            if (w.visible(q0 + nq - 1) <= k0) continue;
            auto q_row = [&](int r) { return w.q_row(b, h, q0 + r); };
            __syncthreads();
            attention_load<X, A, B, D, STEP>(q, w.q, nq, w.size, (A)w.scale, q_row);
            attention_load<X, A, B, D, STEP>(d, d_out, nq, w.value_size, (A)1, q_row);
            __syncthreads();
            A s[R][R], dp[R][R]; /* rows are queries, columns keys */
            attention_dot<A, R, R, TS, D, STEP, STEP>(s, q, k);
            attention_dot<A, R, R, TS, D, STEP, STEP>(dp, d, v);
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int e = 0; e < R; e++) {
                    attention_weight<A> weight = attention_again<X, A>(
                        w, b, h, q0 + ty + r * TS, k0 + tx + e * TS, s[r][e], dp[r][e], lse, delta);
                    p[(ty + r * TS) * PS + tx + e * TS] = weight.p;
                    dp[r][e] = weight.ds;
                }
            __syncthreads();
            attention_add<A, R, RD, TS, B, 1, PS, STEP>(dv, p, d);
            __syncthreads();
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int e = 0; e < R; e++) p[(ty + r * TS) * PS + tx + e * TS] = dp[r][e];
            __syncthreads();
            attention_add<A, R, RD, TS, B, 1, PS, STEP>(dk, p, q);
        }
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (ty + r * TS >= nk) continue;
        int64_t row = k_row(ty + r * TS);
#pragma unroll
        for (int e = 0; e < RD; e++) {
            int at = tx + e * TS;
            if (at < w.size) d_k[row * w.size + at] = cuda_cast<X>(dk[r][e]);
            if (at < w.value_size) d_v[row * w.value_size + at] = cuda_cast<X>(dv[r][e]);
        }
    }
}

/* Computes gradients of B queries of one head. */
template <class X, class A, int D, int B, int TS>
__global__ void __launch_bounds__(TS *TS)
    attention_queries_kernel(attention_problem w, const char *d_out, const A *lse, const A *delta, X *d_q,
                             int64_t blocks)
{
    enum { R = B / TS, RD = D / TS, STEP = D + 1, PS = B + 1 };
    __shared__ A q[B * STEP], d[B * STEP], k[B * STEP], v[B * STEP], p[B * PS];
    int64_t item = blockIdx.x, q0 = item % blocks * B, h = item / blocks % w.heads,
            b = item / blocks / w.heads, kvh = h / w.group, nq = w.queries - q0 < B ? w.queries - q0 : B,
            end = w.visible(q0 + nq - 1);
    int ty = (int)threadIdx.x / TS, tx = (int)threadIdx.x % TS;
    A dq[R][RD] = {};
    auto q_row = [&](int r) { return w.q_row(b, h, q0 + r); };
    attention_load<X, A, B, D, STEP>(q, w.q, nq, w.size, (A)w.scale, q_row);
    attention_load<X, A, B, D, STEP>(d, d_out, nq, w.value_size, (A)1, q_row);
    for (int64_t k0 = 0; k0 < end; k0 += B) {
        int64_t nk = end - k0 < B ? end - k0 : B;
        auto k_row = [&](int r) { return w.k_row(b, kvh, k0 + r); };
        __syncthreads();
        attention_load<X, A, B, D, STEP>(k, w.k, nk, w.size, (A)1, k_row);
        attention_load<X, A, B, D, STEP>(v, w.v, nk, w.value_size, (A)1, k_row);
        __syncthreads();
        A s[R][R], dp[R][R];
        attention_dot<A, R, R, TS, D, STEP, STEP>(s, q, k);
        attention_dot<A, R, R, TS, D, STEP, STEP>(dp, d, v);
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int e = 0; e < R; e++)
                p[(ty + r * TS) * PS + tx + e * TS] =
                    attention_again<X, A>(w, b, h, q0 + ty + r * TS, k0 + tx + e * TS, s[r][e], dp[r][e], lse,
                                          delta)
                        .ds;
        __syncthreads();
        attention_add<A, R, RD, TS, B, PS, 1, STEP>(dq, p, k);
    }
#pragma unroll
    for (int r = 0; r < R; r++)
        for (int e = 0; e < RD && ty + r * TS < nq; e++)
            if (tx + e * TS < w.size)
                d_q[q_row(ty + r * TS) * w.size + tx + e * TS] = cuda_cast<X>(dq[r][e] * (A)w.scale);
}

template <class X, class A, int D, int B, int TS>
static proa_status run(cuda_context *c, const attention_problem &w,
                       const proa_scaled_dot_product_attention_grad_args *a, const A *delta)
{
    int64_t keys = (w.keys + B - 1) / B, queries = (w.queries + B - 1) / B;
    int64_t key_items = keys * w.kv_heads * w.batch, query_items = queries * w.heads * w.batch;
    if (key_items > INT32_MAX || query_items > INT32_MAX)
        return cuda_fail(PROA_ERR_OVERFLOW,
                         "scaled_dot_product_attention_grad: has %lld blocks; a GPU takes "
                         "2147483647",
                         (long long)(key_items > query_items ? key_items : query_items));
    const char *d_out = cuda_look(a->d_out).data;
    const A *lse = cuda_look(a->softmax_lse).as<A>();
    PROA_TRY(cuda_launch(c, (unsigned)key_items, TS * TS, (attention_keys_kernel<X, A, D, B, TS>), w, d_out,
                         lse, delta, cuda_look(a->d_key).as<X>(), cuda_look(a->d_value).as<X>(), keys));
    return cuda_launch(c, (unsigned)query_items, TS * TS, (attention_queries_kernel<X, A, D, B, TS>), w,
                       d_out, lse, delta, cuda_look(a->d_query).as<X>(), queries);
}

/* Chooses the rows B of a tile by dtype and by the larger of the two head sizes, so that a block's tiles fit
 * into 48 KiB of shared memory. Half types that tensor_grad.cu does not take use the tiles of the largest
 * heads. */
template <class X, class A>
static proa_status by_size(cuda_context *c, const attention_problem &w,
                           const proa_scaled_dot_product_attention_grad_args *a, const A *delta)
{
    constexpr bool wide = sizeof(A) == 8;
    if constexpr (sizeof(X) > 2) {
        int64_t size = w.size > w.value_size ? w.size : w.value_size;
        if (size <= 64) return run < X, A, 64, wide ? 16 : 32, 16 > (c, w, a, delta);
        if (size <= 128) return run < X, A, 128, wide ? 8 : 16, wide ? 8 : 16 > (c, w, a, delta);
    }
    return run < X, A, 256, wide ? 4 : 8, wide ? 4 : 8 > (c, w, a, delta);
}

template <class X, class A>
static proa_status backward(cuda_context *c, const attention_problem &w,
                            const proa_scaled_dot_product_attention_grad_args *a)
{
    int64_t rows = w.batch * w.queries * w.heads;
    A *delta = (A *)cuda_scratch(c, (size_t)rows * sizeof *delta);
    if (!delta) return cuda_host->error();
    proa_status status = cuda_launch(c, CUDA_ROW_BLOCKS(32, rows), CUDA_BLOCK, (attention_delta_kernel<X, A>),
                                     w, cuda_look(a->out).as<X>(), cuda_look(a->d_out).as<X>(), delta);
    if (status == PROA_OK) status = by_size<X, A>(c, w, a, delta);
    cuda_scratch_free(c, delta);
    return status;
}

CUDA_KERNEL(scaled_dot_product_attention_grad, attention_fits(a->query, a->value))
{
    bool drops = cuda_given(a->seed_offset) && a->dropout_p > 0;
    const int64_t *seed = drops ? cuda_look(a->seed_offset).as<int64_t>() : NULL;
    attention_problem w =
        attention_of(a->query, a->key, a->value, a->attn_mask, drops ? a->dropout_p : 0, a->is_causal, seed);
    if (w.batch * w.heads == 0 || w.size == 0 || w.value_size == 0 || w.keys == 0 || w.queries == 0) {
        PROA_TRY(attention_clear(c, a->d_query));
        PROA_TRY(attention_clear(c, a->d_key));
        return attention_clear(c, a->d_value);
    }
    if (tensor_fits(c, w)) return attention_tensor_grad(c, w, a);
    CUDA_SWITCH_FLOAT(w.dtype, X, A, { return backward<X, A>(c, w, a); })
}
