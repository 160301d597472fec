/* Validates convolution arguments and computes output sizes (Dumoulin and Visin, A guide to convolution
 * arithmetic for deep learning, 2016). May use core only. */
#include "ops/conv/geometry.h"

#include "core/kernel_cache.h"
#include "core/run.h"
#include "core/thread.h"
#include "ops/ints.h"
#include "ops/padding.h"

#define FAIL(p, argument, ...) \
    proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op((p)->op), argument, __VA_ARGS__)

static proa_status explicit_padding(const conv_params *p, conv_geometry *g)
{
    const proa_ints *v = &p->padding;
    if (v->count != p->dims && v->count != 2 * p->dims)
        return FAIL(p, "padding", "must have %d values, or %d (before and after each spatial dim), got %lld",
                    p->dims, 2 * p->dims, (long long)v->count);
    int each = v->count == p->dims ? 1 : 2;
    for (int i = 0; i < p->dims; i++) {
        int64_t before = v->at[i * each], after = v->at[i * each + each - 1];
        if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX)
            return FAIL(p, "padding", "has value %lld; expected 0 or more",
                        (long long)(before < 0 ? before : after));
        g->before[3 - p->dims + i] = before;
        g->after[3 - p->dims + i] = after;
    }
    return PROA_OK;
}

/* SAME keeps ceil(size / stride), and Paddle ignores dilation with it; VALID has no padding. */
static proa_status resolve_padding(const conv_params *p, conv_geometry *g, const int64_t *size)
{
    if (p->algorithm == PROA_PADDING_ALGORITHM_EXPLICIT) return explicit_padding(p, g);
    for (int i = 3 - p->dims; i < 3; i++) {
        g->before[i] = g->after[i] = 0;
        if (p->algorithm != PROA_PADDING_ALGORITHM_SAME) continue;
        g->dilation[i] = 1;
        if (size[i] < 0) {
            g->before[i] = g->after[i] = -1;
            continue;
        }
        proa__same_padding(size[i], g->kernel[i], g->stride[i], &g->before[i], &g->after[i]);
    }
    return PROA_OK;
}

static int64_t extent(const conv_geometry *g, int i) { return g->dilation[i] * (g->kernel[i] - 1) + 1; }

static proa_status forward_size(const conv_params *p, conv_geometry *g, int i)
{
    if (g->in[i] < 0 || g->kernel[i] < 0) {
        g->out[i] = -1;
        return PROA_OK;
    }
    int64_t span = g->in[i] + g->before[i] + g->after[i] - extent(g, i);
    if (span < 0)
        return FAIL(p, "weight",
                    "spans %lld, more than x's size %lld with padding %lld + %lld; pad more or use a "
                    "smaller kernel",
                    (long long)extent(g, i), (long long)g->in[i], (long long)g->before[i],
                    (long long)g->after[i]);
    g->out[i] = span / g->stride[i] + 1;
    return PROA_OK;
}

static proa_status transposed_size(const conv_params *p, conv_geometry *g, int i)
{
    int at = i - (3 - p->dims);
    bool given = p->output_size.count > 0;
    if (g->out[i] < 0 || g->kernel[i] < 0 || g->before[i] < 0) {
        g->in[i] = given ? p->output_size.at[at] : -1;
        return PROA_OK;
    }
    int64_t base = (g->out[i] - 1) * g->stride[i] - g->before[i] - g->after[i] + extent(g, i);
    g->in[i] = base;
    if (given) {
        g->in[i] = p->output_size.at[at];
        if (g->in[i] < base || g->in[i] >= base + g->stride[i])
            return FAIL(p, "output_size", "has %lld where %lld to %lld is possible", (long long)g->in[i],
                        (long long)base, (long long)(base + g->stride[i] - 1));
    } else if (p->output_padding.count > 0) {
        int64_t extra = p->output_padding.at[at];
        if (extra < 0 || extra >= g->stride[i])
            return FAIL(p, "output_padding", "has value %lld; expected 0 to %lld, less than the stride",
                        (long long)extra, (long long)(g->stride[i] - 1));
        g->in[i] = base + extra;
    }
    if (g->in[i] < 1)
        return FAIL(p, "padding", "leaves no output: size %lld from input size %lld", (long long)g->in[i],
                    (long long)g->out[i]);
    return PROA_OK;
}

static proa_status check_list(const conv_params *p, const char *name, const proa_ints *v)
{
    if (v->count == 0 || v->count == p->dims) return PROA_OK;
    return FAIL(p, name, "must be empty or have %d values, got %lld", p->dims, (long long)v->count);
}

static proa_status check_tensors(const conv_params *p)
{
    int rank = p->dims + 2;
    if (p->x->ndim != rank)
        return FAIL(p, "x", "must have %d dims (batch, channels, %d spatial), got %s", rank, p->dims,
                    proa__tensor_text(p->x));
    if (p->weight->ndim != rank)
        return FAIL(p, "weight", "must have %d dims, got %s", rank, proa__tensor_text(p->weight));
    if (!p->mixed && p->weight->dtype != p->x->dtype)
        return proa__same_dtype(proa_find_op(p->op), "weight", p->weight, p->x);
    if (p->groups < 1) return FAIL(p, "groups", "must be at least 1, got %lld", (long long)p->groups);
    for (int i = 0; i < rank; i++)
        if (p->weight->shape[i] == 0)
            return FAIL(p, "weight", "has no elements: %s", proa__tensor_text(p->weight));
    return PROA_OK;
}

/* The channel counts of x and weight must agree. */
static proa_status channels(const conv_params *p, conv_geometry *g, int64_t x_channels)
{
    int64_t first = p->weight->shape[0], second = p->weight->shape[1];
    g->out_channels = first;
    g->in_channels = second < 0 ? -1 : second * p->groups;
    int64_t expected = p->transposed ? first : g->in_channels;
    if (x_channels >= 0 && expected >= 0 && x_channels != expected)
        return FAIL(p, "x", "has %lld channels in %s, but weight %s with groups %lld takes %lld",
                    (long long)x_channels, proa__tensor_text(p->x), proa__tensor_text(p->weight),
                    (long long)p->groups, (long long)expected);
    if (first >= 0 && first % p->groups)
        return FAIL(p, "weight", "has %lld in its first dim, which groups = %lld does not divide",
                    (long long)first, (long long)p->groups);
    return PROA_OK;
}

proa_status proa__conv_geometry(const conv_params *p, conv_geometry *g)
{
    PROA_TRY(check_tensors(p));
    int lead = 3 - p->dims;
    *g = (conv_geometry){.dims = p->dims,
                         .groups = p->groups,
                         .channels_last = proa__channels_last(p->format),
                         .in = {1, 1, 1},
                         .out = {1, 1, 1},
                         .kernel = {1, 1, 1},
                         .stride = {1, 1, 1},
                         .dilation = {1, 1, 1}};
    g->batch = p->x->shape[0];
    PROA_TRY(channels(p, g, p->x->shape[g->channels_last ? p->dims + 1 : 1]));
    int64_t *size = p->transposed ? g->out : g->in;
    for (int i = 0; i < p->dims; i++) {
        size[lead + i] = p->x->shape[(g->channels_last ? 1 : 2) + i];
        g->kernel[lead + i] = p->weight->shape[2 + i];
    }
    PROA_TRY(proa__window_values(p->op, "stride", &p->stride, p->dims, 1, g->stride));
    PROA_TRY(proa__window_values(p->op, "dilation", &p->dilation, p->dims, 1, g->dilation));
    PROA_TRY(check_list(p, "output_padding", &p->output_padding));
    PROA_TRY(check_list(p, "output_size", &p->output_size));
    PROA_TRY(resolve_padding(p, g, size));
    for (int i = lead; i < 3; i++) PROA_TRY(p->transposed ? transposed_size(p, g, i) : forward_size(p, g, i));
    return PROA_OK;
}

static void put_meta(const conv_geometry *g, int64_t n_channels, const int64_t *size, proa_dtype dtype,
                     proa_meta *m)
{
    m->dtype = dtype;
    m->ndim = (int8_t)(g->dims + 2);
    m->shape[0] = g->batch;
    m->shape[g->channels_last ? g->dims + 1 : 1] = n_channels;
    for (int i = 0; i < g->dims; i++) m->shape[(g->channels_last ? 1 : 2) + i] = size[3 - g->dims + i];
}

void proa__conv_meta_in(const conv_geometry *g, proa_dtype dtype, proa_meta *m)
{
    put_meta(g, g->in_channels, g->in, dtype, m);
}

void proa__conv_meta_out(const conv_geometry *g, proa_dtype dtype, proa_meta *m)
{
    put_meta(g, g->out_channels, g->out, dtype, m);
}

proa_status proa__conv_check_made(const char *op, const char *name, const proa_tensor *t, const proa_meta *m,
                                  const char *maker)
{
    if ((proa_dtype)t->dtype == m->dtype && t->ndim == m->ndim &&
        proa__shapes_agree(t->shape, m->shape, m->ndim))
        return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                         "must be %s%s as %s made it, got %s", proa_dtype_name(m->dtype),
                         proa__shape_text(m->shape, m->ndim), maker, proa__tensor_text(t));
}

proa_status proa__conv_check_bias(const char *op, const char *name, const proa_tensor *bias,
                                  const proa_tensor *x, int64_t out_channels)
{
    if (proa__absent(bias)) return PROA_OK;
    if (bias->dtype != x->dtype) return proa__same_dtype(proa_find_op(op), name, bias, x);
    if (bias->ndim == 1 && proa__shapes_agree(bias->shape, &out_channels, 1)) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                         "must be 1-D with one value for each of %lld output channels, got %s",
                         (long long)out_channels, proa__tensor_text(bias));
}

bool proa__conv_paddings(const conv_geometry *g, int64_t *to)
{
    for (int i = 0; i < g->dims; i++) {
        to[2 * i] = g->before[3 - g->dims + i];
        to[2 * i + 1] = g->after[3 - g->dims + i];
        if (to[2 * i] < 0) return false;
    }
    return true;
}

bool proa__conv_has_low_output_channels(const conv_geometry *g)
{
    if (g->dims != 2 || g->groups != 1 || g->channels_last || g->batch < 4) return false;
    for (int i = 1; i < 3; i++)
        if (g->stride[i] != 1 || g->dilation[i] != 1 || g->in[i] < 1 || g->in[i] > 1024) return false;
    bool taps = g->kernel[1] >= 1 && g->kernel[1] <= 5 && (g->kernel[2] == 3 || g->kernel[2] == 5);
    return taps && g->in_channels >= 1 && g->in_channels <= 4 && g->out_channels >= 1 &&
           g->out_channels <= 11 && g->out[1] >= 1 && g->out[2] >= 8;
}

proa_status proa__conv_geometry_once(const conv_params *p, conv_geometry *g)
{
    static PROA__TLS conv_geometry known;
    static PROA__TLS uint64_t known_in;
    const uint64_t selection = proa__selection();
    if (selection == 0 || known_in != selection) {
        PROA_TRY(proa__conv_geometry(p, &known));
        known_in = selection;
    }
    *g = known;
    return PROA_OK;
}

proa_status proa__conv_dear(double cost)
{
    static PROA__TLS char why[48];
    snprintf(why, sizeof why, "costs %.2f times what those behind it do", cost);
    return proa_decline(why);
}
