/* CPU kernels of attention and its gradient. A thread's unit of work is (batch, head, block of queries)
 * forward and (batch, key head) backward, so that sums do not depend on the thread count. May use core,
 * kernels and ops. */
#include "impl/attention.h"

#include "kernels/gemm.h"
#include "kernels/philox16.h"
#include "kernels/rowwise.h"
#include "kernels/simd_softmax.h"

#include <stdatomic.h>

/* Keys (and queries) of a block: multiples of every CPU level's register tile. UNIT_BYTES: size of a unit's
 * queries and results that fits into a second-level cache beside a block of keys. AHEAD: rows by which right
 * operands are prefetched. */
enum { FORWARD_BK = 256, BACKWARD_BK = 192, BACKWARD_BQ = 96, UNIT_BYTES = 640 << 10, AHEAD = 8 };

typedef struct attention {
    proa_dtype dtype;
    const proa_tensor *q, *k, *v, *out, *lse, *d_out, *d_q, *d_k, *d_v;
    const void *mask;
    int64_t mask_stride[4];
    int64_t queries, keys, heads, kv_heads, group, size, value_size;
    bool causal, drop;
    double scale, kept_scale;
    uint32_t threshold;
    proa_rng_state stream;
    int64_t unit, parts; /* unit: queries of a forward item; parts: items per head */
    int64_t items;
    size_t slot_bytes;
    char *scratch;
    atomic_llong next; /* the first item that no thread has taken */
} attention;

/* Transposes n rows of k numbers, `step` apart, into one panel. */
static inline void pack_float(int64_t k, int64_t n, const float *from, int64_t step, float *to)
{
    gemm_pack_b_f32(k, n, from, (gemm_strides){1, step}, to);
}

static inline void pack_double(int64_t k, int64_t n, const double *from, int64_t step, double *to)
{
    gemm_pack_b_f64(k, n, from, (gemm_strides){1, step}, to);
}

#define T float
#include "ops/attention/product.inc"
#include "attention.inc"
#include "grad.inc"
#undef T
#define T double
#include "ops/attention/product.inc"
#include "attention.inc"
#include "grad.inc"
#undef T

static attention describe(const proa_tensor *q, const proa_tensor *k, const proa_tensor *v,
                          const proa_tensor *mask, double p, bool causal)
{
    attention w = {.dtype = (proa_dtype)q->dtype,
                   .q = q,
                   .k = k,
                   .v = v,
                   .queries = q->shape[1],
                   .keys = k->shape[1],
                   .heads = q->shape[2],
                   .kv_heads = k->shape[2],
                   .size = q->shape[3],
                   .value_size = v->shape[3],
                   .causal = causal,
                   .drop = p > 0,
                   .scale = 1,
                   .kept_scale = p < 1 ? 1 / (1 - p) : 0,
                   .threshold = philox16_threshold(p)};
    if (w.size > 0) w.scale = 1 / sqrt((double)w.size);
    w.group = w.kv_heads ? w.heads / w.kv_heads : 1;
    if (proa__absent(mask)) return w;
    w.mask = mask->data;
    for (int64_t i = 3, step = 1, at = mask->ndim - 1; i >= 0; i--, at--) {
        int64_t n = at >= 0 ? mask->shape[at] : 1;
        w.mask_stride[i] = n == 1 ? 0 : step;
        step *= n;
    }
    return w;
}

static void clear(const proa_tensor *t)
{
    if (t->numel) memset(t->data, 0, (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype));
}

PROA_KERNEL(scaled_dot_product_attention_cpu, scaled_dot_product_attention)
{
    double p = a->training ? a->dropout_p : 0;
    attention w = describe(a->query, a->key, a->value, a->attn_mask, p, a->is_causal);
    w.out = a->out;
    w.lse = a->softmax_lse;
    if (w.drop) {
        w.stream = proa__rng_reserve(philox16_blocks(a->query->shape[0] * w.heads * w.queries * w.keys));
        int64_t *kept = (int64_t *)(void *)a->seed_offset->data;
        kept[0] = (int64_t)w.stream.seed;
        kept[1] = (int64_t)w.stream.offset;
    }
    if (a->out->numel == 0 || w.size == 0 || w.keys == 0) {
        clear(a->out);
        clear(a->softmax_lse);
        return PROA_OK;
    }
    return w.dtype == PROA_F64 ? run_double(&w) : run_float(&w);
}

PROA_KERNEL(scaled_dot_product_attention_grad_cpu, scaled_dot_product_attention_grad)
{
    double p = proa__absent(a->seed_offset) ? 0 : a->dropout_p;
    attention w = describe(a->query, a->key, a->value, a->attn_mask, p, a->is_causal);
    w.out = a->out;
    w.lse = a->softmax_lse;
    w.d_out = a->d_out;
    w.d_q = a->d_query;
    w.d_k = a->d_key;
    w.d_v = a->d_value;
    if (w.drop) {
        const int64_t *kept = (const int64_t *)(const void *)a->seed_offset->data;
        w.stream = (proa_rng_state){(uint64_t)kept[0], (uint64_t)kept[1]};
    }
    if (a->d_query->numel == 0 || a->d_value->numel == 0) {
        clear(a->d_query);
        clear(a->d_key);
        clear(a->d_value);
        return PROA_OK;
    }
    return w.dtype == PROA_F64 ? run_double(&w) : run_float(&w);
}
