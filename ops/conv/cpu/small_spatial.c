/* float32 convolutions over feature maps so small that most filter taps fall on padding: sums run over the
 * (input, output) pixel pairs that a tap connects and nothing else (a 3×3 filter over a 2×2 map connects 16
 * of 36 pairs). Vectors hold 16 images in forward and dgrad, 16 output channels in wgrad; blocked layouts
 * only. May use core and helpers of ops/. */
#include "ops/conv/algorithms.h"
#include "ops/conv/gather_map.h"

enum { BLOCK = PAIRS_BLOCK, TILE = PAIRS_TILE };

typedef gather_lane lane;

typedef struct small_spatial_state {
    conv_geometry g;
    int64_t places_in, places_out;
    conv_gather_map of; /* the two maps */
} small_spatial_state;

/* ---- preparing ---------------------------------------------------------------------------------- */

static void small_spatial_release(void *state)
{
    small_spatial_state *s = state;
    if (!s) return;
    gather_release(&s->of);
    proa__free(s);
}

/* Input pixel under tap (r, c) of the filter at output pixel (y, x); −1: in the padding. */
static int64_t place_under(const conv_geometry *g, int64_t y, int64_t x, int64_t r, int64_t c)
{
    int64_t line = y * g->stride[1] - g->before[1] + r * g->dilation[1];
    int64_t column = x * g->stride[2] - g->before[2] + c * g->dilation[2];
    bool inside = line >= 0 && line < g->in[1] && column >= 0 && column < g->in[2];
    return inside ? line * g->in[2] + column : -1;
}

/* Lists every (input pixel, output pixel, tap) triple, in a fixed order. */
static void each_pair(const small_spatial_state *s, conv_pair *list)
{
    const conv_geometry *g = &s->g;
    int64_t n = 0;
    for (int64_t o = 0; o < s->places_out; o++)
        for (int64_t t = 0; t < s->of.taps; t++) {
            int64_t in = place_under(g, o / g->out[2], o % g->out[2], t / g->kernel[2], t % g->kernel[2]);
            if (in < 0) continue;
            list[n++] = (conv_pair){(int32_t)in, (int32_t)o, (int32_t)t};
        }
}

static proa_status sort_pairs(small_spatial_state *s, conv_kind kind)
{
    const int64_t n = conv_pairs_along(&s->g, 1) * conv_pairs_along(&s->g, 2);
    conv_pair *list = proa_scratch((size_t)n * sizeof *list);
    if (!list) return proa_error();
    each_pair(s, list);
    s->of.groups = kind == FORWARD ? s->places_out : kind == BACKWARD_DATA ? s->places_in : s->of.taps;
    proa_status status = gather_sort(&s->of, list, n, kind);
    proa_scratch_free(list);
    return status;
}

static proa_status keep(const conv_problem *p, void **state)
{
    small_spatial_state *made = proa__alloc(sizeof *made);
    if (!made) return proa_error();
    *made = (small_spatial_state){.g = p->g,
                                  .places_in = conv_pixels(p->g.in),
                                  .places_out = conv_pixels(p->g.out),
                                  .of.taps = conv_pixels(p->g.kernel)};
    proa_status status = sort_pairs(made, p->direction);
    if (status == PROA_OK) *state = made;
    else small_spatial_release(made);
    return status;
}

/* ---- images that are read and written -------------------------------------------------------------- */

typedef struct small_spatial_job {
    const small_spatial_state *s;
    conv_kind kind;
    gather_map from, with, to; /* with: the second operand of a filter's gradient */
    const float *filter, *bias;
    float *d_filter;
    bool plain_filter; /* d_filter is row-major */
    float *packed, *packed_with, *sums;
    int64_t images; /* of a packed line */
} small_spatial_job;

/* Copies one channel block at one pixel as [channel][image], zeros after the last image. */
static void pack_images(const small_spatial_job *j, const gather_map *m, const float *from, float *to)
{
    int64_t n = j->s->g.batch, done = m->channel == 1 ? n / 4 * 4 : 0;
    for (int64_t i = 0; i < done; i += 4)
        for (int64_t c = 0; c < BLOCK; c += 4)
            gemm_transpose_four(from + i * m->image + c, m->image, to + c * j->images + i, j->images);
    for (int64_t c = 0; c < BLOCK; c++) {
        for (int64_t i = done; i < n; i++) to[c * j->images + i] = from[i * m->image + c * m->channel];
        for (int64_t i = n; i < j->images; i++) to[c * j->images + i] = 0;
    }
}

/* Copies blocks of channels to [block][pixel][channel][image]. */
static void pack_range(int64_t begin, int64_t end, void *context)
{
    const small_spatial_job *j = context;
    const gather_map *m = &j->from;
    for (int64_t b = begin; b < end; b++)
        for (int64_t p = 0; p < m->places; p++)
            pack_images(j, m, m->data + b * m->block + p * m->place,
                        j->packed + (b * m->places + p) * BLOCK * j->images);
}

/* Stores 16 channels of images first to first + 15 at one pixel; images after the last one are skipped. */
static void store_images(const small_spatial_job *j, int64_t block, int64_t place, int64_t first,
                         const lane *sum)
{
    const gather_map *m = &j->to;
    const float *from = (const float *)sum;
    float *to = m->data + first * m->image + block * m->block + place * m->place;
    int64_t n = gemm_min(BLOCK, j->s->g.batch - first), done = m->channel == 1 ? n / 4 * 4 : 0;
    for (int64_t i = 0; i < done; i += 4)
        for (int64_t c = 0; c < BLOCK; c += 4)
            gemm_transpose_four(from + c * BLOCK + i, BLOCK, to + i * m->image + c, m->image);
    for (int64_t i = done; i < n; i++)
        for (int64_t c = 0; c < BLOCK; c++) to[i * m->image + c * m->channel] = from[c * BLOCK + i];
}

/* ---- forwards, and to the input ---------------------------------------------------------------------- */

/* Sums one vector of images for one block of channels. Item: vector of images (fastest), block of channels.
 * An item's sums are stored after the packed images. */
static void sum_range(int64_t begin, int64_t end, void *context)
{
    const small_spatial_job *j = context;
    const small_spatial_state *s = j->s;
    bool forward = j->kind == FORWARD;
    int64_t vectors = j->images / BLOCK, panel = j->from.places * BLOCK * j->images;
    for (int64_t item = begin; item < end; item++) {
        int64_t block = item / vectors, first = item % vectors * BLOCK;
        lane *sums = (lane *)(void *)(j->sums + item * j->to.places * TILE);
        for (int64_t i = 0; i < j->to.places * BLOCK; i++) {
            sums[i] = (lane){0};
            if (j->bias) sums[i] += j->bias[block * BLOCK + i % BLOCK];
        }
        gather_operands o = {.w = j->filter + block * (forward ? j->from.blocks : 1) * s->of.taps * TILE,
                             .from = j->packed + first,
                             .step = (forward ? 1 : j->to.blocks) * s->of.taps * TILE,
                             .from_step = panel,
                             .row = j->images,
                             .blocks = j->from.blocks};
        for (; o.blocks; o.blocks--, o.w += o.step, o.from += o.from_step)
            if (forward) gather_add_blocks(&s->of, true, &o, 1, sums);
            else gather_add_blocks(&s->of, false, &o, 1, sums);
        for (int64_t place = 0; place < j->to.places; place++)
            store_images(j, block, place, first, sums + place * BLOCK);
    }
}

static proa_status run_sums(small_spatial_job *j)
{
    j->images = gemm_round_up(j->s->g.batch, BLOCK);
    int64_t packed = j->from.blocks * BLOCK * j->from.places * j->images;
    int64_t items = j->to.blocks * (j->images / BLOCK);
    j->packed = proa_scratch((size_t)(packed + items * j->to.places * TILE) * sizeof(float));
    if (!j->packed) return proa_error();
    j->sums = j->packed + packed;
    proa__parallel(j->from.blocks, conv_grain(&j->s->g, j->from.blocks), pack_range, j);
    proa__parallel(items, conv_grain(&j->s->g, items), sum_range, j);
    proa_scratch_free(j->packed);
    return PROA_OK;
}

/* ---- to the filter -------------------------------------------------------------------------------- */

/* Copies blocks of channels to [block][pixel][image][channel]. */
static void pack_channels(const small_spatial_job *j, const gather_map *m, int64_t b, float *to)
{
    for (int64_t p = 0; p < m->places; p++)
        for (int64_t n = 0; n < j->s->g.batch; n++, to += BLOCK) {
            const float *from = m->data + n * m->image + b * m->block + p * m->place;
            if (m->channel == 1) *(lane *)to = *(const lane *)from;
            else
                for (int64_t c = 0; c < BLOCK; c++) to[c] = from[c * m->channel];
        }
}

/* Packs the input's blocks, then the output's. */
static void pack_both_range(int64_t begin, int64_t end, void *context)
{
    const small_spatial_job *j = context;
    int64_t line = BLOCK * j->s->g.batch, split = j->from.blocks;
    for (int64_t b = begin; b < end; b++) {
        if (b < split) pack_channels(j, &j->from, b, j->packed + b * j->from.places * line);
        else pack_channels(j, &j->with, b - split, j->packed_with + (b - split) * j->with.places * line);
    }
}

static void store_filter(const small_spatial_job *j, int64_t out, int64_t in, int64_t tap, const lane *sum)
{
    const small_spatial_state *s = j->s;
    const float *from = (const float *)sum;
    if (!j->plain_filter) {
        memcpy(j->d_filter + ((out * j->from.blocks + in) * s->of.taps + tap) * TILE, sum,
               TILE * sizeof *from);
        return;
    }
    for (int64_t o = 0; o < BLOCK; o++)
        for (int64_t i = 0; i < BLOCK; i++)
            j->d_filter[((out * BLOCK + o) * s->g.in_channels + in * BLOCK + i) * s->of.taps + tap] =
                from[i * BLOCK + o];
}

/* Sums the filter gradient. Item: block of input channels (fastest), block of output channels. */
static void filter_range(int64_t begin, int64_t end, void *context)
{
    const small_spatial_job *j = context;
    const small_spatial_state *s = j->s;
    int64_t line = BLOCK * s->g.batch;
    for (int64_t item = begin; item < end; item++) {
        int64_t out = item / j->from.blocks, in = item % j->from.blocks;
        const float *x = j->packed + in * j->from.places * line;
        const float *y = j->packed_with + out * j->with.places * line;
        float *next = j->d_filter + (item + 1) * s->of.taps * TILE;
        for (int64_t t = 0; t < s->of.taps; t++) {
            lane sum[BLOCK] = {{0}};
            if (item + 1 < end && !j->plain_filter) gather_ask_ahead(next + t * TILE, TILE * sizeof *next, 1);
            for (int32_t i = s->of.start[t]; i < s->of.start[t + 1]; i++) {
                const float *a = x + s->of.pairs[i].in * line, *b = y + s->of.pairs[i].out * line;
                for (const float *stop = a + line; a < stop; a += BLOCK, b += BLOCK) {
                    lane v = *(const lane *)b;
#pragma GCC unroll 16
                    for (int64_t c = 0; c < BLOCK; c++) sum[c] += a[c] * v;
                }
            }
            store_filter(j, out, in, t, sum);
        }
    }
}

static proa_status run_filter(small_spatial_job *j)
{
    int64_t line = BLOCK * j->s->g.batch, first = j->from.blocks * j->from.places * line;
    j->packed = proa_scratch((size_t)(first + j->with.blocks * j->with.places * line) * sizeof(float));
    if (!j->packed) return proa_error();
    j->packed_with = j->packed + first;
    int64_t sides = j->from.blocks + j->with.blocks, items = j->from.blocks * j->with.blocks;
    proa__parallel(sides, conv_grain(&j->s->g, sides), pack_both_range, j);
    proa__parallel(items, conv_grain(&j->s->g, items), filter_range, j);
    proa_scratch_free(j->packed);
    return PROA_OK;
}

/* ---- the kernels ------------------------------------------------------------------------------------ */

CONV_PREPARE_FORWARD(conv2d_small_spatial_avx512_cpu, keep)
CONV_PREPARE_DATA(conv2d_grad_input_small_spatial_avx512_cpu, keep)
CONV_PREPARE_WEIGHTS(conv2d_grad_filter_small_spatial_avx512_cpu, keep)

PROA_KERNEL_BLOCKED(conv2d_small_spatial_avx512_cpu, conv2d, conv2d_small_spatial_avx512_cpu_prepare,
                    small_spatial_release, conv_image_format)
{
    const small_spatial_state *s = run->state;
    if (run->fresh) PROA_TRY(proa__block_output(a->out, proa__conv_image_format()));
    small_spatial_job j = {.s = s,
                           .kind = FORWARD,
                           .from = gather_map_of(a->x, s->places_in),
                           .to = gather_map_of(a->out, s->places_out),
                           .filter = (const float *)(void *)proa__memory(a->weight),
                           .bias = proa__absent(a->bias) ? NULL : (const float *)(void *)a->bias->data};
    return run_sums(&j);
}

PROA_KERNEL_BLOCKED(conv2d_grad_input_small_spatial_avx512_cpu, conv2d_grad_input,
                    conv2d_grad_input_small_spatial_avx512_cpu_prepare, small_spatial_release,
                    conv_image_format)
{
    const small_spatial_state *s = run->state;
    if (run->fresh) PROA_TRY(proa__block_output(a->d_x, proa__conv_image_format()));
    small_spatial_job j = {.s = s,
                           .kind = BACKWARD_DATA,
                           .from = gather_map_of(a->d_out, s->places_out),
                           .to = gather_map_of(a->d_x, s->places_in),
                           .filter = (const float *)(void *)proa__memory(a->weight)};
    return run_sums(&j);
}

PROA_KERNEL_BLOCKED(conv2d_grad_filter_small_spatial_avx512_cpu, conv2d_grad_filter,
                    conv2d_grad_filter_small_spatial_avx512_cpu_prepare, small_spatial_release,
                    conv_filter_format)
{
    const small_spatial_state *s = run->state;
    if (run->fresh) PROA_TRY(proa__block_output(a->d_weight, proa__conv_filter_format()));
    small_spatial_job j = {.s = s,
                           .kind = BACKWARD_WEIGHTS,
                           .from = gather_map_of(a->x, s->places_in),
                           .with = gather_map_of(a->d_out, s->places_out),
                           .d_filter = (float *)(void *)proa__memory(a->d_weight),
                           .plain_filter = !proa__format(a->d_weight)};
    return run_filter(&j);
}
