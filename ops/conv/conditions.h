/* For each algorithm of algorithms.h: the condition under which it supports a problem, and its cost relative
 * to the algorithms after it in the list (below 1: it is faster). May use core and kernels; everything is
 * static and compiled for the CPU level of the file that includes it. */
#ifndef PROA_OPS_CONV_CONDITIONS_H
#define PROA_OPS_CONV_CONDITIONS_H

#include "kernels/prepacked_gemm.h"
#include "ops/conv/blocks.h"

#define CONV_FN static inline __attribute__((unused))

/* The call for which a kernel is chosen: the geometry, computed once per selection, and the tensors on the
 * input, filter and output side, one of which is the result. */
typedef struct conv_problem {
    conv_geometry g;
    conv_kind direction;
    proa_tensor *sides[3];
    bool plain, constant; /* of fused ops: the residual does not broadcast; the filter is constant */
} conv_problem;

enum {
    CONV_DEPTHWISE_SIDE_MAX = 11, /* filter taps per side of a depthwise convolution */
    CONV_PAIRS_MAX = 1 << 14,     /* pixels × taps for which index pairs are listed */
    CONV_SUMMED_MAX = 4096,       /* products in one float32 sum of a wgrad */
    CONV_STRIDED_TAPS_MAX = 64,   /* taps, phases, shifts: the limits of a tile of sums */
    CONV_STRIDED_PHASES_MAX = 16,
    CONV_STRIDED_SHIFTS_MAX = 16,
    CONV_WINOGRAD_SIDE_MIN = 4, /* image side: below it, direct sums over pixel pairs need fewer products */
    CONV_DIRECT_SIDE_MAX = 32,  /* filter taps per side of a direct wgrad */
    CONV_LOW_INPUT_SIDE_MAX = 1 << 20,
    CONV_LOW_INPUT_PADDING_MAX = 64,
};

/* Below 1 where part ≤ whole. */
CONV_FN double conv_share(int64_t part, int64_t whole) { return (double)part / ((double)whole + 1); }
CONV_FN double conv_larger(double a, double b) { return a > b ? a : b; }

CONV_FN bool conv_is_result(const conv_problem *p, int side)
{
    return side == (p->direction == FORWARD ? 2 : p->direction == BACKWARD_DATA ? 0 : 1);
}

CONV_FN const char *conv_float32(const conv_problem *p)
{
    return p->sides[0]->dtype == PROA_F32 ? NULL : "not float32";
}

/* Conditions of all kernels on blocked tensors; NULL or the reason why not. */
CONV_FN const char *conv_blocked_float32(const conv_problem *p)
{
    if (!CONV_BLOCKS_FIT) return "needs AVX2";
    if (CONV_IMAGE_FORMAT == 0 || !proa__blocking()) return "blocked layouts are off";
    return conv_float32(p);
}

CONV_FN bool conv_by_blocks(const conv_geometry *g)
{
    return g->groups == 1 && !g->channels_last && g->batch > 0 && g->in_channels > 0 && g->out_channels > 0 &&
           g->in_channels % CONV_BLOCK == 0 && g->out_channels % CONV_BLOCK == 0;
}

/* Images in these blocks, or NCHW ones that can be converted to that layout. */
CONV_FN bool conv_image_by_blocks(const proa_tensor *t)
{
    int64_t block = proa__channel_block(t);
    return block == CONV_BLOCK || (!(t->flags & PROA_T_BLOCKED) && t->shape[1] % CONV_BLOCK == 0);
}

/* ---- depthwise, channels first ------------------------------------------------------------------- */

CONV_FN const char *conv_depthwise_nchw(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const bool back = p->direction == BACKWARD_DATA;
    for (int i = 0; i < 3; i++) {
        if (conv_is_result(p, i)) continue;
        if (p->sides[i]->dtype != PROA_F32) return "not float32";
        if (p->sides[i]->flags & PROA_T_BLOCKED) return "an operand is in blocked layout";
        if (p->sides[i]->numel <= 0) return "empty";
    }
    if (g->channels_last) return "channels last";
    if (g->groups != g->in_channels || g->groups != g->out_channels || g->groups <= 1) return "not depthwise";
    for (int i = 1; i < 3; i++) {
        if (g->dilation[i] != 1 || g->stride[i] > 4 || g->kernel[i] > CONV_DEPTHWISE_SIDE_MAX)
            return "dilated, or stride or filter too large";
        if (g->before[i] < 0 || (back && g->before[i] > g->kernel[i] - 1))
            return "padding exceeds the filter";
    }
    if (back && g->stride[1] != g->stride[2]) return "strides differ";
    bool empty = g->batch <= 0 || g->in[1] <= 0 || g->in[2] <= 0 || g->out[1] <= 0 || g->out[2] <= 0;
    return empty ? "empty" : NULL;
}

/* ---- Winograd ------------------------------------------------------------------------------------ */

CONV_FN const char *conv_winograd_shape(const conv_geometry *g)
{
    if (!proa__flag_int(PROA_FLAG_winograd)) return "FLAGS_winograd=0";
    if (g->dims != 2 || g->groups != 1 || !conv_all_are(g->kernel, 3) || !conv_all_are(g->dilation, 1))
        return "not 3x3 of one group without dilation";
    if (!conv_all_are(g->stride, 1)) return "stride is not 1";
    if (g->in_channels % CONV_BLOCK || g->out_channels % CONV_BLOCK || g->in_channels < 2 * CONV_BLOCK ||
        g->out_channels < CONV_BLOCK)
        return "channels are too few, or do not fill blocks";
    if (g->in_channels > PACKED_KC) return "too many input channels";
    bool small = g->out[1] < CONV_WINOGRAD_SIDE_MIN || g->out[2] < CONV_WINOGRAD_SIDE_MIN;
    return small ? "maps are smaller than 4x4" : NULL;
}

CONV_FN const char *conv_winograd(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const char *why = conv_blocked_float32(p);
    if (why) return why;
    for (int i = 0; i < 3; i++) {
        int format = proa__format(p->sides[i]);
        int own = i == 1 ? CONV_FILTER_FORMAT : CONV_IMAGE_FORMAT;
        if (!conv_is_result(p, i) && format && format != own)
            return "an operand is in another blocked layout";
    }
    if (g->channels_last) return "channels last";
    if (g->before[1] > 2 || g->before[2] > 2 || g->after[1] > 2 || g->after[2] > 2) return "padding over 2";
    if ((why = conv_winograd_shape(g))) return why;
    return g->out_channels < PACKED_NR || g->out_channels > PACKED_KC
               ? "output channels fill no panel, or are over 1024"
               : NULL;
}

/* The filter is transformed in each call, which costs as much as 64 tiles. With AVX2 few channels take longer
 * to transform than their products save, and so do panels that are not full: fitted to times of 16 to 64
 * channels on a Zen 1. */
CONV_FN double conv_winograd_cost(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const double made = (double)(p->direction == BACKWARD_DATA ? g->in_channels : g->out_channels);
    const double panels = (double)gemm_round_up((int64_t)made, PACKED_NR);
    const double cost = conv_share(64, conv_tiles(g, 2));
    if (VECTOR_BYTES != 32) return cost;
    return conv_larger(cost,
                       panels / made - 0.55 + 6.0 / (double)g->in_channels + 6.0 / (double)g->out_channels);
}

/* ---- small maps ---------------------------------------------------------------------------------- */

/* Number of (output pixel, tap) pairs along dim i that read the input and not its padding. */
CONV_FN int64_t conv_pairs_along(const conv_geometry *g, int i)
{
    int64_t n = 0;
    for (int64_t o = 0; o < g->out[i]; o++)
        for (int64_t t = 0; t < g->kernel[i]; t++) {
            int64_t at = o * g->stride[i] - g->before[i] + t * g->dilation[i];
            n += at >= 0 && at < g->in[i];
        }
    return n;
}

CONV_FN const char *conv_small_spatial(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const char *why = conv_blocked_float32(p);
    if (why) return why;
    if (p->direction == BACKWARD_WEIGHTS) {
        if (proa__channel_block(p->sides[0]) != CONV_BLOCK) return "the images are not in blocked layout";
    } else if (proa__format(p->sides[1]) != CONV_FILTER_FORMAT) {
        return "the filter is not in blocked layout";
    }
    if (!conv_by_blocks(g)) return "grouped, channels last, or channels that do not fill blocks";
    for (int i = 0; i < 3; i += 2)
        if (!conv_is_result(p, i) && !conv_image_by_blocks(p->sides[i]))
            return "an operand is in another blocked layout";
    int64_t taps = conv_pixels(g->kernel);
    if (conv_pixels(g->in) > CONV_PAIRS_MAX || taps > CONV_PAIRS_MAX ||
        conv_pixels(g->out) > CONV_PAIRS_MAX / (taps + !taps))
        return "the maps are too large";
    return conv_pairs_along(g, 1) && conv_pairs_along(g, 2) ? NULL : "no tap meets the input";
}

/* Cost relative to a dense convolution: the pairs, in vectors of images, must save more than packing
 * images costs. A wgrad's vectors are full, but its float32 sums must not get too long. */
CONV_FN double conv_small_spatial_cost(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    int64_t pairs = conv_pairs_along(g, 1) * conv_pairs_along(g, 2);
    int64_t spans = conv_pixels(g->out) * conv_pixels(g->kernel);
    if (p->direction == BACKWARD_WEIGHTS)
        return conv_larger(conv_share(pairs * 100, spans * 93),
                           conv_share(conv_pixels(g->out) * g->batch, CONV_SUMMED_MAX));
    return conv_share(pairs * gemm_round_up(g->batch, CONV_BLOCK) * 10, spans * g->batch * 8);
}

/* ---- strided dgrad ------------------------------------------------------------------------------- */

CONV_FN int64_t conv_floor(int64_t a, int64_t by) { return a / by - (a % by < 0); }

/* Pixels along dim i that the taps of one phase read; 0: too far apart. */
CONV_FN int64_t conv_strided_shifts(const conv_geometry *g, int i)
{
    if (g->before[i] > INT8_MAX || g->dilation[i] > INT8_MAX) return 0;
    int64_t last = conv_floor((g->kernel[i] - 1) * g->dilation[i] - g->before[i], g->stride[i]);
    return last > -INT8_MIN ? 0 : last - conv_floor(-g->before[i], g->stride[i]) + 1;
}

CONV_FN const char *conv_strided(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const char *why = conv_blocked_float32(p);
    if (why) return why;
    if (proa__format(p->sides[1]) != CONV_FILTER_FORMAT) return "the filter is not in blocked layout";
    if (!conv_image_by_blocks(p->sides[2])) return "the gradient is in another blocked layout";
    if (g->dims != 2 || !conv_by_blocks(g))
        return "grouped, channels last, or channels that do not fill blocks";
    int64_t taps = conv_pixels(g->kernel), phases = g->stride[1] * g->stride[2];
    if (taps > 1 && phases == 1) return "neither strided nor 1x1";
    if (phases > CONV_STRIDED_PHASES_MAX || taps > CONV_STRIDED_TAPS_MAX) return "stride or filter too large";
    int64_t shifts = conv_strided_shifts(g, 1) * conv_strided_shifts(g, 2);
    return shifts < 1 || shifts > CONV_STRIDED_SHIFTS_MAX ? "taps read too many pixels" : NULL;
}

/* Cost relative to later algorithms, which rearrange the filter in each call: the more columns share that,
 * the less it matters. For strided 1×1 filters, which leave out most of the input, only full vectors
 * count; with AVX2 oneDNN has these. */
CONV_FN double conv_strided_cost(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    int64_t columns = g->batch;
    for (int i = 1; i < 3; i++) columns *= (g->in[i] + g->stride[i] - 1) / g->stride[i];
    double fill = conv_share(gemm_round_up(columns, CONV_BLOCK) * 8, columns * 10);
    if (conv_pixels(g->kernel) > 1) return conv_larger(fill, conv_share(columns, g->in_channels));
    if (g->stride[1] * g->stride[2] > 1) return VECTOR_BYTES == 64 ? fill : 2;
    return conv_larger(fill, conv_share(columns, 128));
}

/* ---- direct wgrad -------------------------------------------------------------------------------- */

CONV_FN const char *conv_direct_filter(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const char *why = conv_blocked_float32(p);
    if (why) return why;
    if (g->dims != 2 || !conv_by_blocks(g))
        return "grouped, channels last, or channels that do not fill blocks";
    for (int i = 0; i < 3; i += 2)
        if (!conv_image_by_blocks(p->sides[i])) return "an operand is in another blocked layout";
    for (int i = 1; i < 3; i++) {
        if (g->in[i] < 1 || g->out[i] < 1) return "empty";
        if (g->kernel[i] > CONV_DIRECT_SIDE_MAX) return "filter too large";
    }
    return NULL;
}

/* ---- few input channels -------------------------------------------------------------------------- */

CONV_FN const char *conv_low_input(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    if (!CONV_BLOCKS_FIT) return "needs AVX2";
    if (conv_float32(p)) return conv_float32(p);
    if ((p->sides[0]->flags | p->sides[1]->flags) & PROA_T_BLOCKED) return "an operand is in blocked layout";
    if (p->sides[2]->flags & PROA_T_BLOCKED && proa__format(p->sides[2]) != CONV_IMAGE_FORMAT)
        return "the gradient is in another blocked layout";
    if (g->groups != 1 || g->channels_last) return "grouped, or channels last";
    if (g->batch < 1 || g->in_channels < 1) return "empty";
    for (int i = 1; i < 3; i++)
        if (g->in[i] < 1 || g->out[i] < 1 || g->in[i] > CONV_LOW_INPUT_SIDE_MAX / g->kernel[i] ||
            g->before[i] > CONV_LOW_INPUT_PADDING_MAX || g->after[i] > CONV_LOW_INPUT_PADDING_MAX)
            return "maps or padding too large";
    if (conv_pixels(g->kernel) < 9) return "fewer than 9 taps";
    bool rows = g->kernel[2] == 3 || g->kernel[2] == 5 || g->kernel[2] == 7;
    bool takes = p->direction != BACKWARD_WEIGHTS || (rows && conv_all_are(g->dilation, 1));
    return takes ? NULL : "dilated, or rows of other than 3, 5 or 7 taps";
}

/* Vectors (of images or output channels) must be full enough, and blocks of input channels must not be. */
CONV_FN double conv_low_input_cost(const conv_problem *p)
{
    int64_t ic = p->g.in_channels,
            vectors = p->direction == BACKWARD_WEIGHTS ? p->g.out_channels : p->g.batch;
    return conv_larger(conv_share(gemm_round_up(vectors, CONV_BLOCK) * 6, vectors * 10),
                       conv_share(ic * 10, gemm_round_up(ic, CONV_BLOCK) * 8));
}

/* ---- oneDNN -------------------------------------------------------------------------------------- */

CONV_FN const char *conv_by_onednn(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const proa_dtype dtype = (proa_dtype)p->sides[0]->dtype;
    if (dtype != PROA_F32 && dtype != PROA_BF16 && dtype != PROA_F16)
        return "a dtype that oneDNN does not take";
    if (g->batch < 1) return "empty";
    for (int i = 0; i < 3; i++) {
        int64_t span = g->in[i] + g->before[i] + g->after[i] - g->dilation[i] * (g->kernel[i] - 1) - 1;
        if (g->in[i] < 1 || g->out[i] < 1 || span < 0 || span / g->stride[i] + 1 != g->out[i])
            return "a size that oneDNN does not take";
    }
    return p->plain ? NULL : "the epilogue broadcasts";
}

/* conv_cpu's vectors of pixels beat vectors of channels that few output channels do not fill. */
CONV_FN double conv_by_onednn_cost(const conv_problem *p)
{
    return !conv_float32(p) && proa__conv_has_low_output_channels(&p->g) ? 2 : 0;
}

/* ---- constant filters ---------------------------------------------------------------------------- */

CONV_FN const char *conv_frozen(const conv_problem *p)
{
    if (!p->constant || conv_float32(p)) return "needs constant float32 weights";
    if (!p->plain) return "the epilogue broadcasts";
    for (int i = 0; i < 3; i++)
        if (p->sides[i]->numel <= 0) return "empty";
    return p->g.channels_last ? NULL : "channels first";
}

CONV_FN const char *conv_frozen_depthwise(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const char *why = conv_frozen(p);
    if (why) return why;
    if (g->groups != g->in_channels || g->in_channels != g->out_channels || g->groups <= 1)
        return "not depthwise";
    return g->out_channels >= PACKED_LANES ? NULL : "channels do not fill a vector";
}

CONV_FN const char *conv_frozen_pointwise(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const char *why = conv_frozen(p);
    if (why) return why;
    bool is = g->groups == 1 && conv_all_are(g->kernel, 1) && conv_all_are(g->before, 0) &&
              conv_all_are(g->after, 0);
    return is ? NULL : "not 1x1 of one group without padding";
}

CONV_FN const char *conv_frozen_winograd(const conv_problem *p)
{
    const char *why = conv_frozen(p);
    return why ? why : conv_winograd_shape(&p->g);
}

CONV_FN const char *conv_frozen_phases(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const char *why = conv_frozen(p);
    if (why) return why;
#if defined(__AVX512F__) && defined(__AVX512VL__)
    if (!proa__flag_int(PROA_FLAG_winograd)) return "FLAGS_winograd=0";
    bool taps = g->kernel[1] >= 7 && g->kernel[1] <= 8 && g->kernel[2] >= 7 && g->kernel[2] <= 8;
    if (!taps || g->groups != 1 || !conv_all_are(g->stride, 2) || !conv_all_are(g->dilation, 1))
        return "not 7 or 8 taps a side with stride 2";
    return g->in_channels <= 4 && g->out_channels % PACKED_LANES == 0
               ? NULL
               : "over 4 input channels, or output channels do not fill vectors";
#else
    (void)g;
    return "needs AVX-512";
#endif
}

/* Reading the transformed filter takes as long as multiplying 16 tiles. */
CONV_FN double conv_f2x2_cost(const conv_problem *p) { return conv_share(16, conv_tiles(&p->g, 2)); }

/* Four phases of 36 products for a tile of 3x3 results: at most half of what direct sums take. */
CONV_FN double conv_frozen_phases_cost(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    int64_t tiles = conv_tiles(g, 3), direct = g->batch * conv_pixels(g->out) * conv_pixels(g->kernel);
    return conv_larger(conv_share(16, tiles), conv_share(2 * tiles * 4 * 36, direct));
}

/* Cost of tiles of side × side results: a product a point; or reading the filter's points, which takes as
 * long as 16 tiles do. */
CONV_FN int64_t conv_products(const conv_geometry *g, int64_t side)
{
    int64_t tiles = conv_tiles(g, side);
    return (side + 2) * (side + 2) * (tiles > 16 ? tiles : 16);
}

/* Larger tiles must cost less by over a tenth: maps are not mostly padding to them then. */
CONV_FN double conv_f3x3_cost(const conv_problem *p)
{
    double by = conv_share(conv_products(&p->g, 3) * 10 + 1, conv_products(&p->g, 2) * 9);
    return conv_larger(conv_f2x2_cost(p), by);
}

CONV_FN double conv_f4x4_cost(const conv_problem *p)
{
    int64_t behind = conv_products(&p->g, conv_f3x3_cost(p) < 1 ? 3 : 2);
    return conv_larger(conv_f2x2_cost(p), conv_share(conv_products(&p->g, 4) * 10 + 1, behind * 9));
}

#endif
