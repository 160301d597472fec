/* Shapes of RoI pooling and of deformable convolution. May use core and ops. */
#include "ops/regions/regions.h"

static bool is(int64_t dim, int64_t want) { return rows_dims_agree(dim, want); }

static bool is_count(const proa_tensor *t)
{
    return (t->dtype == PROA_I32 || t->dtype == PROA_I64) && t->ndim == 1;
}

/* ---- regions ---------------------------------------------------------------------------- */

/* Arguments that the poolings share. */
typedef struct pooled {
    const char *op;
    const proa_tensor *x, *boxes, *boxes_num, *offsets;
    int64_t rows, columns;
} pooled;

#define POOLED(a, name) \
    ((pooled){name, (a)->x, (a)->boxes, (a)->boxes_num, (a)->offsets, (a)->pooled_height, (a)->pooled_width})

static proa_status check_owners(const pooled *p)
{
    const proa_tensor *num = p->boxes_num, *offsets = p->offsets;
    int64_t batch = p->x->shape[0];
    if (!proa__absent(num)) {
        if (is_count(num) && is(num->shape[0], batch)) return PROA_OK;
        return OP_FAIL(p->op, INVALID_ARGUMENT, "boxes_num",
                       "is %s for x %s; expected int32 [N], the number of boxes of each image",
                       proa__tensor_text(num), proa__tensor_text(p->x));
    }
    if (proa__absent(offsets))
        return OP_FAIL(p->op, INVALID_ARGUMENT, "boxes_num",
                       "is missing; expected the number of boxes of each image, or boxes with LoD");
    if (offsets->dtype == PROA_I64 && offsets->ndim == 1 && is(offsets->shape[0], batch < 0 ? -1 : batch + 1))
        return PROA_OK;
    return OP_FAIL(
        p->op, INVALID_ARGUMENT, "offsets",
        "are %s for x %s; expected where the boxes of each image begin and the last end, int64 [N + 1]",
        proa__tensor_text(offsets), proa__tensor_text(p->x));
}

static proa_status check_pooled(const pooled *p)
{
    const proa_tensor *x = p->x, *boxes = p->boxes;
    if (x->ndim != 4)
        return OP_FAIL(p->op, INVALID_ARGUMENT, "x", "is %s; expected [N, C, H, W]", proa__tensor_text(x));
    if (boxes->ndim != 2 || boxes->dtype != x->dtype || !is(boxes->shape[1], 4))
        return OP_FAIL(p->op, INVALID_ARGUMENT, "boxes", "is %s for x %s; expected x's dtype and [boxes, 4]",
                       proa__tensor_text(boxes), proa__tensor_text(x));
    if (p->rows < 1 || p->columns < 1 || p->rows > INT32_MAX || p->columns > INT32_MAX)
        return OP_FAIL(p->op, INVALID_ARGUMENT,
                       p->rows < 1 || p->rows > INT32_MAX ? "pooled_height" : "pooled_width",
                       "is %lld; expected 1 or more",
                       (long long)(p->rows < 1 || p->rows > INT32_MAX ? p->rows : p->columns));
    return check_owners(p);
}

static proa_meta pooled_meta(const pooled *p, int64_t channels)
{
    return (proa_meta){.dtype = (proa_dtype)p->x->dtype,
                       .ndim = 4,
                       .shape = {p->boxes->shape[0], channels, p->rows, p->columns}};
}

/* Checks an operand of a gradient op that has an output's shape. */
static proa_status check_like(const pooled *p, const char *name, const proa_tensor *t, int64_t channels,
                              proa_dtype dtype)
{
    proa_meta m = pooled_meta(p, channels);
    bool same = t->ndim == 4 && t->dtype == dtype;
    for (int i = 0; same && i < 4; i++) same = is(t->shape[i], m.shape[i]);
    if (same) return PROA_OK;
    return OP_FAIL(p->op, INVALID_ARGUMENT, name, "is %s; expected %s %s", proa__tensor_text(t),
                   proa_dtype_name(dtype), proa__shape_text(m.shape, 4));
}

proa_status roi_align_infer(const proa_roi_align_args *a, proa_roi_align_metas *m)
{
    pooled p = POOLED(a, "roi_align");
    PROA_TRY(check_pooled(&p));
    m->out = pooled_meta(&p, a->x->shape[1]);
    return PROA_OK;
}

proa_status roi_align_grad_infer(const proa_roi_align_grad_args *a, proa_roi_align_grad_metas *m)
{
    pooled p = POOLED(a, "roi_align_grad");
    PROA_TRY(check_pooled(&p));
    m->d_x = proa_meta_of(a->x);
    return check_like(&p, "d_out", a->d_out, a->x->shape[1], (proa_dtype)a->x->dtype);
}

proa_status roi_pool_infer(const proa_roi_pool_args *a, proa_roi_pool_metas *m)
{
    pooled p = POOLED(a, "roi_pool");
    PROA_TRY(check_pooled(&p));
    m->out = m->arg_max = pooled_meta(&p, a->x->shape[1]);
    m->arg_max.dtype = PROA_I64;
    return PROA_OK;
}

proa_status roi_pool_grad_infer(const proa_roi_pool_grad_args *a, proa_roi_pool_grad_metas *m)
{
    pooled p = POOLED(a, "roi_pool_grad");
    PROA_TRY(check_pooled(&p));
    PROA_TRY(check_like(&p, "arg_max", a->arg_max, a->x->shape[1], PROA_I64));
    m->d_x = proa_meta_of(a->x);
    return check_like(&p, "d_out", a->d_out, a->x->shape[1], (proa_dtype)a->x->dtype);
}

proa_status prroi_pool_infer(const proa_prroi_pool_args *a, proa_prroi_pool_metas *m)
{
    pooled p = POOLED(a, "prroi_pool");
    PROA_TRY(check_pooled(&p));
    m->out = pooled_meta(&p, a->x->shape[1]);
    return PROA_OK;
}

proa_status prroi_pool_grad_infer(const proa_prroi_pool_grad_args *a, proa_prroi_pool_grad_metas *m)
{
    pooled p = POOLED(a, "prroi_pool_grad");
    PROA_TRY(check_pooled(&p));
    m->d_x = proa_meta_of(a->x);
    m->d_boxes = proa_meta_of(a->boxes);
    return check_like(&p, "d_out", a->d_out, a->x->shape[1], (proa_dtype)a->x->dtype);
}

static proa_status check_parts(const pooled *p, int64_t channels)
{
    PROA_TRY(check_pooled(p));
    if (channels < 1 || channels > INT32_MAX)
        return OP_FAIL(p->op, INVALID_ARGUMENT, "output_channels", "is %lld; expected 1 or more",
                       (long long)channels);
    if (p->rows > INT32_MAX / p->columns || !is(p->x->shape[1], p->rows * p->columns * channels))
        return OP_FAIL(p->op, INVALID_ARGUMENT, "x",
                       "is %s; expected %lld · %lld · %lld channels: output_channels for each of the cells",
                       proa__tensor_text(p->x), (long long)channels, (long long)p->rows,
                       (long long)p->columns);
    return PROA_OK;
}

proa_status psroi_pool_infer(const proa_psroi_pool_args *a, proa_psroi_pool_metas *m)
{
    pooled p = POOLED(a, "psroi_pool");
    PROA_TRY(check_parts(&p, a->output_channels));
    m->out = pooled_meta(&p, a->output_channels);
    return PROA_OK;
}

proa_status psroi_pool_grad_infer(const proa_psroi_pool_grad_args *a, proa_psroi_pool_grad_metas *m)
{
    pooled p = POOLED(a, "psroi_pool_grad");
    PROA_TRY(check_parts(&p, a->output_channels));
    m->d_x = proa_meta_of(a->x);
    return check_like(&p, "d_out", a->d_out, a->output_channels, (proa_dtype)a->x->dtype);
}

/* ---- deformable convolution ------------------------------------------------------------- */

static proa_status pair(const deformable_params *p, const char *name, const proa_ints *v, int64_t least,
                        int64_t *to)
{
    bool ok = v->count == 2;
    for (int i = 0; ok && i < 2; i++) ok = (to[i] = v->at[i]) >= least && to[i] <= INT32_MAX;
    if (ok) return PROA_OK;
    if (v->count != 2)
        return OP_FAIL(p->op, INVALID_ARGUMENT, name, "has %lld numbers; expected 2 (down and across)",
                       (long long)v->count);
    return OP_FAIL(p->op, INVALID_ARGUMENT, name, "is [%lld, %lld]; expected %lld or more",
                   (long long)v->at[0], (long long)v->at[1], (long long)least);
}

static int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation)
{
    if (in < 0 || kernel < 0) return -1;
    int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
}

/* True if t is [batch, each · deformable_groups · kernel points, out_height, out_width]. */
static bool follows(const deformable_geometry *g, const proa_tensor *t, const proa_tensor *x, int64_t each)
{
    int64_t points = g->kh < 0 || g->kw < 0 ? -1 : each * g->deformable_groups * g->kh * g->kw;
    return t->ndim == 4 && t->dtype == x->dtype && is(t->shape[0], g->batch) && is(t->shape[1], points) &&
           is(t->shape[2], g->out_height) && is(t->shape[3], g->out_width);
}

static proa_status check_groups(const deformable_params *p, const deformable_geometry *g)
{
    if (p->groups < 1 || p->groups > INT32_MAX || p->deformable_groups < 1 ||
        p->deformable_groups > INT32_MAX)
        return OP_FAIL(p->op, INVALID_ARGUMENT, p->groups < 1 ? "groups" : "deformable_groups",
                       "is %lld; expected 1 or more",
                       (long long)(p->groups < 1 ? p->groups : p->deformable_groups));
    int64_t each = p->weight->shape[1];
    if (!is(g->channels, each < 0 ? -1 : each * p->groups) ||
        (g->out_channels >= 0 && g->out_channels % p->groups) ||
        (g->channels >= 0 && (g->channels % p->deformable_groups || g->channels % p->groups)) ||
        (g->channels == 0 && p->deformable_groups > 1))
        return OP_FAIL(
            p->op, INVALID_ARGUMENT, "weight",
            "is %s for x %s, %lld groups and %lld deformable_groups; expected [out, C / groups, KH, KW], "
            "with out and C divisible by groups, and C by deformable_groups",
            proa__tensor_text(p->weight), proa__tensor_text(p->x), (long long)p->groups,
            (long long)p->deformable_groups);
    return PROA_OK;
}

proa_status proa__deformable_geometry(const deformable_params *p, deformable_geometry *g)
{
    const proa_tensor *x = p->x, *w = p->weight;
    if (x->ndim != 4)
        return OP_FAIL(p->op, INVALID_ARGUMENT, "x", "is %s; expected [N, C, H, W]", proa__tensor_text(x));
    bool window = w->ndim == 4 && w->shape[2] != 0 && w->shape[3] != 0 && w->shape[2] <= INT16_MAX &&
                  w->shape[3] <= INT16_MAX;
    if (!window || w->dtype != x->dtype)
        return OP_FAIL(p->op, INVALID_ARGUMENT, "weight",
                       "is %s for x %s; expected x's dtype and [out, C / groups, KH, KW]",
                       proa__tensor_text(w), proa__tensor_text(x));
    *g = (deformable_geometry){x->shape[0], x->shape[1],         x->shape[2],
                               x->shape[3], w->shape[0],         w->shape[2],
                               w->shape[3], .groups = p->groups, .deformable_groups = p->deformable_groups};
    PROA_TRY(pair(p, "stride", &p->stride, 1, g->stride));
    PROA_TRY(pair(p, "padding", &p->padding, 0, g->padding));
    PROA_TRY(pair(p, "dilation", &p->dilation, 1, g->dilation));
    PROA_TRY(check_groups(p, g));
    g->out_height = out_size(g->height, g->kh, g->stride[0], g->padding[0], g->dilation[0]);
    g->out_width = out_size(g->width, g->kw, g->stride[1], g->padding[1], g->dilation[1]);
    if (g->out_height == 0 || g->out_width == 0)
        return OP_FAIL(
            p->op, INVALID_ARGUMENT, "weight",
            "is %s, larger than x %s with padding [%lld, %lld]; expected a size that one window fits into",
            proa__tensor_text(w), proa__tensor_text(x), (long long)g->padding[0], (long long)g->padding[1]);
    bool offset = !follows(g, p->offset, x, 2), mask = !proa__absent(p->mask) && !follows(g, p->mask, x, 1);
    if (!offset && !mask) return PROA_OK;
    return OP_FAIL(
        p->op, INVALID_ARGUMENT, offset ? "offset" : "mask",
        "is %s; expected [N, %d · deformable_groups · KH · KW, OH, OW] of x's dtype, for %lld images, "
        "%lld groups, %lld × %lld points and an output of %lld × %lld",
        proa__tensor_text(offset ? p->offset : p->mask), offset ? 2 : 1, (long long)g->batch,
        (long long)g->deformable_groups, (long long)g->kh, (long long)g->kw, (long long)g->out_height,
        (long long)g->out_width);
}

proa_status deformable_conv_infer(const proa_deformable_conv_args *a, proa_deformable_conv_metas *m)
{
    deformable_geometry g;
    PROA_TRY(proa__deformable_geometry(&DEFORMABLE_PARAMS(a, "deformable_conv"), &g));
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype,
                         .ndim = 4,
                         .shape = {g.batch, g.out_channels, g.out_height, g.out_width}};
    return PROA_OK;
}

proa_status deformable_conv_grad_infer(const proa_deformable_conv_grad_args *a,
                                       proa_deformable_conv_grad_metas *m)
{
    deformable_geometry g;
    PROA_TRY(proa__deformable_geometry(&DEFORMABLE_PARAMS(a, "deformable_conv_grad"), &g));
    const proa_tensor *d = a->d_out;
    if (d->ndim != 4 || d->dtype != a->x->dtype || !is(d->shape[0], g.batch) ||
        !is(d->shape[1], g.out_channels) || !is(d->shape[2], g.out_height) || !is(d->shape[3], g.out_width))
        return OP_FAIL("deformable_conv_grad", INVALID_ARGUMENT, "d_out",
                       "is %s; expected [%lld, %lld, %lld, %lld] of x's dtype", proa__tensor_text(d),
                       (long long)g.batch, (long long)g.out_channels, (long long)g.out_height,
                       (long long)g.out_width);
    m->d_x = proa_meta_of(a->x);
    m->d_offset = proa_meta_of(a->offset);
    m->d_weight = proa_meta_of(a->weight);
    if (proa__absent(a->mask)) m->d_mask.ndim = -1;
    else m->d_mask = proa_meta_of(a->mask);
    return PROA_OK;
}
