/* Shapes and dtypes of the normalizations, and the view of a tensor as rows (norm.h). May use core only. */
#include "ops/ints.h"
#include "ops/norm/norm.h"

#define FAIL(op, argument, ...) \
    proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), argument, __VA_ARGS__)

static int64_t dims_product(const proa_tensor *t, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++) n = n < 0 || t->shape[i] < 0 ? -1 : n * t->shape[i];
    return n;
}

int64_t proa__norm_channels(const proa_tensor *x, proa_data_format f)
{
    return x->shape[proa__channels_last(f) ? x->ndim - 1 : 1];
}

bool proa__one_per_channel(const proa_tensor *x, proa_data_format f)
{
    int64_t channels = proa__norm_channels(x, f);
    return channels > 0 && dims_product(x, 0, x->ndim) == channels;
}

norm_rows proa__batch_rows(const proa_tensor *x, proa_data_format f)
{
    bool last = proa__channels_last(f);
    int64_t c = proa__norm_channels(x, f), inner = last ? 1 : dims_product(x, 2, x->ndim);
    int64_t outer = last ? dims_product(x, 0, x->ndim - 1) : x->shape[0];
    return (norm_rows){.rows = c,
                       .groups = c,
                       .group_step = inner,
                       .segments = outer,
                       .segment_step = c * inner,
                       .length = inner,
                       .group_weights = 1,
                       .weights = c};
}

norm_rows proa__layer_rows(const proa_tensor *x, int64_t begin_norm_axis)
{
    int64_t rows = dims_product(x, 0, (int)begin_norm_axis),
            n = dims_product(x, (int)begin_norm_axis, x->ndim);
    return (norm_rows){.rows = rows,
                       .groups = 1,
                       .image_step = n,
                       .segments = 1,
                       .segment_step = n,
                       .length = n,
                       .by_element = 1,
                       .weights = n};
}

norm_rows proa__group_rows(const proa_tensor *x, int64_t groups, proa_data_format f)
{
    bool last = proa__channels_last(f);
    int64_t c = proa__norm_channels(x, f), each = c / groups;
    int64_t pixels = last ? dims_product(x, 1, x->ndim - 1) : dims_product(x, 2, x->ndim);
    norm_rows n = {.rows = x->shape[0] * groups,
                   .groups = groups,
                   .image_step = c * pixels,
                   .group_weights = each,
                   .weights = c};
    n.group_step = last ? each : each * pixels;
    n.segments = last ? pixels : each;
    n.segment_step = last ? c : pixels;
    n.length = last ? each : pixels;
    n.by_element = last;
    n.by_segment = !last;
    return n;
}

/* Statistics and parameters may be float32 beside a half x. */
static proa_dtype statistics_dtype(const proa_tensor *x)
{
    return x->dtype == PROA_F16 || x->dtype == PROA_BF16 ? PROA_F32 : (proa_dtype)x->dtype;
}

static proa_status check_parameter(const char *op, const char *name, const proa_tensor *t,
                                   const proa_tensor *x, int64_t n)
{
    if (proa__absent(t)) return PROA_OK;
    if (t->dtype != x->dtype && t->dtype != statistics_dtype(x))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                             "is %s; expected x's %s or %s", proa_dtype_name((proa_dtype)t->dtype),
                             proa_dtype_name((proa_dtype)x->dtype), proa_dtype_name(statistics_dtype(x)));
    int64_t count = dims_product(t, 0, t->ndim);
    if (count < 0 || n < 0 || count == n) return PROA_OK;
    return FAIL(op, name, "must have %lld values, got %s", (long long)n, proa__tensor_text(t));
}

static proa_status check_same(const char *op, const proa_tensor *d_out, const proa_tensor *x)
{
    bool same = d_out->ndim == x->ndim && d_out->dtype == x->dtype &&
                proa__shapes_agree(d_out->shape, x->shape, x->ndim);
    if (same) return PROA_OK;
    return FAIL(op, "d_out", "must be like x, %s, got %s", proa__tensor_text(x), proa__tensor_text(d_out));
}

static proa_status check_rank(const char *op, const proa_tensor *x, int least)
{
    if (x->ndim >= least) return PROA_OK;
    return FAIL(op, "x", "must have at least %d dims, got %s", least, proa__tensor_text(x));
}

static void vector_meta(proa_meta *m, proa_dtype dtype, int64_t n)
{
    m->dtype = dtype;
    m->ndim = 1;
    m->shape[0] = n;
}

/* A parameter's gradient: like the parameter, or of x's statistics when there is none. */
static void parameter_meta(proa_meta *m, const proa_tensor *t, const proa_tensor *x, int64_t n)
{
    if (proa__absent(t)) vector_meta(m, statistics_dtype(x), n);
    else *m = proa_meta_of(t);
}

/* ---- batch_norm ---- */

proa_status batch_norm_infer(const proa_batch_norm_args *a, proa_batch_norm_metas *m)
{
    PROA_TRY(check_rank("batch_norm", a->x, 2));
    int64_t c = proa__norm_channels(a->x, a->data_format);
    PROA_TRY(check_parameter("batch_norm", "running_mean", a->running_mean, a->x, c));
    PROA_TRY(check_parameter("batch_norm", "running_var", a->running_var, a->x, c));
    PROA_TRY(check_parameter("batch_norm", "weight", a->weight, a->x, c));
    PROA_TRY(check_parameter("batch_norm", "bias", a->bias, a->x, c));
    m->out = proa_meta_of(a->x);
    m->mean_out = proa_meta_of(a->running_mean);
    m->variance_out = proa_meta_of(a->running_var);
    vector_meta(&m->saved_mean, statistics_dtype(a->x), c);
    m->saved_variance = m->saved_mean;
    return PROA_OK;
}

proa_status batch_norm_grad_infer(const proa_batch_norm_grad_args *a, proa_batch_norm_grad_metas *m)
{
    PROA_TRY(check_rank("batch_norm_grad", a->x, 2));
    int64_t c = proa__norm_channels(a->x, a->data_format);
    PROA_TRY(check_parameter("batch_norm_grad", "weight", a->weight, a->x, c));
    PROA_TRY(check_parameter("batch_norm_grad", "saved_mean", a->saved_mean, a->x, c));
    PROA_TRY(check_parameter("batch_norm_grad", "saved_variance", a->saved_variance, a->x, c));
    PROA_TRY(check_same("batch_norm_grad", a->d_out, a->x));
    m->d_x = proa_meta_of(a->x);
    parameter_meta(&m->d_weight, a->weight, a->x, c);
    m->d_bias = m->d_weight;
    return PROA_OK;
}

/* ---- layer_norm ---- */

static proa_status layer_axis(const char *op, const proa_tensor *x, int64_t axis)
{
    if (axis > 0 && axis < x->ndim) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "begin_norm_axis",
                         "is %lld; expected 1 to %d for x %s", (long long)axis, x->ndim - 1,
                         proa__tensor_text(x));
}

static void layer_statistics(const proa_tensor *x, int64_t axis, proa_meta *m)
{
    m->dtype = statistics_dtype(x);
    m->ndim = (int8_t)axis;
    for (int i = 0; i < axis; i++) m->shape[i] = x->shape[i];
}

proa_status layer_norm_infer(const proa_layer_norm_args *a, proa_layer_norm_metas *m)
{
    PROA_TRY(layer_axis("layer_norm", a->x, a->begin_norm_axis));
    int64_t n = dims_product(a->x, (int)a->begin_norm_axis, a->x->ndim);
    PROA_TRY(check_parameter("layer_norm", "weight", a->weight, a->x, n));
    PROA_TRY(check_parameter("layer_norm", "bias", a->bias, a->x, n));
    m->out = proa_meta_of(a->x);
    layer_statistics(a->x, a->begin_norm_axis, &m->mean);
    m->variance = m->mean;
    return PROA_OK;
}

proa_status layer_norm_grad_infer(const proa_layer_norm_grad_args *a, proa_layer_norm_grad_metas *m)
{
    PROA_TRY(layer_axis("layer_norm_grad", a->x, a->begin_norm_axis));
    int64_t n = dims_product(a->x, (int)a->begin_norm_axis, a->x->ndim);
    int64_t rows = dims_product(a->x, 0, (int)a->begin_norm_axis);
    PROA_TRY(check_parameter("layer_norm_grad", "weight", a->weight, a->x, n));
    PROA_TRY(check_parameter("layer_norm_grad", "mean", a->mean, a->x, rows));
    PROA_TRY(check_parameter("layer_norm_grad", "variance", a->variance, a->x, rows));
    PROA_TRY(check_same("layer_norm_grad", a->d_out, a->x));
    m->d_x = proa_meta_of(a->x);
    parameter_meta(&m->d_weight, a->weight, a->x, n);
    m->d_bias = m->d_weight;
    return PROA_OK;
}

/* ---- group_norm and instance_norm ---- */

static proa_status check_groups(const char *op, const proa_tensor *x, int64_t groups, proa_data_format f)
{
    PROA_TRY(check_rank(op, x, 2));
    int64_t c = proa__norm_channels(x, f);
    if (groups >= 1 && (c < 0 || c % groups == 0)) return PROA_OK;
    return FAIL(op, "groups", "is %lld, which does not divide the %lld channels of x %s", (long long)groups,
                (long long)c, proa__tensor_text(x));
}

proa_status group_norm_infer(const proa_group_norm_args *a, proa_group_norm_metas *m)
{
    PROA_TRY(check_groups("group_norm", a->x, a->num_groups, a->data_format));
    int64_t c = proa__norm_channels(a->x, a->data_format);
    PROA_TRY(check_parameter("group_norm", "weight", a->weight, a->x, c));
    PROA_TRY(check_parameter("group_norm", "bias", a->bias, a->x, c));
    m->out = proa_meta_of(a->x);
    m->mean =
        (proa_meta){.dtype = statistics_dtype(a->x), .ndim = 2, .shape = {a->x->shape[0], a->num_groups}};
    m->variance = m->mean;
    return PROA_OK;
}

proa_status group_norm_grad_infer(const proa_group_norm_grad_args *a, proa_group_norm_grad_metas *m)
{
    PROA_TRY(check_groups("group_norm_grad", a->x, a->num_groups, a->data_format));
    int64_t c = proa__norm_channels(a->x, a->data_format);
    int64_t rows = a->x->shape[0] < 0 ? -1 : a->x->shape[0] * a->num_groups;
    PROA_TRY(check_parameter("group_norm_grad", "weight", a->weight, a->x, c));
    PROA_TRY(check_parameter("group_norm_grad", "mean", a->mean, a->x, rows));
    PROA_TRY(check_parameter("group_norm_grad", "variance", a->variance, a->x, rows));
    PROA_TRY(check_same("group_norm_grad", a->d_out, a->x));
    m->d_x = proa_meta_of(a->x);
    parameter_meta(&m->d_weight, a->weight, a->x, c);
    m->d_bias = m->d_weight;
    return PROA_OK;
}

proa_status instance_norm_infer(const proa_instance_norm_args *a, proa_instance_norm_metas *m)
{
    PROA_TRY(check_rank("instance_norm", a->x, 2));
    int64_t c = a->x->shape[1];
    PROA_TRY(check_parameter("instance_norm", "weight", a->weight, a->x, c));
    PROA_TRY(check_parameter("instance_norm", "bias", a->bias, a->x, c));
    m->out = proa_meta_of(a->x);
    vector_meta(&m->saved_mean, statistics_dtype(a->x), dims_product(a->x, 0, 2));
    m->saved_variance = m->saved_mean;
    return PROA_OK;
}

proa_status instance_norm_grad_infer(const proa_instance_norm_grad_args *a, proa_instance_norm_grad_metas *m)
{
    PROA_TRY(check_rank("instance_norm_grad", a->x, 2));
    int64_t c = a->x->shape[1], rows = dims_product(a->x, 0, 2);
    PROA_TRY(check_parameter("instance_norm_grad", "weight", a->weight, a->x, c));
    PROA_TRY(check_parameter("instance_norm_grad", "saved_mean", a->saved_mean, a->x, rows));
    PROA_TRY(check_parameter("instance_norm_grad", "saved_variance", a->saved_variance, a->x, rows));
    PROA_TRY(check_same("instance_norm_grad", a->d_out, a->x));
    m->d_x = proa_meta_of(a->x);
    parameter_meta(&m->d_weight, a->weight, a->x, c);
    m->d_bias = m->d_weight;
    return PROA_OK;
}
