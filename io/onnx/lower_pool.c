/* Lowerings of pooling. Windows that reach beyond the input (ceil_mode) become explicit padding where
 * sizes are known, because runtimes disagree about them. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/pool.h"
#include "ops/padding.h"
#include "ops/windows.h"

/* A pooling op's call: the attributes that max and average pooling have in common. */
typedef struct pooling {
    const proa_tensor *x, *out;
    const proa_ints *kernel, *stride, *padding;
    proa_padding_algorithm algorithm;
    bool ceil_mode, channels_last, average, exclusive;
    proa_tensor *indices; /* NULL: none are wanted */
} pooling;

static int64_t input_size(const pooling *p, int i) { return p->x->shape[p->channels_last ? 1 + i : 2 + i]; }

static int64_t output_size(const pooling *p, int i)
{
    return p->out->shape[p->channels_last ? 1 + i : 2 + i];
}

/* Pads the end so that the last window ends with it. Returns whether all sizes are known; *more: some
 * were. */
static bool pad_end(const pooling *p, onnx_window *w, int64_t *beyond, bool *more)
{
    bool known = true;
    *more = false;
    for (int i = 0; i < w->n; i++) {
        int64_t in = input_size(p, i), out = output_size(p, i);
        beyond[i] = 0;
        if (in < 0 || out < 0) {
            known = false;
            continue;
        }
        if (w->same) proa__same_padding(in, w->size[i], w->stride[i], &w->pads[i], &w->pads[w->n + i]);
        int64_t reach = (out - 1) * w->stride[i] + w->size[i] - (in + w->pads[i] + w->pads[w->n + i]);
        beyond[i] = reach > 0 ? reach : 0;
        *more |= beyond[i] > 0;
    }
    if (known) w->same = false;
    return known;
}

/* Zeros round the spatial axes, which the mean then counts as elements. */
static onnx_value *pad_zeros(onnx_graph *g, onnx_value *x, onnx_window *w)
{
    int n = w->n + 2;
    int64_t pads[2 * PROA_MAX_DIMS + 4] = {0};
    for (int i = 0; i < w->n; i++) {
        pads[2 + i] = w->pads[i];
        pads[n + 2 + i] = w->pads[w->n + i];
        w->pads[i] = w->pads[w->n + i] = 0;
    }
    return onnx_pad(g, x, "constant", n, pads, 0);
}

/* ONNX counts the places of maxima over the whole tensor, Paddle over a plane. */
static void bind_indices(onnx_graph *g, const pooling *p, onnx_value *out)
{
    onnx_value *all = onnx_also(g, out, PROA_I64), *x = onnx_in(g, p->x), *plane = onnx_int(g, 1);
    for (int i = 2; i < p->x->ndim; i++)
        plane = p->x->shape[i] < 0 ? onnx_mul(g, plane, onnx_dim(g, p->x, x, i))
                                   : onnx_mul(g, plane, onnx_int(g, p->x->shape[i]));
    onnx_bind(g, p->indices, onnx_sub(g, all, onnx_mul(g, onnx_div(g, all, plane), plane)));
}

static void lower(onnx_graph *g, const pooling *p)
{
    onnx_window w = {.n = p->x->ndim - 2};
    int64_t beyond[PROA_MAX_DIMS];
    bool more;
    onnx_value *x = onnx_in(g, p->x);
    for (int i = 0; i < w.n; i++) w.size[i] = p->kernel->at[i < p->kernel->count ? i : 0];
    onnx_window_fill(&w, p->stride, p->padding, NULL, p->algorithm);
    bool known = pad_end(p, &w, beyond, &more), ceil_mode = p->ceil_mode && !known;
    if (ceil_mode && onnx_needs(g, 10)) return;
    if (p->channels_last) x = onnx_to_channels_first(g, x, p->x->ndim);
    bool counts = p->average && !p->exclusive;
    if (counts && more) {
        x = pad_zeros(g, x, &w);
        counts = false;
    }
    for (int i = 0; known && i < w.n; i++) w.pads[w.n + i] += beyond[i];
    onnx_value *out = ONNX_NODE(g, p->average ? "AveragePool" : "MaxPool", x);
    onnx_put_ints(g, out, "kernel_shape", w.n, w.size);
    onnx_put_ints(g, out, "strides", w.n, w.stride);
    onnx_put_pads(g, out, &w);
    if (ceil_mode) onnx_put_int(g, out, "ceil_mode", 1);
    if (counts) onnx_put_int(g, out, "count_include_pad", 1);
    if (onnx_is_read(g, p->indices)) {
        if (onnx_needs(g, 8)) return;
        bind_indices(g, p, out);
    }
    onnx_bind(g, p->out, p->channels_last ? onnx_to_channels_last(g, out, p->out->ndim) : out);
}

ONNX_LOWER(lower_max_pool, max_pool2d)
{
    lower(g, &(pooling){.x = a->x,
                        .out = a->out,
                        .kernel = &a->kernel_size,
                        .stride = &a->stride,
                        .padding = &a->padding,
                        .algorithm = a->padding_algorithm,
                        .ceil_mode = a->ceil_mode,
                        .channels_last = proa__channels_last(a->data_format)});
}

ONNX_LOWER(lower_avg_pool, avg_pool2d)
{
    lower(g, &(pooling){.x = a->x,
                        .out = a->out,
                        .kernel = &a->kernel_size,
                        .stride = &a->stride,
                        .padding = &a->padding,
                        .algorithm = a->padding_algorithm,
                        .ceil_mode = a->ceil_mode,
                        .channels_last = proa__channels_last(a->data_format),
                        .average = true,
                        .exclusive = a->exclusive});
}

/* ---- adaptive ------------------------------------------------------------------------------- */

/* Windows of one axis that no single stride has: each is reduced by itself. */
static onnx_value *reduce_windows(onnx_graph *g, const char *type, onnx_value *x, int64_t axis, int64_t in,
                                  int64_t out)
{
    onnx_value **parts = onnx_alloc(g, (size_t)out, sizeof *parts);
    if (!parts) return NULL;
    for (int64_t i = 0; i < out; i++) {
        int64_t from = i * in / out, to = ((i + 1) * in + out - 1) / out;
        parts[i] = onnx_reduce(g, type, onnx_slice_one(g, x, axis, from, to), 1, &axis, true);
    }
    return onnx_concat(g, out, parts, axis);
}

static onnx_value *adaptive(onnx_graph *g, onnx_value *x, const pooling *p)
{
    bool one = true, divides = true;
    int n = p->x->ndim - 2;
    int64_t size[PROA_MAX_DIMS];
    for (int i = 0; i < n; i++) {
        int64_t in = input_size(p, i), out = output_size(p, i);
        one &= out == 1;
        divides &= in > 0 && out > 0 && in % out == 0;
        size[i] = divides ? in / out : 0;
    }
    if (one) return ONNX_NODE(g, p->average ? "GlobalAveragePool" : "GlobalMaxPool", x);
    if (divides) {
        onnx_value *out = ONNX_NODE(g, p->average ? "AveragePool" : "MaxPool", x);
        onnx_put_ints(g, out, "kernel_shape", n, size);
        onnx_put_ints(g, out, "strides", n, size);
        return out;
    }
    for (int i = 0; i < n; i++) {
        int64_t in = input_size(p, i), out = output_size(p, i);
        if (out != 1 && (in < 0 || out < 0))
            return onnx_refuse(
                g,
                "output_size needs a known size of x, unless it is 1: export with that size in input_spec");
        const char *type = p->average ? "ReduceMean" : "ReduceMax";
        if (in == out) continue;
        const int64_t axis = 2 + i;
        x = out == 1 ? onnx_reduce(g, type, x, 1, &axis, true) : reduce_windows(g, type, x, axis, in, out);
    }
    return x;
}

static void lower_adaptive(onnx_graph *g, const pooling *p)
{
    onnx_value *x = onnx_in(g, p->x);
    if (p->channels_last) x = onnx_to_channels_first(g, x, p->x->ndim);
    onnx_value *out = adaptive(g, x, p);
    onnx_bind(g, p->out, p->channels_last ? onnx_to_channels_last(g, out, p->out->ndim) : out);
}

ONNX_LOWER(lower_adaptive_max, adaptive_max_pool2d)
{
    lower_adaptive(
        g, &(pooling){.x = a->x, .out = a->out, .channels_last = proa__channels_last(a->data_format)});
}

ONNX_LOWER(lower_adaptive_avg, adaptive_avg_pool2d)
{
    lower_adaptive(g, &(pooling){.x = a->x,
                                 .out = a->out,
                                 .channels_last = proa__channels_last(a->data_format),
                                 .average = true});
}

ONNX_LOWER(lower_max_pool_with_index, max_pool2d_with_index)
{
    if (!a->adaptive) {
        lower(g, &(pooling){.x = a->x,
                            .out = a->out,
                            .kernel = &a->kernel_size,
                            .stride = &a->stride,
                            .padding = &a->padding,
                            .indices = a->mask});
        return;
    }
    if (onnx_is_read(g, a->mask)) onnx_refuse(g, "indices of adaptive pooling are not exported");
    lower_adaptive(g, &(pooling){.x = a->x, .out = a->out});
}

#define EACH_RANK(name, lower) \
    {name "1d", lower, NULL, 0, 0}, {name "2d", lower, NULL, 0, 0}, { name "3d", lower, NULL, 0, 0 }
const onnx_rule onnx_rules_pool[] = {
    EACH_RANK("max_pool", lower_max_pool),
    EACH_RANK("avg_pool", lower_avg_pool),
    EACH_RANK("adaptive_max_pool", lower_adaptive_max),
    EACH_RANK("adaptive_avg_pool", lower_adaptive_avg),
    {"max_pool2d_with_index", lower_max_pool_with_index, NULL, 0, 0},
    {"max_pool3d_with_index", lower_max_pool_with_index, NULL, 0, 0},
    {0},
};

#else
typedef int proa__no_onnx_pool; /* C wants a declaration in every file */
#endif
