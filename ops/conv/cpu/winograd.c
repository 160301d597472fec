/* Winograd convolutions (3×3, stride 1, float32, blocked layouts; winograd.h) in three directions: forward;
 * dgrad, which is forward with the filter rotated by 180°; and wgrad, the transpose of the algorithm: Gᵀ·(Σ
 * over tiles of (Bᵀ·d·B) ⊙ (A·dy·Aᵀ))·G. The filter is transformed in each call, because training changes it
 * at each step. May use core and helpers of ops/. */
#include "ops/conv/winograd.h"

#include "ops/conv/algorithms.h"

enum {
    BLOCK = CONV_BLOCK,
    TILE = BLOCK * BLOCK,
    TAPS = WINOGRAD_TAPS,
    POINTS = 16,
    /* Wgrad: bytes of the points of a chunk of tiles; tiles that a chunk has at least; panels of d_out's
     * points for which a row of the input's points is computed. */
    SUMMED_BYTES = 1 << 20,
    SUMMED_MIN = 64,
    PANELS = 8,
};

/* Floats between two points of one panel of the transformed filter with `summed` channels; and of the whole
 * filter. */
static int64_t filter_step(int64_t summed) { return winograd_step(summed * PACKED_NR); }
static int64_t filter_floats(int64_t summed, int64_t made)
{
    return packed_panels(made) * POINTS * filter_step(summed);
}

/* ---- the filter's points ---------------------------------------------------------------------------- */

typedef struct filter_job {
    float *filter; /* in CONV_FILTER_FORMAT */
    float *points; /* [panel of made][point][summed][PACKED_NR] */
    int64_t in, out;
    bool to_input; /* sums go over output channels, and make input channels */
} filter_job;

/* Rotates a filter block by 180°: taps from last to first, and the channels of each transposed. */
static void turn_round(const float *from, float *to)
{
    for (int64_t tap = 0; tap < TAPS; tap++)
        for (int64_t i = 0; i < BLOCK; i += 4)
            for (int64_t o = 0; o < BLOCK; o += 4)
                gemm_transpose_four(from + tap * TILE + i * BLOCK + o, BLOCK,
                                    to + (TAPS - 1 - tap) * TILE + o * BLOCK + i, BLOCK);
}

/* Transforms the filter into its points. Item i: block i / blocks of the channels that are made, block
 * i % blocks of those that are summed (the input's, or with to_input the output's). */
static void filter_range(int64_t begin, int64_t end, void *context)
{
    const filter_job *j = context;
    int64_t summed = j->to_input ? j->out : j->in, blocks = summed / BLOCK, step = filter_step(summed);
    float turned[TAPS * TILE] __attribute__((aligned(64)));
    for (int64_t item = begin; item < end; item++) {
        int64_t made = item / blocks, sum = item % blocks, o = j->to_input ? sum : made;
        const float *block = j->filter + (o * (j->in / BLOCK) + (j->to_input ? made : sum)) * TAPS * TILE;
        if (j->to_input) {
            turn_round(block, turned);
            block = turned;
        }
        for (int64_t q = 0; q < BLOCK; q += PACKED_LANES) {
            int64_t column = made * BLOCK + q, panel = column / PACKED_NR;
            float *to = j->points + panel * POINTS * step + sum * BLOCK * PACKED_NR + column % PACKED_NR;
            for (int64_t k = 0; k < BLOCK; k++, to += PACKED_NR) {
                packed_vector g[TAPS], u[POINTS];
                for (int t = 0; t < TAPS; t++)
                    g[t] = *(const packed_vector *)(block + t * TILE + k * BLOCK + q);
                winograd_filter(&winograd_f2x2, g, u);
                for (int p = 0; p < POINTS; p++) *(packed_vector *)(to + p * step) = u[p];
            }
        }
    }
}

/* ---- forward and dgrad ------------------------------------------------------------------------------ */

/* Transforms the filter, and runs the convolution with it. */
static proa_status run_images(winograd *w, filter_job *f)
{
    int64_t summed = w->from.channels, made = w->to.channels, points = filter_floats(summed, made);
    f->points = proa_scratch((size_t)points * sizeof(float));
    if (!f->points) return proa_error();
    if (made % PACKED_NR) memset(f->points, 0, (size_t)points * sizeof(float));
    proa__parallel(summed / BLOCK * (made / BLOCK), 4, filter_range, f);
    w->points = f->points;
    proa_status status = winograd_run(w);
    proa_scratch_free(f->points);
    return status;
}

/* to = from convolved with the filter (forward), or with the rotated filter (dgrad). */
static proa_status run_between(conv_kind kind, const proa_run *run, const proa_tensor *from,
                               const proa_tensor *weight, const proa_tensor *bias, proa_tensor *to)
{
    if (!CONV_BLOCKS_FIT) return proa_decline("needs AVX2");
    const conv_geometry *g = run->state;
    const bool back = kind == BACKWARD_DATA;
    conv_form forms[CONV_FORMS];
    proa_status status = conv_forms_begin(run, kind, from, weight, to, forms);
    if (status == PROA_OK) {
        winograd w = {
            .kind = &winograd_f2x2_kind,
            .from = winograd_map_of(forms[0].data, back ? g->out : g->in, from->shape[1], true),
            .to = winograd_map_of(forms[CONV_RESULT].data, back ? g->in : g->out, to->shape[1], true),
            .batch = g->batch,
            .before = {back ? 2 - g->before[1] : g->before[1], back ? 2 - g->before[2] : g->before[2]},
            .bias = conv_floats(bias),
            .tail = {.residual = proa_none}};
        status = run_images(
            &w, &(filter_job){
                    .filter = forms[1].data, .in = g->in_channels, .out = g->out_channels, .to_input = back});
    }
    return conv_forms_end(forms, status);
}

/* ---- wgrad ------------------------------------------------------------------------------------ */

/* Sums of products down two panels, each a register tile; added to the sums at `add`, unless that is NULL. */
#define SUM_TILE(mr)                                                                                    \
    static void sum_tile_##mr(int64_t k, const float *a, int64_t lda, const float *b, const float *add, \
                              float *c)                                                                 \
    {                                                                                                   \
        const packed_ends e = {.add = add, .add_ld = PACKED_NR};                                        \
        packed_tile(mr, PACKED_TWO, true, k, a, lda, b, PACKED_NR, c, PACKED_NR, &e, b + 8 * PACKED_NR, \
                    PACKED_NR);                                                                         \
    }
PACKED_TILES(SUM_TILE)
typedef void (*sum_tile_fn)(int64_t k, const float *a, int64_t lda, const float *b, const float *add,
                            float *c);
#define SUM_ENTRY(mr) sum_tile_##mr,
static const sum_tile_fn sum_tiles[PACKED_MR] = {PACKED_TILES(SUM_ENTRY)};

/* Work of one thread in wgrad: for a chunk of tiles it transforms one row of four points of both operands and
 * sums their products, chunk after chunk. Threads share no data that they write. */
typedef struct sum_job {
    winograd w;         /* tiles of the forward convolution; from: the input */
    const float *d_out; /* in the layout of w.to */
    filter_job f;
    int64_t groups; /* groups of panels of output channels */
} sum_job;

/* One work item: row `row` of the four rows of points, panels [p0, p1). v: points of the input,
 * [point][tile][ld]; d: points of d_out, [panel][point][tile][PACKED_NR]. */
typedef struct sum_part {
    int64_t row, p0, p1;
    float *v, *d;
} sum_part;

static inline __attribute__((always_inline)) void result_tile(const sum_job *j, int64_t tile, const int r,
                                                              const sum_part *part, float *to)
{
    const winograd_map *m = &j->w.to;
    winograd_place at = winograd_place_of(&j->w, tile);
    int64_t line = m->width * m->pixel, step = j->w.to_step;
    const float *from = j->d_out + at.image * m->image + at.y * line + at.x * m->pixel;
    bool right = at.x + 1 < m->width, below = at.y + 1 < m->height;
    const packed_vector zero = {0};
    int64_t c0 = part->p0 * PACKED_NR, c1 = gemm_min(part->p1 * PACKED_NR, m->channels);
    for (int64_t c = c0; c < c1; c += PACKED_LANES) {
        const float *y = from + c / BLOCK * m->block + c % BLOCK;
        packed_vector d[4] = {*(const packed_vector *)y, zero, zero, zero};
        if (right) d[1] = *(const packed_vector *)(y + m->pixel);
        if (below) d[2] = *(const packed_vector *)(y + line);
        if (right && below) d[3] = *(const packed_vector *)(y + line + m->pixel);
        winograd_results_adjoint(&winograd_f2x2, d, r, to + (c - c0) / PACKED_NR * 4 * step + c % PACKED_NR,
                                 step);
    }
}

/* Transforms both operands' tiles [first, first + n). */
static inline __attribute__((always_inline)) void make_points(const sum_job *j, const int r, int64_t first,
                                                              int64_t n, const sum_part *part)
{
    for (int64_t t = 0; t < n; t++)
        winograd_transform_tile(&j->w, &winograd_f2x2, first + t, r, r + 1, part->v + t * j->w.ld);
    for (int64_t t = 0; t < n; t++) result_tile(j, first + t, r, part, part->d + t * PACKED_NR);
}

static void add_products(const sum_job *j, bool first, int64_t n, const sum_part *part)
{
    int64_t in = j->f.in, rows = (in + PACKED_MR - 1) / PACKED_MR;
    for (int64_t p = 0; p < 4; p++)
        for (int64_t panel = part->p0; panel < part->p1; panel++) {
            const float *v = part->v + p * j->w.from_step,
                        *d = part->d + ((panel - part->p0) * 4 + p) * j->w.to_step;
            float *sum = j->f.points + (panel * POINTS + 4 * part->row + p) * filter_step(in);
            for (int64_t r = 0; r < rows; r++) {
                int64_t i = r * in / rows, count = (r + 1) * in / rows - i;
                float *to = sum + i * PACKED_NR;
                sum_tiles[count - 1](n, v + i, j->w.ld, d, first ? NULL : to, to);
            }
        }
}

static void sum_row(const sum_job *j, const sum_part *part)
{
    for (int64_t first = 0; first < j->w.tiles; first += j->w.chunk) {
        int64_t n = gemm_min(j->w.chunk, j->w.tiles - first);
        switch (part->row) {
        case 0: make_points(j, 0, first, n, part); break;
        case 1: make_points(j, 1, first, n, part); break;
        case 2: make_points(j, 2, first, n, part); break;
        default: make_points(j, 3, first, n, part); break;
        }
        add_products(j, first == 0, n, part);
    }
}

/* Body of one thread: takes items until none is left. */
static void sum_thread(int64_t begin, int64_t end, void *context)
{
    sum_job *j = context;
    (void)end;
    int64_t panels = packed_panels(j->f.out), item;
    float *work = j->w.work + begin * j->w.work_each;
    while ((item = packed_turn(&j->w.turns, begin)) >= 0) {
        int64_t group = item % j->groups;
        sum_row(j, &(sum_part){item / j->groups, group * panels / j->groups, (group + 1) * panels / j->groups,
                               work, work + 4 * j->w.from_step});
    }
}

/* Transforms sums back to filter taps. Item i: one block of input channels (fastest) of one block of output
 * channels. */
static void taps_range(int64_t begin, int64_t end, void *context)
{
    const filter_job *j = context;
    int64_t blocks = j->in / BLOCK, step = filter_step(j->in);
    for (int64_t item = begin; item < end; item++)
        for (int64_t q = 0; q < BLOCK; q += PACKED_LANES) {
            int64_t column = item / blocks * BLOCK + q;
            const float *from = j->points + column / PACKED_NR * POINTS * step +
                                item % blocks * BLOCK * PACKED_NR + column % PACKED_NR;
            for (int64_t k = 0; k < BLOCK; k++, from += PACKED_NR) {
                packed_vector m[POINTS], g[TAPS];
                for (int p = 0; p < POINTS; p++) m[p] = *(const packed_vector *)(from + p * step);
                winograd_filter_adjoint(&winograd_f2x2, m, g);
                for (int t = 0; t < TAPS; t++)
                    *(packed_vector *)(j->filter + item * TAPS * TILE + t * TILE + k * BLOCK + q) = g[t];
            }
        }
}

/* Tiles per chunk; independent of the number of threads, because it decides the order of sums. */
static int64_t summed_at_once(int64_t tiles, int64_t in)
{
    int64_t most = SUMMED_BYTES / (4 * 4 * (in + PANELS * PACKED_NR));
    if (most < SUMMED_MIN) most = SUMMED_MIN;
    return (tiles + (tiles - 1) / most) / ((tiles - 1) / most + 1);
}

/* Number of groups of panels: PANELS panels each, or fewer, so that every thread gets one of the four rows of
 * points of a group. */
static int64_t groups_of(int64_t panels, int64_t threads)
{
    int64_t groups = (panels + PANELS - 1) / PANELS, wanted = (threads + 3) / 4;
    return groups < wanted ? gemm_min(wanted, panels) : groups;
}

static proa_status sum_tiles_up(sum_job *j)
{
    winograd *w = &j->w;
    int64_t in = j->f.in, panels = packed_panels(j->f.out);
    winograd_tiles(w);
    j->groups = groups_of(panels, proa_threads());
    int64_t threads = gemm_min(proa_threads(), 4 * j->groups), wide = (panels + j->groups - 1) / j->groups;
    w->ld = in + BLOCK;
    w->chunk = summed_at_once(w->tiles, in);
    w->from_step = winograd_step(w->chunk * w->ld), w->to_step = winograd_step(w->chunk * PACKED_NR);
    w->work_each = 4 * (w->from_step + wide * w->to_step);
    int64_t work = threads * w->work_each;
    w->work = proa_scratch((size_t)(work + filter_floats(in, j->f.out)) * sizeof(float));
    if (!w->work) return proa_error();
    j->f.points = w->work + work;
    if (j->f.out % PACKED_NR) memset(w->work, 0, (size_t)work * sizeof(float));
    packed_turns_begin(&w->turns, 4 * j->groups, threads);
    proa__parallel(threads, 1, sum_thread, j);
    proa__parallel(in / BLOCK * (j->f.out / BLOCK), 4, taps_range, &j->f);
    proa_scratch_free(w->work);
    return PROA_OK;
}

static proa_status run_filter(const proa_run *run, const proa_tensor *x, const proa_tensor *d_out,
                              proa_tensor *d_weight)
{
    if (!CONV_BLOCKS_FIT) return proa_decline("needs AVX2");
    const conv_geometry *g = run->state;
    conv_form forms[CONV_FORMS];
    proa_status status = conv_forms_begin(run, BACKWARD_WEIGHTS, x, d_out, d_weight, forms);
    if (status == PROA_OK) {
        sum_job j = {.w = {.kind = &winograd_f2x2_kind,
                           .from = winograd_map_of(forms[0].data, g->in, g->in_channels, true),
                           .to = winograd_map_of(NULL, g->out, g->out_channels, true),
                           .batch = g->batch,
                           .before = {g->before[1], g->before[2]}},
                     .d_out = forms[1].data,
                     .f = {.filter = forms[CONV_RESULT].data, .in = g->in_channels, .out = g->out_channels}};
        status = sum_tiles_up(&j);
    }
    return conv_forms_end(forms, status);
}

/* ---- the kernels ------------------------------------------------------------------------------------ */

CONV_KERNEL_FORWARD(conv2d_winograd_cpu, conv_keep_geometry, conv_drop_geometry, conv_image_format)
{
    return run_between(FORWARD, run, a->x, a->weight, a->bias, a->out);
}

CONV_KERNEL_DATA(conv2d_grad_input_winograd_cpu, conv_keep_geometry, conv_drop_geometry, conv_image_format)
{
    return run_between(BACKWARD_DATA, run, a->d_out, a->weight, proa_none, a->d_x);
}

CONV_KERNEL_WEIGHTS(conv2d_grad_filter_winograd_cpu, conv_keep_geometry, conv_drop_geometry,
                    conv_filter_format)
{
    return run_filter(run, a->x, a->d_out, a->d_weight);
}
