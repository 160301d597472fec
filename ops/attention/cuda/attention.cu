/* Attention forward in tiles without tensor cores (tensor.cu has the kernels with them). A block keeps some
 * queries of one head and loops over the keys with an online softmax (Milakov and Gimelshein, 2018; Dao et
 * al., 2022); the matrix queries × keys is never stored. */
#include "ops/attention/cuda/tensor.h"

/* Reduces over the TS threads of a row of the tile. */
template <class Op, int TS, class A> CUDA_FN A attention_across(A v)
{
    for (int by = TS / 2; by > 0; by /= 2) v = Op::join(v, cuda_shuffle_xor(v, by));
    return v;
}

/* Forward: a block computes BQ queries of one head, over tiles of BK keys; heads have at most D elements. */
template <class X, class A, int D, int BQ, int BK, int TS>
__global__ void __launch_bounds__(TS *TS) attention_kernel(attention_problem w, X *to, A *lse, int64_t blocks)
{
    enum { RQ = BQ / TS, RK = BK / TS, RD = D / TS, STEP = D + 1, PS = BK + 1 };
    __shared__ A q[BQ * D], kv[BK * STEP], p[BQ * PS];
    int64_t item = blockIdx.x, q0 = item % blocks * BQ, h = item / blocks % w.heads,
            b = item / blocks / w.heads;
    int64_t kvh = h / w.group, nq = w.queries - q0 < BQ ? w.queries - q0 : BQ, end = w.visible(q0 + nq - 1);
    int ty = (int)threadIdx.x / TS, tx = (int)threadIdx.x % TS;
    A out[RQ][RD] = {}, top[RQ], sum[RQ] = {};
#pragma unroll
    for (int r = 0; r < RQ; r++) top[r] = (A)-INFINITY;
    attention_load<X, A, BQ, D, D>(q, w.q, nq, w.size, (A)w.scale,
                                   [&](int r) { return w.q_row(b, h, q0 + r); });
    for (int64_t k0 = 0; k0 < end; k0 += BK) {
        int64_t nk = end - k0 < BK ? end - k0 : BK;
        __syncthreads();
        attention_load<X, A, BK, D, STEP>(kv, w.k, nk, w.size, (A)1,
                                          [&](int r) { return w.k_row(b, kvh, k0 + r); });
        __syncthreads();
        A s[RQ][RK];
        attention_dot<A, RQ, RK, TS, D, D, STEP>(s, q, kv);
#pragma unroll
        for (int r = 0; r < RQ; r++) {
            int64_t i = q0 + ty + r * TS;
            A here = top[r], total = 0;
#pragma unroll
            for (int e = 0; e < RK; e++) {
                s[r][e] += attention_mask<X, A>(w, b, h, i, k0 + tx + e * TS);
                here = cuda_max::join(here, s[r][e]);
            }
            here = attention_across<cuda_max, TS>(here);
            bool blind = here == (A)-INFINITY; /* no key is visible so far */
            A shrink = blind ? (A)1 : exp(top[r] - here);
#pragma unroll
            for (int e = 0; e < RK; e++) {
                A weight = blind ? (A)0 : exp(s[r][e] - here);
                total += weight;
                if (!w.keeps(b, h, i, k0 + tx + e * TS)) weight = 0;
                else if (w.drop) weight *= (A)w.kept_scale;
                p[(ty + r * TS) * PS + tx + e * TS] = weight;
            }
            sum[r] = sum[r] * shrink + attention_across<cuda_sum, TS>(total);
            top[r] = here;
#pragma unroll
            for (int e = 0; e < RD; e++) out[r][e] *= shrink;
        }
        __syncthreads();
        attention_load<X, A, BK, D, STEP>(kv, w.v, nk, w.value_size, (A)1,
                                          [&](int r) { return w.k_row(b, kvh, k0 + r); });
        __syncthreads();
        attention_add<A, RQ, RD, TS, BK, PS, 1, STEP>(out, p, kv);
    }
#pragma unroll
    for (int r = 0; r < RQ; r++) {
        int64_t i = q0 + ty + r * TS;
        if (i >= w.queries) continue;
        bool blind = sum[r] == 0; /* sees no key: the result is 0, and so is every weight in backward */
        if (tx == 0) lse[w.lse_at(b, h, i)] = blind ? (A)INFINITY : top[r] + log(sum[r]);
#pragma unroll
        for (int e = 0; e < RD; e++)
            if (tx + e * TS < w.value_size)
                to[w.q_row(b, h, i) * w.value_size + tx + e * TS] =
                    cuda_cast<X>(blind ? 0 : out[r][e] / sum[r]);
    }
}

template <class X, class A, int D, int BQ, int BK, int TS>
static proa_status run(cuda_context *c, const attention_problem &w, const proa_tensor *out,
                       const proa_tensor *lse)
{
    int64_t blocks = (w.queries + BQ - 1) / BQ, items = blocks * w.heads * w.batch;
    if (items > INT32_MAX)
        return cuda_fail(PROA_ERR_OVERFLOW,
                         "scaled_dot_product_attention: has %lld blocks of queries; a GPU "
                         "takes 2147483647",
                         (long long)items);
    return cuda_launch(c, (unsigned)items, TS * TS, (attention_kernel<X, A, D, BQ, BK, TS>), w,
                       cuda_look(out).as<X>(), cuda_look(lse).as<A>(), blocks);
}

/* Chooses the tiles by dtype and by the larger of the two head sizes, so that a block's tiles fit into 48 KiB
 * of shared memory. Half types that tensor.cu does not take use the tiles of the largest heads. */
template <class X, class A>
static proa_status by_size(cuda_context *c, const attention_problem &w, const proa_tensor *out,
                           const proa_tensor *lse)
{
    constexpr bool wide = sizeof(A) == 8;
    if constexpr (sizeof(X) > 2) {
        int64_t size = w.size > w.value_size ? w.size : w.value_size;
        if (size <= 64) return run < X, A, 64, wide ? 32 : 64, 32, 16 > (c, w, out, lse);
        if (size <= 128) return run < X, A, 128, wide ? 16 : 32, wide ? 16 : 32, 16 > (c, w, out, lse);
    }
    return run < X, A, 256, wide ? 8 : 16, wide ? 8 : 16, wide ? 8 : 16 > (c, w, out, lse);
}

__global__ void attention_seed_kernel(int64_t *to, cuda_draws draws)
{
    proa_rng_state at = cuda_drawn(draws);
    to[0] = (int64_t)at.seed;
    to[1] = (int64_t)at.offset;
}

CUDA_KERNEL(scaled_dot_product_attention, attention_fits(a->query, a->value))
{
    double p = a->training ? a->dropout_p : 0;
    int64_t *seed = p > 0 ? cuda_look(a->seed_offset).as<int64_t>() : NULL;
    attention_problem w = attention_of(a->query, a->key, a->value, a->attn_mask, p, a->is_causal, seed);
    if (p > 0) {
        uint64_t weights = (uint64_t)(w.batch * w.heads * w.queries * w.keys);
        cuda_draws stream;
        PROA_TRY(cuda_draw(c, (weights + 7) / 8, &stream));
        PROA_TRY(cuda_launch(c, 1, 1, attention_seed_kernel, seed, stream));
    }
    if (w.batch * w.heads * w.queries == 0 || w.size == 0 || w.value_size == 0 || w.keys == 0) {
        PROA_TRY(attention_clear(c, a->out));
        return attention_clear(c, a->softmax_lse);
    }
    if (tensor_fits(c, w)) return attention_tensor(c, w, a->out, a->softmax_lse);
    CUDA_SWITCH_FLOAT(w.dtype, X, A, { return by_size<X, A>(c, w, a->out, a->softmax_lse); })
}
