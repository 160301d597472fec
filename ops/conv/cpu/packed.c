/* Channels-last convolutions with a constant filter: depthwise ones (depthwise.h), 1×1 as prepacked GEMM
 * (kernels/prepacked_gemm.h), and Winograd for 3×3 and for 7 or 8 taps a side over few channels
 * (winograd*.h). May use core and kernels. */
#include "ops/conv/depthwise.h"
#include "ops/conv/winograd_f4x4.h"
#include "ops/conv/winograd_f3x3.h"
#include "ops/conv/winograd_phases.h"
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
                        .tail = PROA__EPILOGUE(a)};
    w.residual = packed_residual(&w.tail);
    if (!dense) {
        w.a.ld = g->stride[2] * k, w.a.width = g->out[2], w.a.lines = g->out[1];
        w.a.line_step = g->stride[1] * line, w.a.image_step = g->in[1] * line;
    }
    return w.b ? packed_run(&w) : proa_error();
}

/* ---- by tiles ------------------------------------------------------------------------------------ */

/* Where filters are read for fewer tiles, that takes longer than to multiply. */
enum { MIN_TILES = 16, MIN_STRIDED_TILES = 40 };

typedef struct frozen_filter {
    const winograd *w;
    const conv_geometry *g;
    const float *filter;
    float *points;
} frozen_filter;

/* Points of a panel's filters, each summed channel's beside one another. */
static void filter_range(int64_t begin, int64_t end, void *context)
{
    const frozen_filter *f = context;
    const winograd_kind *kind = f->w->kind;
    int64_t in = f->w->from.channels, out = f->w->to.channels;
    int64_t each = f->g->in_channels * f->g->kernel[1] * f->g->kernel[2];
    for (int64_t panel = begin; panel < end; panel++)
        for (int64_t q = 0; q < PACKED_NR; q += PACKED_LANES) {
            int64_t first = panel * PACKED_NR + q, filters = gemm_min(PACKED_LANES, out - first);
            float *to = f->points + panel * f->w->filter_floats + q;
            for (int64_t c = 0; c < in; c++) {
                float g[WINOGRAD_MAX_TAPS][PACKED_LANES] = {{0}};
                packed_vector u[WINOGRAD_MAX_POINTS];
                for (int64_t t = 0; t < kind->taps; t++) {
                    int64_t at = kind->tap(f->g, c, t);
                    for (int64_t i = 0; i < filters && at >= 0; i++)
                        g[t][i] = f->filter[(first + i) * each + at];
                }
                kind->filter((const packed_vector *)g, u);
                for (int p = 0; p < kind->points; p++)
                    *(packed_vector *)(to + f->w->sum[kind->sum_of[p]].filter +
                                       (kind->place_of[p] * in + c) * PACKED_NR) = u[p];
            }
        }
}

/* What tiles of a kind cost: a product a point; or reading the filter's points, which takes as long as some
 * tiles do. */
static int64_t cost_of(const conv_geometry *g, const winograd_kind *kind)
{
    enum { READING = 16 };
    int64_t tiles = winograd_tiles_of(g, kind->side);
    return kind->points * (tiles > READING ? tiles : READING);
}

/* Larger tiles where they cost less by a tenth: maps are not mostly padding to them then. */
static const winograd_kind *kind_for(const conv_geometry *g)
{
    static const winograd_kind *const larger[] = {&winograd_f3x3, &winograd_f4x4};
    const winograd_kind *best = phases_kind(g);
    if (best) return best;
    if (g->stride[1] != 1) return &winograd_strided;
    best = &winograd_plain;
    for (int i = 0; i < 2; i++)
        if (cost_of(g, larger[i]) * 10 < cost_of(g, best) * 9) best = larger[i];
    return best;
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
                  .tail = PROA__EPILOGUE(a)};
    w.from.channels *= w.kind->phases; /* which are summed up; where pixels stand stays the same */
    if (!packed_is_of(s, a->weight)) {
        int64_t panels = packed_panels(g->out_channels);
        winograd_lay(&w, 1);
        frozen_filter f = {&w, g, (const float *)(void *)a->weight->data, NULL};
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
           (winograd_takes(g, 1, MIN_TILES) || winograd_takes(g, 2, MIN_STRIDED_TILES) ||
            (proa__flag_int(PROA_FLAG_winograd) && phases_kind(g)));
}

static proa_status conv2d_fused_prepare(const void *args, void **state)
{
    const proa_conv2d_fused_args *a = args;
    const proa__epilogue tail = PROA__EPILOGUE(a);
    conv_geometry g;
    if (!a->constant_weight || a->x->dtype != PROA_F32) return proa_decline("needs constant float32 weights");
    PROA_TRY(proa__conv_geometry_once(&CONV_PARAMS(a, 2, "conv2d_fused"), &g));
    if (!g.channels_last || !proa__epilogue_is_plain(&tail, a->out))
        return proa_decline("not channels-last, or the epilogue broadcasts");
    if (a->out->shape[0] != g.batch || a->out->numel == 0 || a->weight->numel == 0)
        return proa_decline("empty, or the batch is broadcast");
    bool takes = g.groups == 1 ? is_pointwise(&g) || takes_winograd(&g) : depthwise_takes(&g);
    return takes ? packed_prepare(state) : proa_decline("neither 1x1, depthwise nor a Winograd shape");
}

PROA_KERNEL_PREPARED(conv2d_fused_packed_cpu, conv2d_fused, conv2d_fused_prepare, packed_release)
{
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, 2, "conv2d_fused"), &g));
    if (g.groups > 1) return depthwise_run(a, &g, run->state);
    return is_pointwise(&g) ? run_pointwise(a, &g, run->state) : run_winograd(a, &g, run->state);
}
