/* Portable attention: forward by (batch, head, block of queries), backward by (batch, key head), each worked
 * through by one thread, so that sums do not depend on the thread count. May use core and helpers of ops/. */
#include "ops_impl.h"

#include "ops/gemm.h"
#include "ops/philox16.h"
#include "ops/rows.h"

enum { BQ = 192, BK = 256 };

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
    int64_t items, slots;
    size_t slot_bytes;
    char *scratch;
} attention;

/* The products of gemm.h under the names that the bodies use. */
static inline int64_t ld_float(int64_t n) { return gemm_ld_f32(n); }
static inline int64_t ld_double(int64_t n) { return gemm_ld_f64(n); }
static inline int64_t tile_size_float(int64_t m, int64_t n) { return gemm_tile_size_f32(m, n); }
static inline int64_t tile_size_double(int64_t m, int64_t n) { return gemm_tile_size_f64(m, n); }
static inline int64_t pack_size_float(int64_t m, int64_t n, int64_t k) { return gemm_pack_size_f32(m, n, k); }
static inline int64_t pack_size_double(int64_t m, int64_t n, int64_t k)
{
    return gemm_pack_size_f64(m, n, k);
}

static void add_float(int64_t m, int64_t n, int64_t k, const float *a, gemm_strides as, const float *b,
                      gemm_strides bs, float *c, int64_t ldc, float *pack)
{
    gemm_add_f32(m, n, k, a, as, false, b, bs, c, ldc, pack);
}

static void add_double(int64_t m, int64_t n, int64_t k, const double *a, gemm_strides as, const double *b,
                       gemm_strides bs, double *c, int64_t ldc, double *pack)
{
    gemm_add_f64(m, n, k, a, as, false, b, bs, c, ldc, pack);
}

#define T float
#include "cpu.inc"
#undef T
#define T double
#include "cpu.inc"
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
    w.items = a->query->shape[0] * w.heads * ((w.queries + BQ - 1) / BQ);
    if (w.drop) {
        w.stream = proa__rng_reserve(philox16_blocks(a->query->shape[0] * w.heads * w.queries * w.keys));
        int64_t *kept = (int64_t *)(void *)a->seed_offset->data;
        kept[0] = (int64_t)w.stream.seed;
        kept[1] = (int64_t)w.stream.offset;
    }
    if (w.items == 0 || w.size == 0 || w.value_size == 0 || w.keys == 0) {
        clear(a->out);
        clear(a->softmax_lse);
        return PROA_OK;
    }
    return w.dtype == PROA_F64 ? run_tiles_double(&w) : run_tiles_float(&w);
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
    w.items = a->query->shape[0] * w.kv_heads;
    if (w.drop) {
        const int64_t *kept = (const int64_t *)(const void *)a->seed_offset->data;
        w.stream = (proa_rng_state){(uint64_t)kept[0], (uint64_t)kept[1]};
    }
    if (w.items == 0 || w.size == 0 || w.value_size == 0 || w.keys == 0 || w.queries == 0) {
        clear(a->d_query);
        clear(a->d_key);
        clear(a->d_value);
        return PROA_OK;
    }
    return w.dtype == PROA_F64 ? run_tiles_double(&w) : run_tiles_float(&w);
}
