/* Validates pooling arguments, computes output sizes, and infers the shapes of the family. May use core
 * only. */
#include "ops/pool/geometry.h"

#include "ops/ints.h"
#include "ops/padding.h"

#define FAIL(p, argument, ...) \
    proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op((p)->op), argument, __VA_ARGS__)

static proa_status padding(const pool_params *p, pool_geometry *g)
{
    const proa_ints *v = &p->padding;
    if (p->algorithm == PROA_PADDING_ALGORITHM_VALID) return PROA_OK;
    if (p->algorithm == PROA_PADDING_ALGORITHM_SAME) {
        for (int i = 3 - p->dims; i < 3; i++) {
            if (g->in[i] < 0) continue;
            proa__same_padding(g->in[i], g->kernel[i], g->stride[i], &g->before[i], &g->after[i]);
        }
        return PROA_OK;
    }
    if (v->count != p->dims && v->count != 2 * p->dims)
        return FAIL(p, "padding", "must have %d values, or %d (before and after each spatial dim), got %lld",
                    p->dims, 2 * p->dims, (long long)v->count);
    int each = v->count == p->dims ? 1 : 2;
    for (int i = 0; i < p->dims; i++) {
        int at = 3 - p->dims + i;
        g->before[at] = v->at[i * each], g->after[at] = v->at[i * each + each - 1];
        int64_t least = g->before[at] < g->after[at] ? g->before[at] : g->after[at];
        int64_t most = g->before[at] > g->after[at] ? g->before[at] : g->after[at];
        if (least < 0 || most > INT32_MAX)
            return FAIL(p, "padding", "has value %lld; expected 0 to %d",
                        (long long)(least < 0 ? least : most), INT32_MAX);
    }
    return PROA_OK;
}

static proa_status output_size(const pool_params *p, pool_geometry *g, int i)
{
    if (p->adaptive) {
        g->out[i] = g->kernel[i];
        if (g->in[i] == 0) return FAIL(p, "x", "has an empty spatial dim: %s", proa__tensor_text(p->x));
        return PROA_OK;
    }
    if (g->in[i] < 0) {
        g->out[i] = -1;
        return PROA_OK;
    }
    int64_t span = g->in[i] + g->before[i] + g->after[i] - g->kernel[i];
    if (p->ceil_mode) span += g->stride[i] - 1; /* a last window may reach beyond the input */
    /* A window larger than the padded input is the only one, if it is larger by less than a stride. */
    if (span <= -g->stride[i] || g->in[i] == 0)
        return FAIL(p, "kernel_size", "has value %lld, more than x's size %lld with padding %lld + %lld",
                    (long long)g->kernel[i], (long long)g->in[i], (long long)g->before[i],
                    (long long)g->after[i]);
    g->out[i] = span / g->stride[i] + 1;
    return PROA_OK;
}

proa_status proa__pool_geometry(const pool_params *p, pool_geometry *g)
{
    *g = (pool_geometry){.dims = p->dims,
                         .channels_last = proa__channels_last(p->format),
                         .adaptive = p->adaptive,
                         .exclusive = p->exclusive || p->adaptive,
                         .type = p->type,
                         .in = {1, 1, 1},
                         .out = {1, 1, 1},
                         .kernel = {1, 1, 1},
                         .stride = {1, 1, 1}};
    if (p->x->ndim != p->dims + 2)
        return FAIL(p, "x", "must have %d dims (batch, channels, %d spatial), got %s", p->dims + 2, p->dims,
                    proa__tensor_text(p->x));
    g->batch = p->x->shape[0];
    g->channels = p->x->shape[g->channels_last ? p->dims + 1 : 1];
    for (int i = 0; i < p->dims; i++) g->in[3 - p->dims + i] = p->x->shape[(g->channels_last ? 1 : 2) + i];
    const char *size = p->adaptive ? "output_size" : "kernel_size";
    PROA_TRY(proa__window_values(p->op, size, &p->kernel_size, p->dims, 1, g->kernel));
    if (!p->adaptive) {
        if (p->stride.count)
            PROA_TRY(proa__window_values(p->op, "stride", &p->stride, p->dims, 1, g->stride));
        else /* no stride: windows side by side */ memcpy(g->stride, g->kernel, sizeof g->stride);
        PROA_TRY(padding(p, g));
    }
    for (int i = 3 - p->dims; i < 3; i++) PROA_TRY(output_size(p, g, i));
    return PROA_OK;
}

void proa__pool_meta_out(const pool_geometry *g, proa_dtype dtype, proa_meta *m)
{
    m->dtype = dtype;
    m->ndim = (int8_t)(g->dims + 2);
    m->shape[0] = g->batch;
    m->shape[g->channels_last ? g->dims + 1 : 1] = g->channels;
    for (int i = 0; i < g->dims; i++) m->shape[(g->channels_last ? 1 : 2) + i] = g->out[3 - g->dims + i];
}

/* ---- inference ---- */

static proa_status infer_out(const pool_params *p, proa_meta *out)
{
    pool_geometry g;
    PROA_TRY(proa__pool_geometry(p, &g));
    proa__pool_meta_out(&g, (proa_dtype)p->x->dtype, out);
    return PROA_OK;
}

/* Output-sized operands of a gradient op. */
static proa_status check_out(const pool_params *p, const char *name, const proa_tensor *t)
{
    proa_meta m;
    PROA_TRY(infer_out(p, &m));
    bool same = t->ndim == m.ndim && proa__shapes_agree(t->shape, m.shape, m.ndim);
    if (same) return PROA_OK;
    return FAIL(p, name, "must have shape %s, as pooling made it, got %s", proa__shape_text(m.shape, m.ndim),
                proa__tensor_text(t));
}

static proa_status check_dtype(const pool_params *p, const char *name, const proa_tensor *t)
{
    if (t->dtype == p->x->dtype) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(p->op), name, "is %s, but x is %s",
                         proa_dtype_name((proa_dtype)t->dtype), proa_dtype_name((proa_dtype)p->x->dtype));
}

proa_status max_pool_infer(int rank, const proa_max_pool1d_args *a, proa_max_pool1d_metas *m)
{
    return infer_out(&MAX_PARAMS(a, rank), &m->out);
}

proa_status avg_pool_infer(int rank, const proa_avg_pool1d_args *a, proa_avg_pool1d_metas *m)
{
    return infer_out(&AVG_PARAMS(a, rank), &m->out);
}

proa_status adaptive_max_pool_infer(int rank, const proa_adaptive_max_pool1d_args *a,
                                    proa_adaptive_max_pool1d_metas *m)
{
    return infer_out(&ADAPTIVE_MAX_PARAMS(a, rank), &m->out);
}

proa_status adaptive_avg_pool_infer(int rank, const proa_adaptive_avg_pool1d_args *a,
                                    proa_adaptive_avg_pool1d_metas *m)
{
    return infer_out(&ADAPTIVE_AVG_PARAMS(a, rank), &m->out);
}

proa_status pool_grad_infer(int rank, const proa_pool2d_grad_args *a, proa_pool2d_grad_metas *m)
{
    const pool_params p = GRAD_PARAMS(a, rank, "_grad");
    m->d_x = proa_meta_of(a->x);
    PROA_TRY(check_dtype(&p, "d_out", a->d_out));
    return check_out(&p, "d_out", a->d_out);
}

proa_status pool_double_grad_infer(int rank, const proa_pool2d_double_grad_args *a,
                                   proa_pool2d_double_grad_metas *m)
{
    const pool_params p = GRAD_PARAMS(a, rank, "_double_grad");
    PROA_TRY(check_dtype(&p, "v", a->v));
    return infer_out(&p, &m->out);
}

proa_status max_pool_with_index_infer(int rank, const proa_max_pool2d_with_index_args *a,
                                      proa_max_pool2d_with_index_metas *m)
{
    PROA_TRY(infer_out(&INDEX_PARAMS(a, rank, "_with_index"), &m->out));
    m->mask = m->out;
    m->mask.dtype = PROA_I32;
    return PROA_OK;
}

proa_status max_pool_with_index_grad_infer(int rank, const proa_max_pool2d_with_index_grad_args *a,
                                           proa_max_pool2d_with_index_grad_metas *m)
{
    const pool_params p = INDEX_PARAMS(a, rank, "_with_index_grad");
    m->d_x = proa_meta_of(a->x);
    PROA_TRY(check_out(&p, "mask", a->mask));
    PROA_TRY(check_dtype(&p, "d_out", a->d_out));
    return check_out(&p, "d_out", a->d_out);
}
