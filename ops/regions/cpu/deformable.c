/* Kernels of deformable convolution and its gradient. Images are converted to channels-last, so that a
 * bilinear sample mixes four vectors of channels; the samples of a tile of pixels form a matrix (im2col),
 * which a matrix product multiplies with the filter. May use core and kernels only. */
#include "kernels/gemm.h"
#include "ops/regions/regions.h"

#include <math.h>

/* DEFORM_TILE: pixels of a tile. DEFORM_BAND: tiles whose matrices are in memory together. DEFORM_CHANNELS:
 * channels whose gradient one task writes. DEFORM_COLUMNS: columns of the filter's gradient that one task
 * writes. */
enum { DEFORM_TILE = 64, DEFORM_BAND = 16, DEFORM_CHANNELS = 16, DEFORM_COLUMNS = 192 };

/* One call. Matrices of a tile are [pixels][groups][points][channels of a group]; so is the filter, by
 * output channel. */
typedef struct deform_job {
    const deformable_geometry *g;
    const void *x, *offset, *mask, *d_out; /* of all images; mask NULL: ones */
    void *out, *d_x, *d_offset, *d_mask;
    void *last, *d_last; /* one image and its gradient, channels last; behind the image a pixel of zeros */
    void *filter;        /* [out][points][channels of a group] */
    void *band, *d_band; /* samples, and their gradients, of a band's tiles */
    void *work;          /* accumulators and packing, by tile or task */
    void *d_filter;      /* accumulators of the filter's gradient, by task */
    int64_t work_each, d_filter_each;
    int64_t image, pixels, points, depth; /* depth: elements of a pixel's row */
    int64_t first, count;                 /* tiles of this band */
    int64_t columns;                      /* tasks of the filter's gradient, for each group */
} deform_job;

static int64_t tile_pixels(const deform_job *job, int64_t tile)
{
    return gemm_min(DEFORM_TILE, job->pixels - tile * DEFORM_TILE);
}

/* End of the run of channels from c on that belong to one group and one deformable group. */
static int64_t run_end(const deformable_geometry *g, int64_t c)
{
    int64_t a = g->channels / g->groups, b = g->channels / g->deformable_groups;
    return gemm_min((c / a + 1) * a, (c / b + 1) * b);
}

#define T float
#define FLOOR floorf
#define G(name) name##_f32
#include "ops/regions/cpu/deformable.inc"
#undef T
#undef FLOOR
#undef G
#define T double
#define FLOOR floor
#define G(name) name##_f64
#include "ops/regions/cpu/deformable.inc"

static bool empty(const deformable_geometry *g)
{
    return g->batch == 0 || g->channels == 0 || g->out_channels == 0 || g->height == 0 || g->width == 0;
}

/* A block of memory for several arrays; false when sizes overflow. */
static bool claim(size_t *total, int64_t a, int64_t b, size_t item, size_t *at)
{
    size_t bytes;
    if (!proa__mul_size((size_t)a, (size_t)b, &bytes) || !proa__mul_size(bytes, item, &bytes)) return false;
    *at = *total;
    *total += (bytes + 63) / 64 * 64;
    return *total >= bytes || (proa_fail(PROA_ERR_OVERFLOW, "deformable_conv: too large for memory"), false);
}

/* Sizes and memory of a call; the caller frees *memory. */
static proa_status start(deform_job *job, bool wide, bool back, char **memory)
{
    const deformable_geometry *g = job->g;
    size_t item = wide ? sizeof(double) : sizeof(float), total = 0, at[7] = {0};
    int64_t each = g->channels / g->groups, out = g->out_channels / g->groups;
    job->pixels = g->out_height * g->out_width;
    job->points = g->kh * g->kw;
    job->depth = job->points * g->channels;
    job->columns = (job->points * each + DEFORM_COLUMNS - 1) / DEFORM_COLUMNS;
    int64_t tiles = (job->pixels + DEFORM_TILE - 1) / DEFORM_TILE, tasks = gemm_min(tiles, DEFORM_BAND);
    int64_t pixels = gemm_min(job->pixels, DEFORM_BAND * DEFORM_TILE), parts = g->groups * job->columns;
    job->work_each =
        wide ? deform_work_double(job, each, out, back) : deform_work_float(job, each, out, back);
    job->d_filter_each =
        wide ? gemm_tile_size_f64(out, DEFORM_COLUMNS) : gemm_tile_size_f32(out, DEFORM_COLUMNS);
    bool ok = claim(&total, g->height * g->width + 1, g->channels, item, &at[0]) &&
              claim(&total, g->out_channels, job->points * each, item, &at[1]) &&
              claim(&total, pixels, job->depth, item, &at[2]) &&
              claim(&total, back && parts > tasks ? parts : tasks, job->work_each, item, &at[3]);
    if (back)
        ok = ok && claim(&total, g->height * g->width, g->channels, item, &at[4]) &&
             claim(&total, pixels, job->depth, item, &at[5]) &&
             claim(&total, parts, job->d_filter_each, item, &at[6]);
    *memory = ok ? proa_scratch(total) : NULL;
    if (!*memory) return proa_error();
    job->last = *memory + at[0], job->filter = *memory + at[1], job->band = *memory + at[2];
    job->work = *memory + at[3], job->d_last = *memory + at[4], job->d_band = *memory + at[5];
    job->d_filter = *memory + at[6];
    return PROA_OK;
}

/* A transposition between [channels][pixels] and [pixels][channels] in blocks of channels. */
static void by_channels(const deform_job *job, proa_range_fn fn)
{
    int64_t blocks = (job->g->channels + DEFORM_CHANNELS - 1) / DEFORM_CHANNELS;
    proa__parallel(blocks, rows_grain(job->g->height * job->g->width * DEFORM_CHANNELS), fn,
                   (void *)(uintptr_t)job);
}

static void forward(deform_job *job, bool wide)
{
    int64_t tiles = (job->pixels + DEFORM_TILE - 1) / DEFORM_TILE;
    for (job->image = 0; job->image < job->g->batch; job->image++) {
        by_channels(job, wide ? channels_last_double : channels_last_float);
        for (job->first = 0; job->first < tiles; job->first += DEFORM_BAND) {
            job->count = gemm_min(DEFORM_BAND, tiles - job->first);
            proa__parallel(job->count, 1, wide ? convolve_tiles_double : convolve_tiles_float, job);
        }
    }
}

static void backward(deform_job *job, bool wide)
{
    const deformable_geometry *g = job->g;
    int64_t tiles = (job->pixels + DEFORM_TILE - 1) / DEFORM_TILE, parts = g->groups * job->columns;
    int64_t blocks = (g->channels + DEFORM_CHANNELS - 1) / DEFORM_CHANNELS;
    size_t item = wide ? sizeof(double) : sizeof(float);
    memset(job->d_filter, 0, (size_t)(parts * job->d_filter_each) * item);
    for (job->image = 0; job->image < g->batch; job->image++) {
        by_channels(job, wide ? channels_last_double : channels_last_float);
        memset(job->d_last, 0, (size_t)(g->height * g->width * g->channels) * item);
        for (job->first = 0; job->first < tiles; job->first += DEFORM_BAND) {
            job->count = gemm_min(DEFORM_BAND, tiles - job->first);
            proa__parallel(job->count, 1, wide ? back_tiles_double : back_tiles_float, job);
            proa__parallel(blocks, 2, wide ? scatter_channels_double : scatter_channels_float, job);
            proa__parallel(parts, 1, wide ? filter_parts_double : filter_parts_float, job);
        }
        by_channels(job, wide ? channels_first_double : channels_first_float);
    }
}

static const void *given(const proa_tensor *t) { return proa__absent(t) ? NULL : t->data; }

PROA_KERNEL(deformable_conv_cpu, deformable_conv)
{
    deformable_geometry g;
    char *memory;
    PROA_TRY(proa__deformable_geometry(&DEFORMABLE_PARAMS(a, "deformable_conv"), &g));
    bool wide = a->x->dtype == PROA_F64;
    if (empty(&g)) {
        memset(a->out->data, 0, (size_t)a->out->numel * (wide ? sizeof(double) : sizeof(float)));
        return PROA_OK;
    }
    deform_job job = {
        .g = &g, .x = a->x->data, .offset = a->offset->data, .mask = given(a->mask), .out = a->out->data};
    PROA_TRY(start(&job, wide, false, &memory));
    if (wide) order_filter_double(&job, (const double *)(const void *)a->weight->data);
    else order_filter_float(&job, (const float *)(const void *)a->weight->data);
    forward(&job, wide);
    proa_scratch_free(memory);
    return PROA_OK;
}

PROA_KERNEL(deformable_conv_grad_cpu, deformable_conv_grad)
{
    deformable_geometry g;
    char *memory;
    PROA_TRY(proa__deformable_geometry(&DEFORMABLE_PARAMS(a, "deformable_conv_grad"), &g));
    bool wide = a->x->dtype == PROA_F64;
    if (empty(&g)) {
        proa_tensor *all[] = {a->d_x, a->d_offset, a->d_weight, a->d_mask};
        for (int i = 0; i < 4; i++)
            if (!proa__absent(all[i]))
                memset(all[i]->data, 0, (size_t)all[i]->numel * (wide ? sizeof(double) : sizeof(float)));
        return PROA_OK;
    }
    deform_job job = {.g = &g,
                      .x = a->x->data,
                      .offset = a->offset->data,
                      .mask = given(a->mask),
                      .d_out = a->d_out->data,
                      .d_x = a->d_x->data,
                      .d_offset = a->d_offset->data,
                      .d_mask = (void *)(uintptr_t)given(a->d_mask)};
    PROA_TRY(start(&job, wide, true, &memory));
    if (wide) order_filter_double(&job, (const double *)(const void *)a->weight->data);
    else order_filter_float(&job, (const float *)(const void *)a->weight->data);
    backward(&job, wide);
    if (wide) place_filter_double(&job, (double *)(void *)a->d_weight->data);
    else place_filter_float(&job, (float *)(void *)a->d_weight->data);
    proa_scratch_free(memory);
    return PROA_OK;
}
