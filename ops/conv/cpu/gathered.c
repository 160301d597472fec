/* float32 convolutions in blocked layouts as sums over the (input, output) pixel pairs that filter taps
 * connect: over maps so small that a good part of the taps falls on padding, and dgrad of filters with
 * strides or of 1×1. Measured against oneDNN, which rearranges the filter in each dgrad: 512 to 512 channels,
 * 3×3, stride 2, 8×8 to 4×4 takes 1,600 µs instead of 2,400; 1×1, 1024 to 2048, stride 2 takes 1,420 instead
 * of 2,350; 3×3 with AVX2, in all directions, 0.54 to 1.01 of the time. May use core and helpers of ops/. */
#include "ops/conv/algorithms.h"
#include "ops/conv/gather_map.h"

enum {
    BLOCK = CONV_BLOCK,
    TILE = PAIRS_TILE,
    CHUNK_BYTES = 512 << 10, /* of columns that are packed at once: half of a second-level cache */
    TURNS = 4,               /* per thread, at least: others take those of a delayed thread */
};

/* Pixels of a map that the sums of a column read or make. For column (y, x) of an image's grid, pixel i is at
 * (y, x) · step + first + (i / across, i % across). */
typedef struct gather_window {
    int64_t size[2]; /* of the map */
    int64_t first[2], across, count, step[2];
} gather_window;

/* A vector holds 16 columns, with AVX2 eight. Over small maps a column is an image (a 3×3 filter over a 2×2
 * map connects 16 of 36 pairs). With strides, input pixels with the same remainder by the stride (one phase)
 * are a stride-1 convolution with some of the taps: a column makes one pixel of each phase, so that neither a
 * rearranged filter nor zeros between strided pixels are stored. */
typedef struct gather_state {
    conv_geometry g;
    int64_t grid[2];          /* columns of an image: down, across */
    int64_t columns, vectors; /* of all images */
    gather_window from, to;
    conv_gather_map of; /* pairs by pixel of `to`, of wgrad by tap */
} gather_state;

/* ---- preparing ---------------------------------------------------------------------------------- */

static void gathered_release(void *state)
{
    gather_state *s = state;
    if (!s) return;
    gather_release(&s->of);
    proa__free(s);
}

/* Sorts n pairs, and completes the state. */
static proa_status keep_pairs(gather_state *s, const conv_pair *list, int64_t n, conv_kind kind, void **state)
{
    s->of.taps = conv_pixels(s->g.kernel);
    s->of.groups = kind == BACKWARD_WEIGHTS ? s->of.taps : s->to.count;
    s->columns = s->g.batch * s->grid[0] * s->grid[1];
    s->vectors = (s->columns + BLOCK - 1) / BLOCK;
    proa_status status = gather_sort(&s->of, list, n, kind);
    if (status == PROA_OK) *state = s;
    else gathered_release(s);
    return status;
}

static gather_window whole_map(const int64_t *size)
{
    return (gather_window){.size = {size[1], size[2]}, .across = size[2], .count = conv_pixels(size)};
}

/* Input pixel under tap (r, c) of the filter at output pixel (y, x); −1: in the padding. */
static int64_t pixel_under(const conv_geometry *g, int64_t y, int64_t x, int64_t r, int64_t c)
{
    int64_t line = y * g->stride[1] - g->before[1] + r * g->dilation[1];
    int64_t column = x * g->stride[2] - g->before[2] + c * g->dilation[2];
    bool inside = line >= 0 && line < g->in[1] && column >= 0 && column < g->in[2];
    return inside ? line * g->in[2] + column : -1;
}

static proa_status keep_small(const conv_problem *p, void **state)
{
    const conv_geometry *g = &p->g;
    const gather_window in = whole_map(g->in), out = whole_map(g->out);
    const bool back = p->direction == BACKWARD_DATA;
    int64_t n = 0, taps = conv_pixels(g->kernel);
    gather_state *s = proa__alloc(sizeof *s);
    conv_pair *list = proa_scratch((size_t)(conv_pairs_along(g, 1) * conv_pairs_along(g, 2)) * sizeof *list);
    proa_status status = s && list ? PROA_OK : proa_error();
    if (status == PROA_OK) {
        *s = (gather_state){.g = *g, .grid = {1, 1}, .from = back ? out : in, .to = back ? in : out};
        for (int64_t i = 0; i < out.count * taps; i++) {
            int64_t o = i / taps, t = i % taps;
            int64_t at = pixel_under(g, o / g->out[2], o % g->out[2], t / g->kernel[2], t % g->kernel[2]);
            if (at >= 0) list[n++] = (conv_pair){(int32_t)at, (int32_t)o, (int32_t)t};
        }
        status = keep_pairs(s, list, n, p->direction, state);
    } else {
        proa__free(s);
    }
    proa_scratch_free(list);
    return status;
}

/* Along dim i, tap r maps output pixel y to input pixel y·stride − before + r·dilation: sets the phase that
 * each tap contributes to, and the distance from a column to the output pixel that the tap reads. */
static void strided_side(gather_state *s, int i, int8_t *phase, int8_t *shift)
{
    const conv_geometry *g = &s->g;
    int64_t stride = g->stride[1 + i], least = INT8_MAX, most = INT8_MIN;
    for (int64_t r = 0; r < g->kernel[1 + i]; r++) {
        int64_t at = r * g->dilation[1 + i] - g->before[1 + i], of = (at % stride + stride) % stride;
        phase[r] = (int8_t)of, shift[r] = (int8_t)((of - at) / stride);
        least = gemm_min(least, shift[r]), most = shift[r] > most ? shift[r] : most;
    }
    s->grid[i] = (g->in[1 + i] + stride - 1) / stride;
    s->from.size[i] = g->out[1 + i], s->from.first[i] = least, s->from.step[i] = 1;
    s->to.size[i] = g->in[1 + i], s->to.step[i] = stride;
    s->from.across = most - least + 1, s->to.across = stride; /* of the last dim in the end */
    s->from.count *= s->from.across, s->to.count *= stride;
}

static proa_status keep_strided(const conv_problem *p, void **state)
{
    int8_t phase[2][CONV_STRIDED_TAPS_MAX], shift[2][CONV_STRIDED_TAPS_MAX];
    conv_pair list[CONV_STRIDED_TAPS_MAX];
    const int64_t *kernel = p->g.kernel, taps = conv_pixels(kernel);
    gather_state *s = proa__alloc(sizeof *s);
    if (!s) return proa_error();
    *s = (gather_state){.g = p->g, .from.count = 1, .to.count = 1};
    for (int i = 0; i < 2; i++) strided_side(s, i, phase[i], shift[i]);
    for (int64_t t = 0; t < taps; t++) {
        int64_t r = t / kernel[2], c = t % kernel[2];
        int64_t in = phase[0][r] * s->to.across + phase[1][c];
        int64_t out = (shift[0][r] - s->from.first[0]) * s->from.across + shift[1][c] - s->from.first[1];
        list[t] = (conv_pair){(int32_t)in, (int32_t)out, (int32_t)t};
    }
    return keep_pairs(s, list, taps, BACKWARD_DATA, state);
}

/* ---- forward and dgrad --------------------------------------------------------------------------- */

typedef struct gather_job {
    const gather_state *s;
    bool forward;
    image_map from, to;
    const float *filter, *bias;
    int64_t chunk, parts; /* vectors that are packed at once; turns of a chunk */
    int64_t vector;       /* floats of a packed one: [block][pixel][channel][column] */
    float *work;
    int64_t work_each; /* floats of a thread's packed vectors and sums */
    packed_turns turns;
} gather_job;

/* A column: its image, and its position in the grid. */
typedef struct gather_column {
    int64_t image, y, x;
} gather_column;

static gather_column column_of(const gather_state *s, int64_t at)
{
    return (gather_column){at / (s->grid[0] * s->grid[1]), at / s->grid[1] % s->grid[0], at % s->grid[1]};
}

static void next_column(const gather_state *s, gather_column *at)
{
    if (++at->x < s->grid[1]) return;
    at->x = 0;
    if (++at->y < s->grid[0]) return;
    at->y = 0, at->image++;
}

/* Pixel i of a window for a column; NULL outside the map, and after the last image. */
static float *pixel_at(const gather_state *s, const gather_window *w, const image_map *m,
                       const gather_column *at, int64_t i)
{
    int64_t y = at->y * w->step[0] + w->first[0] + i / w->across;
    int64_t x = at->x * w->step[1] + w->first[1] + i % w->across;
    if (at->image >= s->g.batch || y < 0 || y >= w->size[0] || x < 0 || x >= w->size[1]) return NULL;
    return m->data + at->image * m->image + (y * w->size[1] + x) * BLOCK;
}

/* Packs pixel i for the columns of a vector, all channels; zeros outside the map. */
static void pack_pixel(const gather_job *j, int64_t vector, int64_t i, float *to)
{
    const gather_state *s = j->s;
    const image_map *m = &j->from;
    const float *from[BLOCK];
    gather_column at = column_of(s, vector * BLOCK);
    for (int64_t k = 0; k < BLOCK; k++, next_column(s, &at)) from[k] = pixel_at(s, &s->from, m, &at, i);
    for (int64_t b = 0; b < m->blocks; b++, to += s->from.count * TILE) {
        gather_lane rows[BLOCK];
        for (int64_t k = 0; k < BLOCK; k++)
            rows[k] = from[k] ? *(const gather_lane *)(from[k] + b * m->block) : (gather_lane){0};
        gather_transpose(rows);
#pragma GCC unroll 16
        for (int64_t c = 0; c < BLOCK; c++) *(gather_lane *)(to + c * BLOCK) = rows[c];
    }
}

/* Stores pixel i of a vector of columns, for one block of channels. */
static void store_pixel(const gather_job *j, int64_t vector, int64_t block, int64_t i, gather_lane *rows)
{
    const gather_state *s = j->s;
    const image_map *m = &j->to;
    gather_transpose(rows);
    gather_column at = column_of(s, vector * BLOCK);
    for (int64_t k = 0; k < BLOCK; k++, next_column(s, &at)) {
        float *to = pixel_at(s, &s->to, m, &at, i);
        if (to) *(gather_lane *)(to + block * m->block) = rows[k];
    }
}

/* sum += the product of the only pair; prefetches the filter's next tile meanwhile. */
static void sum_pair(const gather_operands *o, gather_lane *to)
{
    const float *w = o->w, *from = o->from;
    gather_lane sum[BLOCK] = {{0}};
    for (int64_t left = o->blocks; left; left--, w += o->step, from += o->from_step) {
        gather_prefetch(w + (left > 1 ? o->step : 0), TILE * sizeof *w, 0);
        gather_add_tile(sum, w, BLOCK, 1, from);
    }
#pragma GCC unroll 16
    for (int64_t c = 0; c < BLOCK; c++) to[c] = sum[c];
}

/* Computes one vector of columns, packed at `from`, for one block of channels. Sums over one pair stay in
 * registers; with more, blocks are read in the order in which they are stored. */
static void sum_vector(const gather_job *j, int64_t vector, int64_t block, const float *from,
                       gather_lane *sums)
{
    const conv_gather_map *of = &j->s->of;
    for (int64_t i = 0; i < of->groups * BLOCK; i++) {
        sums[i] = (gather_lane){0};
        if (j->bias) sums[i] += j->bias[block * BLOCK + i % BLOCK];
    }
    gather_operands o = {.w = j->filter + block * (j->forward ? j->from.blocks : 1) * of->taps * TILE,
                         .from = from,
                         .step = (j->forward ? 1 : j->to.blocks) * of->taps * TILE,
                         .from_step = j->s->from.count * TILE,
                         .blocks = j->from.blocks};
    if (of->taps == 1 && !j->forward && of->start[of->groups] == 1)
        sum_pair(&o, sums + of->pairs[0].in * BLOCK);
    else
        for (int64_t n = o.blocks % 2 ? 1 : 2; o.blocks;
             o.blocks -= n, o.w += n * o.step, o.from += n * o.from_step, n = 2)
            if (j->forward) gather_add_blocks(of, true, &o, n, sums);
            else gather_add_blocks(of, false, &o, n, sums);
    for (int64_t i = 0; i < of->groups; i++) store_pixel(j, vector, block, i, sums + i * BLOCK);
}

/* Body of one thread: takes parts of chunks until none is left. */
static void columns_thread(int64_t begin, int64_t end, void *context)
{
    gather_job *j = context;
    (void)end;
    const gather_state *s = j->s;
    float *work = j->work + begin * j->work_each;
    gather_lane *sums = (gather_lane *)(void *)(work + j->chunk * j->vector);
    int64_t turn, have = -1;
    while ((turn = packed_turn(&j->turns, begin)) >= 0) {
        int64_t chunk = turn / j->parts, part = turn % j->parts, first = chunk * j->chunk;
        int64_t n = gemm_min(j->chunk, s->vectors - first), pixels = s->from.count;
        for (int64_t i = 0; i < n * pixels && chunk != have; i++)
            pack_pixel(j, first + i / pixels, i % pixels, work + i / pixels * j->vector + i % pixels * TILE);
        have = chunk;
        int64_t last = (part + 1) * j->to.blocks / j->parts;
        for (int64_t block = part * j->to.blocks / j->parts; block < last; block++)
            for (int64_t i = 0; i < n; i++) sum_vector(j, first + i, block, work + i * j->vector, sums);
    }
}

static proa_status sum_columns(gather_job *j)
{
    const gather_state *s = j->s;
    j->vector = j->from.blocks * s->from.count * TILE;
    int64_t most = CHUNK_BYTES / (4 * j->vector) + 1, chunks = (s->vectors + most - 1) / most;
    j->chunk = (s->vectors + chunks - 1) / chunks;
    chunks = (s->vectors + j->chunk - 1) / j->chunk;
    int64_t threads = gemm_min(gemm_min(proa_threads(), conv_worth(&s->g)), chunks * j->to.blocks);
    j->parts = gemm_min((threads * TURNS + chunks - 1) / chunks, j->to.blocks);
    j->work_each = j->chunk * j->vector + s->to.count * TILE;
    j->work = proa_scratch((size_t)(threads * j->work_each) * sizeof(float));
    if (!j->work) return proa_error();
    packed_turns_begin(&j->turns, chunks * j->parts, threads);
    proa__parallel(threads, 1, columns_thread, j);
    proa_scratch_free(j->work);
    return PROA_OK;
}

static image_map map_of(const conv_form *f, const int64_t *size)
{
    return image_map_of(f->data, true, f->of->shape[1], size[0] * size[1]);
}

/* to = from convolved (forward), or the dgrad of from. */
static proa_status run_columns(const proa_run *run, conv_kind kind, const proa_tensor *from,
                               const proa_tensor *weight, const proa_tensor *bias, proa_tensor *to)
{
    if (!CONV_BLOCKS_FIT) return proa_decline("needs AVX2");
    const gather_state *s = run->state;
    conv_form forms[CONV_FORMS];
    proa_status status = conv_forms_begin(run, kind, from, weight, to, forms);
    if (status == PROA_OK)
        status = sum_columns(&(gather_job){.s = s,
                                           .forward = kind == FORWARD,
                                           .from = map_of(&forms[0], s->from.size),
                                           .to = map_of(&forms[CONV_RESULT], s->to.size),
                                           .filter = forms[1].data,
                                           .bias = conv_floats(bias)});
    return conv_forms_end(forms, status);
}

/* ---- wgrad over small maps: vectors of output channels --------------------------------------------- */

typedef struct filter_job {
    const gather_state *s;
    image_map x, d_out;
    float *d_weight;
    float *packed, *packed_d;
} filter_job;

/* Copies a block of channels to [pixel][image][channel]. */
static void pack_channels(int64_t batch, const image_map *m, int64_t b, float *to)
{
    for (int64_t p = 0; p < m->places; p++)
        for (int64_t n = 0; n < batch; n++, to += BLOCK)
            *(gather_lane *)to = *(const gather_lane *)(m->data + n * m->image + b * m->block + p * BLOCK);
}

/* Packs the input's blocks, then d_out's. */
static void pack_range(int64_t begin, int64_t end, void *context)
{
    const filter_job *j = context;
    int64_t batch = j->s->g.batch, line = BLOCK * batch, split = j->x.blocks;
    for (int64_t b = begin; b < end; b++) {
        if (b < split) pack_channels(batch, &j->x, b, j->packed + b * j->x.places * line);
        else pack_channels(batch, &j->d_out, b - split, j->packed_d + (b - split) * j->d_out.places * line);
    }
}

/* Item: block of input channels (fastest), block of output channels. */
static void filter_range(int64_t begin, int64_t end, void *context)
{
    const filter_job *j = context;
    const conv_gather_map *of = &j->s->of;
    int64_t line = BLOCK * j->s->g.batch;
    for (int64_t item = begin; item < end; item++) {
        int64_t out = item / j->x.blocks, in = item % j->x.blocks;
        const float *x = j->packed + in * j->x.places * line, *y = j->packed_d + out * j->d_out.places * line;
        float *next = j->d_weight + (item + 1) * of->taps * TILE;
        for (int64_t t = 0; t < of->taps; t++) {
            gather_lane sum[BLOCK] = {{0}};
            if (item + 1 < end) gather_prefetch(next + t * TILE, TILE * sizeof *next, 1);
            for (int32_t i = of->start[t]; i < of->start[t + 1]; i++) {
                const float *a = x + of->pairs[i].in * line, *b = y + of->pairs[i].out * line;
                for (const float *stop = a + line; a < stop; a += BLOCK, b += BLOCK) {
                    gather_lane v = *(const gather_lane *)b;
#pragma GCC unroll 16
                    for (int64_t c = 0; c < BLOCK; c++) sum[c] += a[c] * v;
                }
            }
            memcpy(j->d_weight + (item * of->taps + t) * TILE, sum, sizeof sum);
        }
    }
}

static proa_status run_filter(filter_job *j)
{
    const conv_geometry *g = &j->s->g;
    int64_t line = BLOCK * g->batch, first = j->x.blocks * j->x.places * line;
    j->packed = proa_scratch((size_t)(first + j->d_out.blocks * j->d_out.places * line) * sizeof(float));
    if (!j->packed) return proa_error();
    j->packed_d = j->packed + first;
    int64_t sides = j->x.blocks + j->d_out.blocks, items = j->x.blocks * j->d_out.blocks;
    proa__parallel(sides, conv_grain(g, sides), pack_range, j);
    proa__parallel(items, conv_grain(g, items), filter_range, j);
    proa_scratch_free(j->packed);
    return PROA_OK;
}

/* ---- the kernels ------------------------------------------------------------------------------------ */

CONV_KERNEL_FORWARD(conv2d_small_spatial_cpu, keep_small, gathered_release, conv_image_format)
{
    return run_columns(run, FORWARD, a->x, a->weight, a->bias, a->out);
}

CONV_KERNEL_DATA(conv2d_grad_input_small_spatial_cpu, keep_small, gathered_release, conv_image_format)
{
    return run_columns(run, BACKWARD_DATA, a->d_out, a->weight, proa_none, a->d_x);
}

CONV_KERNEL_DATA(conv2d_grad_input_strided_cpu, keep_strided, gathered_release, conv_image_format)
{
    return run_columns(run, BACKWARD_DATA, a->d_out, a->weight, proa_none, a->d_x);
}

CONV_KERNEL_WEIGHTS(conv2d_grad_filter_small_spatial_cpu, keep_small, gathered_release, conv_filter_format)
{
    if (!CONV_BLOCKS_FIT) return proa_decline("needs AVX2");
    const gather_state *s = run->state;
    conv_form forms[CONV_FORMS];
    proa_status status = conv_forms_begin(run, BACKWARD_WEIGHTS, a->x, a->d_out, a->d_weight, forms);
    if (status == PROA_OK)
        status = run_filter(&(filter_job){.s = s,
                                          .x = map_of(&forms[0], s->g.in + 1),
                                          .d_out = map_of(&forms[1], s->g.out + 1),
                                          .d_weight = forms[CONV_RESULT].data});
    return conv_forms_end(forms, status);
}
