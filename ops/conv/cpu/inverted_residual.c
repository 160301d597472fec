/* Fused inverted residuals (1×1, depthwise and 1×1 convolutions, of which the first may be absent). With
 * constant float32 filters each strip of image rows goes through all three convolutions, so that the expanded
 * rows between them stay in the L2 cache; a thread reuses the expanded rows that its previous strip computed.
 * Each element is computed as depthwise.h and packed.c compute it, so results do not depend on strips or
 * threads. Measured over 10 shapes that no row of benchmarks/ has: 1.13 times (median) as fast as the three
 * ops; MobileNetV2's largest takes 424 µs instead of 602. Other operands run as three ops. May use core and
 * helpers of ops/. */
#include "ops/conv/algorithms.h"
#include "ops/conv/depthwise.h"
#include "ops/conv/inverted_residual.h"

typedef struct inverted_state {
    packed_state expand, taps, project;
} inverted_state;

typedef struct inverted {
    const inverted_geometry *g;
    const float *x, *residual;
    float *out;
    packed_product expand, project; /* m, a, c are set per strip */
    depthwise middle;
    int64_t strips;            /* per image */
    int64_t wide, narrow;      /* floats of a strip's rows before and after the depthwise convolution */
    int64_t copies, work_each; /* floats */
    float *work;
    packed_turns turns;
} inverted;

/* One thread's scratch, and the expanded rows [from, to) of `image` that `wide` holds. */
typedef struct inverted_lines {
    int64_t image, from, to;
    float *wide, *narrow, *copy;
} inverted_lines;

enum { STRIP_BYTES = 384 << 10, STRIPS = 2 }; /* half of an L2 cache; strips per thread */

/* Rows [from, to) of the depthwise convolution's input that its output rows [r0, r1) read. */
static void lines_of(const conv_geometry *g, int64_t r0, int64_t r1, int64_t *from, int64_t *to)
{
    int64_t first = r0 * g->stride[1] - g->before[1];
    int64_t last = (r1 - 1) * g->stride[1] - g->before[1] + (g->kernel[1] - 1) * g->dilation[1] + 1;
    *from = first < 0 ? 0 : gemm_min(first, g->in[1]);
    *to = last < *from ? *from : gemm_min(last, g->in[1]);
}

static void product_of(const packed_product *all, const float *a, float *c, const float *residual, int64_t m,
                       float *copy)
{
    packed_product w = *all;
    packed_copy none = {copy, -1, -1, 0};
    w.a.at = a, w.c = c, w.residual = residual, w.m = m;
    packed_part(&w, 0, m, 0, packed_panels(w.n), &none);
}

/* Computes expanded rows [from, to) of an image into l->wide; rows that the previous strip left there are
 * moved to the front instead. */
static void expand_lines(const inverted *w, inverted_lines *l, int64_t image, int64_t from, int64_t to)
{
    const conv_geometry *g = &w->g->expand;
    int64_t line = g->out[2] * g->out_channels, kept = 0;
    if (l->image == image && l->from <= from && from < l->to) {
        kept = gemm_min(l->to, to) - from;
        memmove(l->wide, l->wide + (from - l->from) * line, (size_t)(kept * line) * sizeof(float));
    }
    int64_t pixel = (image * g->in[1] + from + kept) * g->in[2], more = to - from - kept;
    if (more > 0)
        product_of(&w->expand, w->x + pixel * g->in_channels, l->wide + kept * line, NULL, more * g->in[2],
                   l->copy);
    l->image = image, l->from = from, l->to = to;
}

static void inverted_strip(const inverted *w, int64_t strip, inverted_lines *l)
{
    const conv_geometry *g = &w->g->depthwise, *p = &w->g->project;
    int64_t image = strip / w->strips, at = strip % w->strips, from, to;
    int64_t r0 = at * g->out[1] / w->strips, r1 = (at + 1) * g->out[1] / w->strips;
    depthwise middle = w->middle;
    lines_of(g, r0, r1, &from, &to);
    if (w->g->expands) {
        expand_lines(w, l, image, from, to);
        middle.x = l->wide, middle.first_line = from;
    } else {
        middle.x = w->x + image * g->in[1] * g->in[2] * g->in_channels;
    }
    middle.out = l->narrow, middle.first_row = r0;
    depthwise_range(r0, r1, &middle);
    int64_t to_pixel = (image * g->out[1] + r0) * g->out[2] * p->out_channels;
    product_of(&w->project, l->narrow, w->out + to_pixel, w->residual ? w->residual + to_pixel : NULL,
               (r1 - r0) * g->out[2], l->copy);
}

static void inverted_thread(int64_t begin, int64_t end, void *context)
{
    inverted *w = context;
    float *work = w->work + begin * w->work_each;
    inverted_lines l = {-1, 0, 0, work, work + w->wide, work + w->wide + w->narrow};
    int64_t strip;
    (void)end;
    while ((strip = packed_turn(&w->turns, begin)) >= 0) inverted_strip(w, strip, &l);
}

/* Sets the number of strips of an image, so that each fits STRIP_BYTES and every thread gets STRIPS of them,
 * and the scratch of a thread. */
static void cut_strips(inverted *w, int64_t threads)
{
    const conv_geometry *g = &w->g->depthwise;
    int64_t in = w->g->expands ? g->in[2] * g->in_channels : 0, out = g->out[2] * g->out_channels;
    int64_t span = (g->kernel[1] - 1) * g->dilation[1] + 1 - g->stride[1]; /* input rows, less stride */
    int64_t capacity = STRIP_BYTES / 4 - span * in, each = g->stride[1] * in + out;
    int64_t rows = capacity < each ? 1 : capacity / each, strips = (g->out[1] + rows - 1) / rows;
    int64_t wanted = (threads * STRIPS + g->batch - 1) / g->batch;
    if (threads > 1) strips = (strips + wanted - 1) / wanted * wanted;
    w->strips = gemm_min(strips, g->out[1]);
    rows = (g->out[1] + w->strips - 1) / w->strips;
    int64_t lines = gemm_min(rows * g->stride[1] + (span > 0 ? span : 0), g->in[1]);
    w->wide = gemm_round_up(lines * in, 16), w->narrow = gemm_round_up(rows * out, 16);
    w->project.m = rows * g->out[2];
    packed_cut(&w->project, w->project.m);
    w->copies = w->project.work_each;
    if (!w->g->expands) return;
    w->expand.m = lines * g->in[2];
    packed_cut(&w->expand, w->expand.m);
    if (w->expand.work_each > w->copies) w->copies = w->expand.work_each;
}

/* A 1×1 convolution as a product; its filter is packed now unless it was before. */
static packed_product pointwise(packed_state *s, const conv_geometry *g, const proa_tensor *filter,
                                const proa_tensor *bias, proa_fused_activation activation)
{
    int64_t k = g->in_channels, n = g->out_channels;
    return (packed_product){.a = {.ld = k},
                            .b = packed_operand(s, filter, (gemm_strides){1, k}, k, n),
                            .n = n,
                            .k = k,
                            .by_rows = true,
                            .bias = conv_floats(bias),
                            .tail = {.residual = proa_none, .activation = activation}};
}

static proa_status inverted_residual_prepare(const void *args, void **state)
{
    const proa_inverted_residual_args *a = args;
    inverted_geometry g;
    PROA_TRY(proa__inverted_geometry(a, &g));
    const proa__epilogue tail = {.residual = a->residual};
    conv_problem p = {.g = g.depthwise,
                      .sides = {a->x, a->depthwise, a->out},
                      .plain =
                          proa__epilogue_is_plain(&tail, a->out) && a->out->shape[0] == g.depthwise.batch,
                      .constant = a->constant_weight};
    PROA_TRY(conv_ask(CONV_ALGORITHM_inverted_residual_packed_cpu, NULL, &p));
    *state = proa__calloc(sizeof(inverted_state));
    return *state ? PROA_OK : proa_error();
}

static void inverted_residual_release(void *state)
{
    inverted_state *s = state;
    if (!s) return;
    packed_clear(&s->expand), packed_clear(&s->taps), packed_clear(&s->project);
    proa__free(s);
}

PROA__KERNEL_TRAITS(inverted_residual_packed_cpu, .packs = 1u << 1 | 1u << 5) /* expand, project */
PROA_KERNEL_PREPARED(inverted_residual_packed_cpu, inverted_residual, inverted_residual_prepare,
                     inverted_residual_release)
{
    inverted_geometry g;
    inverted_state *s = run->state;
    PROA_TRY(proa__inverted_geometry(a, &g));
    inverted w = {.g = &g,
                  .x = conv_floats(a->x),
                  .residual = conv_floats(a->residual),
                  .out = (float *)(void *)a->out->data};
    if (g.expands)
        w.expand = pointwise(&s->expand, &g.expand, a->expand, a->expand_bias, a->expand_activation);
    w.project = pointwise(&s->project, &g.project, a->project, a->project_bias, PROA_FUSED_ACTIVATION_NONE);
    w.middle = (depthwise){.bias = conv_floats(a->depthwise_bias),
                           .taps = depthwise_taps(&s->taps, a->depthwise, &g.depthwise),
                           .tail = {.residual = proa_none, .activation = a->activation}};
    if (!w.middle.taps || !w.project.b || (g.expands && !w.expand.b)) return proa_error();
    int64_t threads = gemm_min(proa_threads(), g.depthwise.batch * g.depthwise.out[1]);
    depthwise_cut(&w.middle, &g.depthwise);
    cut_strips(&w, threads);
    w.work_each = w.wide + w.narrow + w.copies;
    w.work = proa_scratch((size_t)(threads * w.work_each) * sizeof(float));
    if (!w.work) return proa_error();
    packed_turns_begin(&w.turns, g.depthwise.batch * w.strips, threads);
    proa__parallel(threads, 1, inverted_thread, &w);
    proa_scratch_free(w.work);
    return PROA_OK;
}

/* ---- the composition ------------------------------------------------------------------------- */

static proa_status convolve(proa_conv2d_fused_args *a, proa_tensor **out)
{
    a->data_format = PROA_DATA_FORMAT_NHWC;
    PROA_TRY(proa_call_from(PROA_DOOR_RUN, proa_find_op("conv2d_fused"), a));
    *out = a->out;
    return PROA_OK;
}

static proa_status compose(const proa_inverted_residual_args *a)
{
    const int64_t ones[] = {1, 1}, zeros[] = {0, 0};
    const proa_ints one = {.count = 2, .at = ones}, zero = {.count = 2, .at = zeros};
    proa_tensor *x = a->x;
    proa_conv2d_fused_args plain = {
        .residual = proa_none, .stride = one, .padding = zero, .dilation = one, .groups = 1};
    plain.constant_weight = a->constant_weight;
    proa_conv2d_fused_args first = plain, second = plain, third = plain;
    if (!proa__absent(a->expand)) {
        first.x = x, first.weight = a->expand, first.bias = a->expand_bias;
        first.activation = a->expand_activation;
        PROA_TRY(convolve(&first, &x));
    }
    second.x = x, second.weight = a->depthwise, second.bias = a->depthwise_bias;
    second.stride = a->stride, second.padding = a->padding, second.groups = a->depthwise->shape[0];
    second.activation = a->activation;
    PROA_TRY(convolve(&second, &x));
    third.x = x, third.weight = a->project, third.bias = a->project_bias, third.residual = a->residual;
    third.out = a->out;
    return convolve(&third, &x);
}

PROA_KERNEL_ANYWHERE(inverted_residual_cpu, inverted_residual)
{
    proa_status status = PROA_OK;
    PROA_SCOPE {
        status = compose(a);
    }
    return status;
}
