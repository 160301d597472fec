/* Channels-last convolutions with a constant filter: depthwise (depthwise.h), 1×1 as prepacked GEMM
 * (kernels/prepacked_gemm.h), and Winograd for 3×3 filters with stride 1 and for filters of 7 or 8 taps a
 * side with stride 2 over few channels (winograd*.h). May use core and kernels. */
#include "ops/conv/algorithms.h"
#include "ops/conv/depthwise.h"
#include "ops/conv/winograd_phases.h"

/* ---- 1×1 ------------------------------------------------------------------------------------ */

static proa_status run_pointwise(const proa_conv2d_fused_args *a, const conv_geometry *g, packed_state *s)
{
    int64_t k = g->in_channels, n = g->out_channels, line = g->in[2] * k;
    bool dense = g->stride[1] == 1 && g->stride[2] == 1;
    packed_product w = {.a = {conv_floats(a->x), k, 0, 0, 0, 0},
                        .b = packed_operand(s, a->weight, (gemm_strides){1, k}, k, n),
                        .c = (float *)(void *)a->out->data,
                        .m = g->batch * g->out[1] * g->out[2],
                        .n = n,
                        .k = k,
                        .bias = conv_floats(a->bias),
                        .tail = PROA__EPILOGUE(a)};
    w.residual = packed_residual(&w.tail);
    if (!dense) {
        w.a.ld = g->stride[2] * k, w.a.width = g->out[2], w.a.lines = g->out[1];
        w.a.line_step = g->stride[1] * line, w.a.image_step = g->in[1] * line;
    }
    return w.b ? packed_run(&w) : proa_error();
}

/* ---- by tiles ------------------------------------------------------------------------------------ */

typedef struct frozen_filter {
    const winograd *w;
    const conv_geometry *g;
    const float *filter;
    float *points;
} frozen_filter;

/* Transforms the filters of panels [begin, end) to points. */
static void filter_range(int64_t begin, int64_t end, void *context)
{
    const frozen_filter *f = context;
    const winograd_kind *kind = f->w->kind;
    const int points = winograd_tile_points(kind), taps = kind->set->taps * kind->set->taps;
    int64_t in = f->w->from.channels, out = f->w->to.channels;
    int64_t each = f->g->in_channels * f->g->kernel[1] * f->g->kernel[2];
    for (int64_t panel = begin; panel < end; panel++)
        for (int64_t q = 0; q < PACKED_NR; q += PACKED_LANES) {
            int64_t first = panel * PACKED_NR + q, filters = gemm_min(PACKED_LANES, out - first);
            float *to = f->points + panel * points * f->w->filter_step + q;
            for (int64_t c = 0; c < in; c++) {
                float g[WINOGRAD_MAX_TAPS][PACKED_LANES] = {{0}};
                packed_vector u[WINOGRAD_MAX_POINTS];
                for (int64_t t = 0; t < taps; t++) {
                    int64_t at = kind->tap(f->g, c, t);
                    for (int64_t i = 0; i < filters && at >= 0; i++)
                        g[t][i] = f->filter[(first + i) * each + at];
                }
                kind->filter((const packed_vector *)g, u);
                for (int p = 0; p < points; p++)
                    *(packed_vector *)(to + p * f->w->filter_step + c * PACKED_NR) = u[p];
            }
        }
}

static proa_status run_winograd(const proa_conv2d_fused_args *a, const conv_geometry *g, packed_state *s,
                                const winograd_kind *kind)
{
    winograd w = {.kind = kind,
                  .from = winograd_map_of(a->x->data, g->in, g->in_channels, false),
                  .to = winograd_map_of(a->out->data, g->out, g->out_channels, false),
                  .batch = g->batch,
                  .before = {g->before[1], g->before[2]},
                  .points = s->data,
                  .bias = conv_floats(a->bias),
                  .tail = PROA__EPILOGUE(a)};
    w.from.channels *= w.kind->phases; /* channels to sum; the steps between pixels are unchanged */
    if (!packed_is_of(s, a->weight)) {
        int64_t panels = packed_panels(g->out_channels);
        winograd_layout(&w, 1);
        frozen_filter f = {&w, g, conv_floats(a->weight), NULL};
        w.points = f.points = packed_renew(s, a->weight, panels * winograd_tile_points(kind) * w.filter_step);
        if (!f.points) return proa_error();
        proa__parallel(panels, 1, filter_range, &f);
        packed_forget(a->weight);
    }
    return winograd_run(&w);
}

/* ---- the kernels --------------------------------------------------------------------------------- */

static proa_status prepare(conv_algorithm_id id, const proa_conv2d_fused_args *a, void **state)
{
    conv_problem p = CONV_FUSED_PROBLEM(a);
    PROA_TRY(conv_ask(id, &CONV_PARAMS(a, 2, "conv2d_fused"), &p));
    return packed_prepare(state);
}

static proa_status geometry_of(const proa_conv2d_fused_args *a, conv_geometry *g)
{
    return proa__conv_geometry(&CONV_PARAMS(a, 2, "conv2d_fused"), g);
}

#define FROZEN_KERNEL(kernel, run_call)                                          \
    static proa_status kernel##_prepare(const void *args, void **state)          \
    {                                                                            \
        return prepare(CONV_ALGORITHM_##kernel, args, state);                    \
    }                                                                            \
    PROA_KERNEL_PREPARED(kernel, conv2d_fused, kernel##_prepare, packed_release) \
    {                                                                            \
        conv_geometry g;                                                         \
        return geometry_of(a, &g) ? proa_error() : run_call;                     \
    }
FROZEN_KERNEL(conv2d_fused_depthwise_nhwc_cpu, depthwise_run(a, &g, run->state))
PROA__KERNEL_TRAITS(conv2d_fused_pointwise_cpu, .packs = 1u << 1) /* weight */
FROZEN_KERNEL(conv2d_fused_pointwise_cpu, run_pointwise(a, &g, run->state))
FROZEN_KERNEL(conv2d_fused_winograd_phases_avx512_cpu, run_winograd(a, &g, run->state, &winograd_phases_kind))
FROZEN_KERNEL(conv2d_fused_winograd_f4x4_cpu, run_winograd(a, &g, run->state, &winograd_f4x4_kind))
FROZEN_KERNEL(conv2d_fused_winograd_f3x3_cpu, run_winograd(a, &g, run->state, &winograd_f3x3_kind))
FROZEN_KERNEL(conv2d_fused_winograd_f2x2_cpu, run_winograd(a, &g, run->state, &winograd_f2x2_kind))
