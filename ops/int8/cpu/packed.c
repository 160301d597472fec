/* Convolutions (channels last, one group), linear layers and matrix products of 8-bit integers on CPUs that
 * have AVX2 and lack VNNI, by GEMM (ops/int8/gemm.h). Weights are packed once. May use core and kernels;
 * compiled once per CPU level. */
#include "core/deferred.h"
#include "core/kernel_traits.h"
#include "kernels/page_release.h"
#include "ops/conv/geometry.h"
#include "ops/int8/gemm.h"
#include "ops/matmul/product.h"
#include "impl/int8.h"

/* ---- packed weights -------------------------------------------------------------------------- */

typedef struct right_move {
    const int8_right *right;
    int8_t *elements, *packed;
} right_move;

static void pack_range(int64_t begin, int64_t end, void *context)
{
    const right_move *m = context;
    for (int64_t j = begin; j < end; j++)
        int8_pack_panel(m->right, m->elements, j, m->packed + j * int8_panel_bytes(int8_depth(m->right)));
}

static void unpack_range(int64_t begin, int64_t end, void *context)
{
    const right_move *m = context;
    for (int64_t j = begin; j < end; j++)
        int8_unpack_panel(m->right, m->packed + j * int8_panel_bytes(int8_depth(m->right)), j, m->elements);
}

static void each_panel(right_move *m, proa_range_fn range)
{
    proa__parallel(int8_panels(m->right->n), 1 + 65536 / (int8_depth(m->right) * INT8_NR + 1), range, m);
}

static proa_status pack(void *context, const void *how, const void *elements, void *packed)
{
    (void)context;
    each_panel(&(right_move){how, (int8_t *)(uintptr_t)elements, packed}, pack_range);
    return PROA_OK;
}

static proa_status unpack(const void *how, const void *packed, void *elements)
{
    each_panel(&(right_move){how, elements, (int8_t *)(uintptr_t)packed}, unpack_range);
    return PROA_OK;
}

/* The weight in packed form, which plans and predictors share. NULL on error. */
static const int8_t *packed_weight(proa__packed_operand *o, const proa_tensor *weight,
                                   const int8_right *right)
{
    if (proa__packed_is_of(o, weight)) return o->form->data;
    const proa__packing packing = {.bytes = int8_packed_bytes(right),
                                   .how = right,
                                   .how_bytes = sizeof *right,
                                   .pack = pack,
                                   .unpack = unpack};
    const int8_t *data = proa__packed_renew(o, weight, &packing);
    if (data && !(weight->flags & PROA_T_BLOCKED)) proa__release_pages(weight->data, (size_t)weight->numel);
    return data;
}

static void operand_release(void *state)
{
    if (state) proa__packed_clear(state);
    proa__free(state);
}

static proa_status operand_prepare(void **state)
{
    *state = proa__calloc(sizeof(proa__packed_operand));
    return *state ? PROA_OK : proa_error();
}

/* Declines without AVX2, and where sums might exceed 32 bits. */
static proa_status suits(int64_t depth, const proa_tensor *out)
{
#if !defined(__AVX2__)
    return proa_decline("needs AVX2");
#endif
    if (out->numel == 0 || depth == 0) return proa_decline("empty");
    if (depth > INT8_MAX_K) return proa_decline("sums of so many products may exceed 32 bits");
    return PROA_OK;
}

/* ---- left operands --------------------------------------------------------------------------- */

static void widen_run(proa_dtype dtype, const void *from, int64_t n, int16_t *to)
{
    if (dtype == PROA_U8) {
        const uint8_t *x = from;
        for (int64_t i = 0; i < n; i++) to[i] = x[i];
    } else {
        const int8_t *x = from;
        for (int64_t i = 0; i < n; i++) to[i] = x[i];
    }
}

/* A matrix of bytes at element strides. */
typedef struct left_matrix {
    proa_dtype dtype;
    const char *at;
    int64_t k, rs, cs;
} left_matrix;

static void widen_matrix(const void *context, int64_t row, int16_t *to)
{
    const left_matrix *l = context;
    const char *from = l->at + row * l->rs;
    if (l->cs == 1) widen_run(l->dtype, from, l->k, to);
    else
        for (int64_t p = 0; p < l->k; p++) widen_run(l->dtype, from + p * l->cs, 1, to + p);
}

/* Images, channels last; a row is the window of an output pixel, pixels of the window in order. */
typedef struct left_images {
    proa_dtype dtype;
    const char *at;
    const conv_geometry *g;
} left_images;

static void widen_window(const void *context, int64_t pixel, int16_t *to)
{
    const left_images *l = context;
    const conv_geometry *g = l->g;
    const int64_t c = g->in_channels, h = g->in[1], w = g->in[2], taps = g->kernel[2], step = g->dilation[2];
    const int64_t x = pixel % g->out[2] * g->stride[2] - g->before[2];
    const int64_t y = pixel / g->out[2] % g->out[1] * g->stride[1] - g->before[1];
    const char *image = l->at + pixel / (g->out[1] * g->out[2]) * h * w * c;
    const bool dense = step == 1 && x >= 0 && x + taps <= w; /* a line of the window is one run of bytes */
    for (int64_t i = 0; i < g->kernel[1]; i++, to += taps * c) {
        const int64_t line = y + i * g->dilation[1];
        const char *from = image + (line * w + x) * c;
        if (line < 0 || line >= h) memset(to, 0, (size_t)(taps * c) * sizeof *to);
        else if (dense) widen_run(l->dtype, from, taps * c, to);
        else
            for (int64_t j = 0; j < taps; j++) {
                const int64_t column = x + j * step;
                if (column < 0 || column >= w) memset(to + j * c, 0, (size_t)c * sizeof *to);
                else widen_run(l->dtype, from + j * step * c, c, to + j * c);
            }
    }
}

/* ---- the kernels ------------------------------------------------------------------------------- */

static float lowest(const proa_tensor *out) { return out->dtype == PROA_U8 ? 0 : -128; }

/* The parts of a product that ops with weights share, from their args; m and widen are the op's own. */
#define WEIGHTED(a)                                                                              \
    .scale = conv_floats((a)->scale), .bias = conv_floats((a)->bias), .tail = PROA__EPILOGUE(a), \
    .out = (a)->out, .outer = (float)(a)->outer, .low = lowest((a)->out), .high = (float)(a)->high

static proa_status run_weighted(proa__packed_operand *o, const proa_tensor *weight, const int8_right *right,
                                int8_product *w)
{
    w->n = w->out_ld = right->n, w->k = int8_depth(right);
    w->b = packed_weight(o, weight, right);
    return w->b ? int8_run(w) : proa_error();
}

static proa_status linear_prepare(const void *args, void **state)
{
    const proa_linear_int8_args *a = args;
    const proa__epilogue tail = PROA__EPILOGUE(a);
    if (a->weight->ndim != 2 || !proa__epilogue_is_plain(&tail, a->out))
        return proa_decline("the weight is no matrix, or an epilogue that broadcasts");
    PROA_TRY(suits(a->weight->shape[0], a->out));
    return operand_prepare(state);
}

PROA__KERNEL_TRAITS(linear_int8_packed_cpu, .packs = 1u << 1) /* weight */
PROA_KERNEL_PREPARED(linear_int8_packed_cpu, linear_int8, linear_prepare, operand_release)
{
    const int64_t k = a->weight->shape[0], n = a->weight->shape[1];
    const int8_right right = {1, k, n, 0, n, 1};
    const left_matrix left = {(proa_dtype)a->x->dtype, a->x->data, k, k, 1};
    int8_product w = {.m = a->out->numel / n, .widen = widen_matrix, .context = &left, WEIGHTED(a)};
    return run_weighted(run->state, a->weight, &right, &w);
}

static proa_status conv_prepare(const void *args, void **state)
{
    const proa_conv2d_int8_args *a = args;
    const proa__epilogue tail = PROA__EPILOGUE(a);
    conv_geometry g;
    PROA_TRY(proa__conv_geometry_once(&CONV_PARAMS_MIXED(a, 2, "conv2d_int8"), &g));
    if (!g.channels_last || g.groups != 1 || !proa__epilogue_is_plain(&tail, a->out))
        return proa_decline("needs channels last, one group, and an epilogue that does not broadcast");
    PROA_TRY(suits(g.in_channels * g.kernel[1] * g.kernel[2], a->out));
    return operand_prepare(state);
}

PROA__KERNEL_TRAITS(conv2d_int8_packed_cpu, .packs = 1u << 1) /* weight */
PROA_KERNEL_PREPARED(conv2d_int8_packed_cpu, conv2d_int8, conv_prepare, operand_release)
{
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS_MIXED(a, 2, "conv2d_int8"), &g));
    const int64_t taps = g.kernel[1] * g.kernel[2], k = g.in_channels * taps, n = g.out_channels;
    const int8_right right = {taps, g.in_channels, n, 1, taps, k};
    const left_images left = {(proa_dtype)a->x->dtype, a->x->data, &g};
    int8_product w = {
        .m = g.batch * g.out[1] * g.out[2], .widen = widen_window, .context = &left, WEIGHTED(a)};
    return run_weighted(run->state, a->weight, &right, &w);
}

static proa_status matmul_prepare(const void *args, void **state)
{
    const proa_matmul_int8_args *a = args;
    const matmul_product p = PRODUCT_MATMUL(a);
    (void)state;
    if (a->y->dtype != PROA_I8 || p.odd) return proa_decline("y is unsigned, or strides are no multiples");
    return suits(p.k, a->out);
}

/* Batches of a product: y is packed for each, unless it is broadcast. */
typedef struct batches {
    const matmul_product *p;
    int8_right right;
    left_matrix left;
    int8_product product;
} batches;

static void run_batches(int64_t begin, int64_t end, void *context)
{
    const batches *all = context;
    const matmul_product *p = all->p;
    left_matrix left = all->left;
    int8_product w = all->product;
    int8_t *packed = proa_scratch(int8_packed_bytes(&all->right));
    proa_status status = packed ? PROA_OK : proa_error();
    w.context = &left, w.b = packed;
    for (int64_t i = begin, before = -1; i < end && status == PROA_OK; i++) {
        int64_t x, y;
        proa__product_batch(p, i, &x, &y, &w.out_at);
        left.at = p->x + x;
        if (y != before)
            each_panel(&(right_move){&all->right, (int8_t *)(uintptr_t)(p->y + y), packed}, pack_range);
        before = y;
        status = int8_run(&w);
    }
    proa_scratch_free(packed);
}

PROA_KERNEL_PREPARED(matmul_int8_packed_cpu, matmul_int8, matmul_prepare, NULL)
{
    const matmul_product p = PRODUCT_MATMUL(a);
    batches all = {.p = &p,
                   .right = {1, p.k, p.n, 0, p.y_rs, p.y_cs},
                   .left = {(proa_dtype)a->x->dtype, NULL, p.k, p.x_rs, p.x_cs},
                   .product = {.m = p.m,
                               .n = p.n,
                               .k = p.k,
                               .widen = widen_matrix,
                               .tail = {.residual = proa_none},
                               .out = a->out,
                               .out_ld = p.out_rs,
                               .outer = (float)a->scale,
                               .low = lowest(a->out),
                               .high = (float)a->high}};
    if (p.batches == 1) run_batches(0, 1, &all); /* its own parts are shared among threads */
    else
        proa__parallel(p.batches, 1 + (int64_t)(INT8_ALONE * (double)p.batches / product_work(&p)),
                       run_batches, &all);
    return proa_error();
}
