/* Channels-last convolutions whose filter never changes. Each channel by itself: depthwise.h. 1×1:
 * products with a packed operand (ops/packed.h). 3×3: winograd.h, winograd_large.h and winograd_strided.h.
 * May use core and helpers of ops/. */
#include "ops/conv/depthwise.h"
#include "ops/conv/winograd_large.h"
#include "ops/conv/winograd_strided.h"

/* ---- 1×1 ------------------------------------------------------------------------------------ */

static proa_status run_pointwise(const proa_conv2d_fused_args *a, const conv_geometry *g, packed_state *s)
{
    int64_t k = g->in_channels, n = g->out_channels, line = g->in[2] * k;
    bool dense = g->stride[1] == 1 && g->stride[2] == 1;
    packed_product w = {.a = {(const float *)(void *)a->x->data, k, 0, 0, 0, 0},
                        .b = packed_operand(s, a->weight, (gemm_strides){1, k}, k, n),
                        .c = (float *)(void *)a->out->data,
                        .m = g->batch * g->out[1] * g->out[2],
                        .n = n,
                        .k = k,
                        .bias = proa__absent(a->bias) ? NULL : (const float *)(void *)a->bias->data,
                        .tail = PROA__TAIL(a)};
    w.residual = packed_residual(&w.tail);
    if (!dense) {
        w.a.ld = g->stride[2] * k, w.a.width = g->out[2], w.a.lines = g->out[1];
        w.a.line_step = g->stride[1] * line, w.a.image_step = g->in[1] * line;
    }
    return w.b ? packed_run(&w) : proa_error();
}

/* ---- 3×3 ------------------------------------------------------------------------------------ */

/* Where filters are read for fewer tiles, that takes longer than to multiply. */
enum { LEAST_TILES = 16, LEAST_STRIDED_TILES = 40, LEAST_LARGE_TILES = 40 };

typedef struct frozen_filter {
    const winograd *w;
    const float *filter;
    float *points;
} frozen_filter;

/* Points of a panel's filters, each input channel's beside one another. */
static void filter_range(int64_t begin, int64_t end, void *context)
{
    const frozen_filter *f = context;
    const winograd_kind *kind = f->w->kind;
    int64_t in = f->w->from.channels, out = f->w->to.channels;
    for (int64_t panel = begin; panel < end; panel++)
        for (int64_t q = 0; q < PACKED_NR; q += PACKED_LANES) {
            int64_t first = panel * PACKED_NR + q, filters = gemm_min(PACKED_LANES, out - first);
            float *to = f->points + panel * f->w->filter_floats + q;
            for (int64_t c = 0; c < in; c++) {
                float g[WINOGRAD_TAPS][PACKED_LANES] = {{0}};
                packed_vector u[WINOGRAD_MOST_POINTS];
                for (int64_t i = 0; i < filters; i++)
                    for (int64_t t = 0; t < WINOGRAD_TAPS; t++)
                        g[t][i] = f->filter[((first + i) * in + c) * WINOGRAD_TAPS + t];
                kind->filter((const packed_vector *)g, u);
                for (int p = 0; p < kind->points; p++)
                    *(packed_vector *)(to + f->w->sum[kind->sum_of[p]].filter +
                                       (kind->place_of[p] * in + c) * PACKED_NR) = u[p];
            }
        }
}

/* Large tiles where maps are not mostly padding to them. */
static const winograd_kind *kind_for(const conv_geometry *g)
{
    if (g->stride[1] != 1) return &winograd_strided;
    int64_t tiles = winograd_tiles_of(g, winograd_large.side),
            small = winograd_tiles_of(g, winograd_plain.side);
    bool fewer = tiles * LARGE_POINTS * 4 <= small * WINOGRAD_POINTS * 3; /* products, by a quarter */
    return fewer && tiles >= LEAST_LARGE_TILES ? &winograd_large : &winograd_plain;
}

static proa_status run_winograd(const proa_conv2d_fused_args *a, const conv_geometry *g, packed_state *s)
{
    winograd w = {.kind = kind_for(g),
                  .from = winograd_map_of(a->x->data, g->in, g->in_channels, false),
                  .to = winograd_map_of(a->out->data, g->out, g->out_channels, false),
                  .batch = g->batch,
                  .before = {g->before[1], g->before[2]},
                  .points = s->data,
                  .bias = proa__absent(a->bias) ? NULL : (const float *)(void *)a->bias->data,
                  .tail = PROA__TAIL(a)};
    if (!packed_is_of(s, a->weight)) {
        int64_t panels = packed_panels(g->out_channels);
        winograd_lay(&w, 1);
        frozen_filter f = {&w, (const float *)(void *)a->weight->data, NULL};
        w.points = f.points = packed_renew(s, a->weight, panels * w.filter_floats);
        if (!f.points) return proa_error();
        proa__parallel(panels, 1, filter_range, &f);
        packed_forget(a->weight);
    }
    return winograd_run(&w);
}

/* ---- which ------------------------------------------------------------------------------------- */

static bool is_pointwise(const conv_geometry *g)
{
    return conv_all_are(g->kernel, 1) && conv_all_are(g->before, 0) && conv_all_are(g->after, 0);
}

static bool takes_winograd(const conv_geometry *g)
{
    return g->in_channels <= PACKED_KC &&
           (winograd_takes(g, 1, LEAST_TILES) || winograd_takes(g, 2, LEAST_STRIDED_TILES));
}

static proa_status conv2d_fused_prepare(const void *args, void **state)
{
    const proa_conv2d_fused_args *a = args;
    const proa__tail tail = PROA__TAIL(a);
    conv_geometry g;
    if (!a->constant_weight || a->x->dtype != PROA_F32) return PROA_DECLINED;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, 2, "conv2d_fused"), &g));
    if (!g.channels_last || !proa__tail_is_plain(&tail, a->out)) return PROA_DECLINED;
    if (a->out->shape[0] != g.batch || a->out->numel == 0 || a->weight->numel == 0) return PROA_DECLINED;
    bool takes = g.groups == 1 ? is_pointwise(&g) || takes_winograd(&g) : depthwise_takes(&g);
    return takes ? packed_prepare(state) : PROA_DECLINED;
}

PROA_KERNEL_PREPARED(conv2d_fused_packed_cpu, conv2d_fused, conv2d_fused_prepare, packed_release)
{
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, 2, "conv2d_fused"), &g));
    if (g.groups > 1) return depthwise_run(a, &g, run->state);
    return is_pointwise(&g) ? run_pointwise(a, &g, run->state) : run_winograd(a, &g, run->state);
}
