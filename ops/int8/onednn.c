/* Convolutions, transposed convolutions, linear layers and matrix products of 8-bit integers through oneDNN,
 * whose primitive also adds bias and residual, applies the activation and rounds; weights are packed once.
 * May use core and kernels only. */
#include "kernels/onednn.h"
#include "ops/conv/onednn_layout.h"
#include "ops/matmul/onednn_product.h"
#include "impl/int8.h"

/* The tensors of an INT8 product, and what follows it. */
typedef struct int8_task {
    proa_tensor *x, *weight, *scale, *bias, *out;
    proa__epilogue tail;
    proa__dnnl_requantize after;
    int scale_mask;
} int8_task;

/* Requantization of an op that multiplies its sums by `factor`. */
#define REQUANTIZE(a, factor)                                                       \
    ((proa__dnnl_requantize){(factor), (a)->dtype == PROA_U8 ? 0 : -128, (a)->high, \
                             (a)->dtype == PROA_U8 || ((a)->dtype == PROA_I8 && (a)->high < 127)})

#define INT8_TASK(a)                        \
    ((int8_task){.x = (a)->x,               \
                 .weight = (a)->weight,     \
                 .scale = (a)->scale,       \
                 .bias = (a)->bias,         \
                 .out = (a)->out,           \
                 .tail = PROA__EPILOGUE(a), \
                 .after = REQUANTIZE(a, (a)->outer)})

/* CPUs without VNNI saturate sums of two byte products at 16 bits; unsigned bytes of at most 127, as the pass
 * makes them, are safe. */
static bool sums_exactly(const proa_tensor *x) { return x->dtype == PROA_U8 || proa__dnnl_sums_bytes(); }

static bool begin(proa__dnnl_build *b, const int8_task *t, double work)
{
    return proa__dnnl_begin(b, work) &&
           dnnl_primitive_attr_set_scales_mask(b->attr, DNNL_ARG_WEIGHTS, t->scale_mask) == dnnl_success;
}

/* One dim of float32, or a matrix of one row. */
static bool add_channels(proa__dnnl_build *b, int index, int ndim, int64_t n)
{
    int64_t dims[] = {1, n};
    return proa__dnnl_add(b, index, false, proa__dnnl_md(ndim, dims + 2 - ndim, NULL, PROA_F32));
}

/* Sizes and strides of the source, weights or destination. any: the primitive may choose its layout. */
typedef struct operand {
    int n;
    const int64_t *dims, *strides;
    bool any;
} operand;

static dnnl_memory_desc_t described(const operand *o, const proa_tensor *t, bool any)
{
    return any ? proa__dnnl_md_any(o->n, o->dims, (proa_dtype)t->dtype)
               : proa__dnnl_md(o->n, o->dims, o->strides, (proa_dtype)t->dtype);
}

/* Adds the operands in the order of the kernel's tensors: the residual, which the post-ops add, comes
 * first. */
static bool add_operands(proa__dnnl_build *b, const int8_task *t, const operand *o, int bias_dims)
{
    static const int index[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    proa_tensor *const of[] = {t->x, t->weight, t->out};
    bool ok = proa__dnnl_post_ops(b, &t->tail, o[2].n, o[2].dims, o[2].strides, &t->after);
    for (int i = 0; i < 3 && ok; i++)
        ok = proa__dnnl_add(b, index[i], i == 2, described(&o[i], of[i], false));
    int64_t channels = t->scale->numel;
    ok = ok && add_channels(b, DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, 1, channels);
    return ok && (proa__absent(t->bias) || add_channels(b, DNNL_ARG_BIAS, bias_dims, channels));
}

typedef struct descs {
    dnnl_memory_desc_t of[3], bias;
} descs;

static bool make_descs(descs *d, const int8_task *t, const operand *o, int bias_dims)
{
    proa_tensor *const of[] = {t->x, t->weight, t->out};
    *d = (descs){.bias = NULL};
    bool ok = true;
    for (int i = 0; i < 3; i++) ok = (d->of[i] = described(&o[i], of[i], o[i].any)) && ok;
    if (proa__absent(t->bias)) return ok;
    int64_t dims[] = {1, t->scale->numel};
    d->bias = proa__dnnl_md(bias_dims, dims + 2 - bias_dims, NULL, PROA_F32);
    return ok && d->bias;
}

static void release_descs(descs *d)
{
    for (int i = 0; i < 3; i++)
        if (d->of[i]) dnnl_memory_desc_destroy(d->of[i]);
    if (d->bias) dnnl_memory_desc_destroy(d->bias);
}

/* The residual, if there is one, comes first; weights never change. */
static proa_status run_task(const proa_run *run, const void *args, const int8_task *t,
                            proa_status (*prepare)(const void *, void **))
{
    int first = !proa__absent(t->tail.residual);
    proa_tensor *all[] = {t->tail.residual, t->x, t->weight, t->out, t->scale, t->bias};
    return proa__dnnl_run_constant(run, args, prepare, all + !first, first + 1);
}

/* The field `weight` of these ops, as a set. */
#define WEIGHT (1u << 1)

/* ---- convolution ------------------------------------------------------------------------------- */

static bool conv_desc(proa__dnnl_build *b, const descs *d, const conv_geometry *g)
{
    dnnl_dims_t stride, dilation, before, after;
    for (int i = 0; i < 2; i++) {
        stride[i] = g->stride[i + 1], dilation[i] = g->dilation[i + 1] - 1;
        before[i] = g->before[i + 1], after[i] = g->after[i + 1];
    }
    return dnnl_convolution_forward_primitive_desc_create(
               &b->desc, proa__dnnl_engine(), dnnl_forward_inference, dnnl_convolution_direct, d->of[0],
               d->of[1], d->bias, d->of[2], stride, dilation, before, after, b->attr) == dnnl_success;
}

static proa_status conv_prepare(const void *args, void **state)
{
    const proa_conv2d_int8_args *a = args;
    int8_task t = INT8_TASK(a);
    conv_geometry g;
    PROA_TRY(proa__conv_geometry_once(&CONV_PARAMS_MIXED(a, 2, "conv2d_int8"), &g));
    if (!sums_exactly(a->x)) return proa_decline("this CPU multiplies no signed bytes");
    if (a->out->numel == 0 || a->weight->numel == 0 || !proa__epilogue_is_plain(&t.tail, a->out))
        return proa_decline("empty, or an epilogue that broadcasts");
    t.scale_mask = g.groups > 1 ? 3 : 1;
    conv_layout in = conv_layout_of_images(&g, g.in_channels, g.in), filter = conv_layout_of_filter(&g),
                out = conv_layout_of_images(&g, g.out_channels, g.out);
    operand o[] = {{in.n, in.dims, in.strides, !g.channels_last},
                   {filter.n, filter.dims, filter.strides, true},
                   {out.n, out.dims, out.strides, !g.channels_last}};
    proa__dnnl_build b;
    descs d;
    bool ok = begin(&b, &t, conv_work(&g)) && add_operands(&b, &t, o, 1);
    ok = make_descs(&d, &t, o, 1) && ok && conv_desc(&b, &d, &g) && !proa__dnnl_is_reference(&b);
    release_descs(&d);
    return proa__dnnl_finish(&b, ok, state);
}

PROA__KERNEL_TRAITS(conv2d_int8_onednn, .packs = WEIGHT)
PROA_KERNEL_PREPARED(conv2d_int8_onednn, conv2d_int8, conv_prepare, proa__dnnl_release)
{
    return run_task(run, a, &INT8_TASK(a), conv_prepare);
}

/* ---- transposed convolution --------------------------------------------------------------------- */

/* g is the forward convolution's: its input is the op's output. */
static bool transpose_desc(proa__dnnl_build *b, const descs *d, const conv_geometry *g)
{
    dnnl_dims_t stride, dilation, before, after;
    for (int i = 0; i < 2; i++) {
        const int64_t reach = g->dilation[i + 1] * (g->kernel[i + 1] - 1) + 1;
        stride[i] = g->stride[i + 1], dilation[i] = g->dilation[i + 1] - 1;
        before[i] = g->before[i + 1];
        after[i] = (g->out[i + 1] - 1) * g->stride[i + 1] + reach - g->before[i + 1] - g->in[i + 1];
    }
    return dnnl_deconvolution_forward_primitive_desc_create(
               &b->desc, proa__dnnl_engine(), dnnl_forward_inference, dnnl_deconvolution_direct, d->of[0],
               d->of[1], d->bias, d->of[2], stride, dilation, before, after, b->attr) == dnnl_success;
}

#define TRANSPOSE_TASK(a)                                                        \
    ((int8_task){.x = (a)->x,                                                    \
                 .weight = (a)->weight,                                          \
                 .scale = (a)->scale,                                            \
                 .bias = (a)->bias,                                              \
                 .out = (a)->out,                                                \
                 .tail = {.residual = proa_none, .activation = (a)->activation}, \
                 .after = REQUANTIZE(a, (a)->outer)})

static proa_status transpose_prepare(const void *args, void **state)
{
    const proa_conv2d_transpose_int8_args *a = args;
    int8_task t = TRANSPOSE_TASK(a);
    conv_geometry g;
    PROA_TRY(proa__conv_geometry_once(&CONV_TRANSPOSE_INT8_PARAMS(a), &g));
    if (!sums_exactly(a->x)) return proa_decline("this CPU multiplies no signed bytes");
    if (a->out->numel == 0 || a->weight->numel == 0) return proa_decline("empty");
    t.scale_mask = 1;
    conv_layout in = conv_layout_of_images(&g, g.out_channels, g.out),
                out = conv_layout_of_images(&g, g.in_channels, g.in);
    const int64_t taps = g.kernel[1] * g.kernel[2];
    const int64_t dims[] = {g.in_channels, g.out_channels, g.kernel[1], g.kernel[2]},
                  strides[] = {taps, g.in_channels * taps, g.kernel[2], 1};
    operand o[] = {{in.n, in.dims, in.strides, !g.channels_last},
                   {4, dims, strides, true},
                   {out.n, out.dims, out.strides, !g.channels_last}};
    proa__dnnl_build b;
    descs d;
    bool ok = begin(&b, &t, conv_work(&g)) && add_operands(&b, &t, o, 1);
    ok = make_descs(&d, &t, o, 1) && ok && transpose_desc(&b, &d, &g) && !proa__dnnl_is_reference(&b);
    release_descs(&d);
    return proa__dnnl_finish(&b, ok, state);
}

PROA__KERNEL_TRAITS(conv2d_transpose_int8_onednn, .packs = WEIGHT)
PROA_KERNEL_PREPARED(conv2d_transpose_int8_onednn, conv2d_transpose_int8, transpose_prepare,
                     proa__dnnl_release)
{
    return run_task(run, a, &TRANSPOSE_TASK(a), transpose_prepare);
}

/* ---- linear -------------------------------------------------------------------------------------- */

/* Fewest rows in which oneDNN's product without VNNI is as fast as ops/int8/gemm.h. */
enum { MIN_ROWS = 32 };

static proa_status linear_prepare(const void *args, void **state)
{
    const proa_linear_int8_args *a = args;
    int8_task t = INT8_TASK(a);
    if (!sums_exactly(a->x)) return proa_decline("this CPU multiplies no signed bytes");
    if (a->out->numel == 0 || a->weight->numel == 0 || !proa__epilogue_is_plain(&t.tail, a->out))
        return proa_decline("empty, or an epilogue that broadcasts");
    t.scale_mask = 1 << 1;
    int64_t k = a->weight->shape[0], n = a->weight->shape[1], m = a->out->numel / n;
    if (m < MIN_ROWS && !proa__dnnl_sums_bytes()) return proa_decline("without VNNI few rows are slower");
    const int64_t dims[3][2] = {{m, k}, {k, n}, {m, n}}, strides[3][2] = {{k, 1}, {n, 1}, {n, 1}};
    operand o[3];
    for (int i = 0; i < 3; i++) o[i] = (operand){2, dims[i], strides[i], i == 1};
    proa__dnnl_build b;
    descs d;
    bool ok = begin(&b, &t, (double)m * (double)n * (double)k) && add_operands(&b, &t, o, 2);
    ok = make_descs(&d, &t, o, 2) && ok &&
         dnnl_matmul_primitive_desc_create(&b.desc, proa__dnnl_engine(), d.of[0], d.of[1], d.bias, d.of[2],
                                           b.attr) == dnnl_success &&
         !proa__dnnl_is_reference(&b);
    release_descs(&d);
    return proa__dnnl_finish(&b, ok, state);
}

PROA__KERNEL_TRAITS(linear_int8_onednn, .packs = WEIGHT)
PROA_KERNEL_PREPARED(linear_int8_onednn, linear_int8, linear_prepare, proa__dnnl_release)
{
    return run_task(run, a, &INT8_TASK(a), linear_prepare);
}

/* ---- product of activations ---------------------------------------------------------------------- */

static proa_status matmul_prepare(const void *args, void **state)
{
    const proa_matmul_int8_args *a = args;
    if (!sums_exactly(a->x) || a->y->dtype != PROA_I8)
        return proa_decline("this CPU multiplies no signed bytes, or y is unsigned");
    matmul_product p = PRODUCT_MATMUL(a);
    if (!proa__dnnl_product_suits(&p)) return proa_decline("empty, or operands' rows are not contiguous");
    const proa__epilogue none = {.residual = proa_none};
    const proa__dnnl_requantize after = REQUANTIZE(a, a->scale);
    proa__dnnl_product_form form = {.dtypes = {(proa_dtype)a->x->dtype, PROA_I8, a->dtype}};
    proa__dnnl_build b;
    bool ok = proa__dnnl_begin(&b, product_work(&p)) &&
              proa__dnnl_post_ops(&b, &none, 0, NULL, NULL, &after) &&
              proa__dnnl_describe_product(&b, &p, &form) && !proa__dnnl_is_reference(&b);
    return proa__dnnl_finish(&b, ok, state);
}

PROA_KERNEL_PREPARED(matmul_int8_onednn, matmul_int8, matmul_prepare, proa__dnnl_release)
{
    void *data[] = {a->x->data, a->y->data, a->out->data};
    return proa__dnnl_run(run->state, a, matmul_prepare, data);
}
