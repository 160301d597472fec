/* Dgrad of float32 convolutions with strides or small maps, in blocked layouts. Input pixels with the same
 * remainder by the stride (one phase) are a stride-1 convolution with some of the taps; all phases are
 * computed together, with vectors of 16 pixels of the input's grid divided by the stride, over all images, so
 * that neither a rearranged filter nor zeros between strided pixels are stored. May use core and helpers of
 * ops/. */
#include "ops/conv/algorithms.h"
#include "ops/conv/gather_map.h"

enum {
    BLOCK = PAIRS_BLOCK,
    TILE = PAIRS_TILE,
    CHUNK_BYTES = 512 << 10, /* of columns that are laid out at once: half of a second-level cache */
    TURNS = 4,               /* a thread, at least: one that is held up leaves them to the others */
};

/* Filter taps along one dim: the phase that each contributes to, and the distance from a column to the pixel
 * that the tap reads. */
typedef struct strided_side {
    int64_t columns; /* of the side */
    int64_t least, shifts;
    int8_t phase[CONV_STRIDED_TAPS_MAX], shift[CONV_STRIDED_TAPS_MAX];
} strided_side;

typedef struct strided_state {
    conv_geometry g;
    strided_side side[2];
    int64_t columns, vectors; /* of all images */
    int64_t shifts;
    conv_gather_map of; /* phases (in) and shifts (out) */
} strided_state;

/* ---- preparing ---------------------------------------------------------------------------------- */

static void strided_release(void *state)
{
    strided_state *s = state;
    if (!s) return;
    gather_release(&s->of);
    proa__free(s);
}

/* Tap r maps output pixel y to input pixel y·stride − before + r·dilation. */
static void look_at_side(strided_side *side, const conv_geometry *g, int i)
{
    int64_t stride = g->stride[i], taps = g->kernel[i], most = INT8_MIN;
    side->least = INT8_MAX;
    for (int64_t r = 0; r < taps; r++) {
        int64_t at = r * g->dilation[i] - g->before[i], phase = (at % stride + stride) % stride;
        int64_t shift = (phase - at) / stride;
        side->phase[r] = (int8_t)phase, side->shift[r] = (int8_t)shift;
        side->least = gemm_min(side->least, shift), most = shift > most ? shift : most;
    }
    side->shifts = most - side->least + 1;
    side->columns = (g->in[i] + stride - 1) / stride;
}

static proa_status sort_pairs(strided_state *s)
{
    const conv_geometry *g = &s->g;
    const strided_side *down = &s->side[0], *across = &s->side[1];
    s->of.taps = g->kernel[1] * g->kernel[2], s->of.groups = g->stride[1] * g->stride[2];
    conv_pair list[CONV_STRIDED_TAPS_MAX];
    for (int64_t t = 0; t < s->of.taps; t++) {
        int64_t r = t / g->kernel[2], c = t % g->kernel[2];
        int64_t out = (down->shift[r] - down->least) * across->shifts + across->shift[c] - across->least;
        list[t] = (conv_pair){(int32_t)(down->phase[r] * g->stride[2] + across->phase[c]), (int32_t)out,
                              (int32_t)t};
    }
    return gather_sort(&s->of, list, s->of.taps, BACKWARD_DATA);
}

static proa_status keep(const conv_problem *p, void **state)
{
    strided_state *s = proa__calloc(sizeof *s);
    if (!s) return proa_error();
    s->g = p->g;
    for (int i = 0; i < 2; i++) look_at_side(&s->side[i], &s->g, 1 + i);
    s->shifts = s->side[0].shifts * s->side[1].shifts;
    s->columns = s->g.batch * s->side[0].columns * s->side[1].columns;
    s->vectors = (s->columns + BLOCK - 1) / BLOCK;
    proa_status status = sort_pairs(s);
    if (status == PROA_OK) *state = s;
    else strided_release(s);
    return status;
}

/* ---- running ------------------------------------------------------------------------------------ */

typedef struct strided_job {
    const strided_state *s;
    gather_map from, to;
    const float *filter;
    int64_t chunk, parts; /* vectors that are laid out at once; turns of a chunk */
    int64_t vector;       /* floats of one that is laid out: [block][shift][channel][column] */
    float *work;
    packed_turns turns;
} strided_job;

/* Position of a column: its image, and its pixel there. */
typedef struct strided_place {
    int64_t image, y, x;
} strided_place;

static strided_place column_of(const strided_state *s, int64_t at)
{
    int64_t down = s->side[0].columns, across = s->side[1].columns;
    return (strided_place){at / (down * across), at / across % down, at % across};
}

static void next_column(const strided_state *s, strided_place *at)
{
    if (++at->x < s->side[1].columns) return;
    at->x = 0;
    if (++at->y < s->side[0].columns) return;
    at->y = 0, at->image++;
}

/* Copies the operands of one shift for the columns of a vector, all channels; zeros outside the map. */
static void lay_shift(const strided_job *j, int64_t vector, int64_t shift, float *to)
{
    const strided_state *s = j->s;
    const conv_geometry *g = &s->g;
    int64_t down = shift / s->side[1].shifts + s->side[0].least;
    int64_t across = shift % s->side[1].shifts + s->side[1].least;
    const float *from[BLOCK];
    strided_place at = column_of(s, vector * BLOCK);
    for (int64_t i = 0; i < BLOCK; i++, next_column(s, &at)) {
        int64_t y = at.y + down, x = at.x + across;
        bool inside = at.image < g->batch && y >= 0 && y < g->out[1] && x >= 0 && x < g->out[2];
        from[i] =
            inside ? j->from.data + at.image * j->from.image + (y * g->out[2] + x) * j->from.place : NULL;
    }
    for (int64_t b = 0; b < j->from.blocks; b++, to += s->shifts * TILE) {
        gather_lane rows[BLOCK];
        for (int64_t i = 0; i < BLOCK; i++) {
            const float *row = from[i] ? from[i] + b * j->from.block : NULL;
            gather_lane v = {0};
            if (row && j->from.channel == 1) v = *(const gather_lane *)row;
            else if (row)
                for (int64_t c = 0; c < BLOCK; c++) v[c] = row[c * j->from.channel];
            rows[i] = v;
        }
        gather_transpose(rows);
#pragma GCC unroll 16
        for (int64_t c = 0; c < BLOCK; c++) *(gather_lane *)(to + c * BLOCK) = rows[c];
    }
}

/* Stores a vector of columns to one phase of a block of input channels. */
static void store(const strided_job *j, int64_t vector, int64_t block, int64_t phase, gather_lane *rows)
{
    const conv_geometry *g = &j->s->g;
    const gather_map *m = &j->to;
    gather_transpose(rows);
    strided_place at = column_of(j->s, vector * BLOCK);
    for (int64_t i = 0; i < BLOCK && at.image < g->batch; i++, next_column(j->s, &at)) {
        int64_t y = at.y * g->stride[1] + phase / g->stride[2];
        int64_t x = at.x * g->stride[2] + phase % g->stride[2];
        if (y >= g->in[1] || x >= g->in[2]) continue;
        float *to = m->data + at.image * m->image + block * m->block + (y * g->in[2] + x) * m->place;
        if (m->channel == 1) *(gather_lane *)to = rows[i];
        else
            for (int64_t c = 0; c < BLOCK; c++) to[c * m->channel] = rows[i][c];
    }
}

/* sum += the product of a phase's only tap; prefetches the filter's next tile meanwhile. */
static void sum_tap(const gather_operands *o, gather_lane *to)
{
    const float *w = o->w, *from = o->from;
    gather_lane sum[BLOCK] = {{0}};
    for (int64_t left = o->blocks; left; left--, w += o->step, from += o->from_step) {
        gather_ask_ahead(w + (left > 1 ? o->step : 0), TILE * sizeof *w, 0);
        gather_add_tile(sum, w, BLOCK, 1, from, BLOCK);
    }
#pragma GCC unroll 16
    for (int64_t c = 0; c < BLOCK; c++) to[c] = sum[c];
}

/* Computes one vector of columns, packed at `from`, for one block of input channels. Sums over one tap stay
 * in registers; with more taps, blocks are read in the order in which they are stored. */
static void sum_vector(const strided_job *j, int64_t vector, int64_t block, const float *from)
{
    const conv_gather_map *of = &j->s->of;
    gather_lane sums[CONV_STRIDED_PHASES_MAX * BLOCK];
    for (int64_t i = 0; i < of->groups * BLOCK; i++) sums[i] = (gather_lane){0};
    gather_operands o = {.w = j->filter + block * of->taps * TILE,
                         .from = from,
                         .step = j->to.blocks * of->taps * TILE,
                         .from_step = j->s->shifts * TILE,
                         .row = BLOCK,
                         .blocks = j->from.blocks};
    if (of->taps == 1) sum_tap(&o, sums + of->pairs[0].in * BLOCK);
    else
        for (int64_t n = o.blocks % 2 ? 1 : 2; o.blocks;
             o.blocks -= n, o.w += n * o.step, o.from += n * o.from_step, n = 2)
            gather_add_blocks(of, false, &o, n, sums);
    for (int64_t phase = 0; phase < of->groups; phase++) store(j, vector, block, phase, sums + phase * BLOCK);
}

/* Body of one thread: takes parts of chunks until none is left. */
static void columns_thread(int64_t begin, int64_t end, void *context)
{
    strided_job *j = context;
    (void)end;
    const strided_state *s = j->s;
    float *work = j->work + begin * j->chunk * j->vector;
    int64_t turn, have = -1;
    while ((turn = packed_turn(&j->turns, begin)) >= 0) {
        int64_t chunk = turn / j->parts, part = turn % j->parts, first = chunk * j->chunk;
        int64_t n = gemm_min(j->chunk, s->vectors - first);
        for (int64_t i = 0; i < n * s->shifts && chunk != have; i++)
            lay_shift(j, first + i / s->shifts, i % s->shifts,
                      work + i / s->shifts * j->vector + i % s->shifts * TILE);
        have = chunk;
        int64_t last = (part + 1) * j->to.blocks / j->parts;
        for (int64_t block = part * j->to.blocks / j->parts; block < last; block++)
            for (int64_t i = 0; i < n; i++) sum_vector(j, first + i, block, work + i * j->vector);
    }
}

static proa_status run_strided(strided_job *j)
{
    const strided_state *s = j->s;
    j->vector = j->from.blocks * s->shifts * TILE;
    int64_t most = CHUNK_BYTES / (4 * j->vector) + 1;
    int64_t chunks = (s->vectors + most - 1) / most;
    j->chunk = (s->vectors + chunks - 1) / chunks;
    chunks = (s->vectors + j->chunk - 1) / j->chunk;
    int64_t threads = gemm_min(proa_threads(), chunks * j->to.blocks), turns = threads * TURNS;
    j->parts = gemm_min((turns + chunks - 1) / chunks, j->to.blocks);
    j->work = proa_scratch((size_t)(threads * j->chunk * j->vector) * sizeof(float));
    if (!j->work) return proa_error();
    packed_turns_begin(&j->turns, chunks * j->parts, threads);
    proa__parallel(threads, 1, columns_thread, j);
    proa_scratch_free(j->work);
    return PROA_OK;
}

/* ---- the kernel --------------------------------------------------------------------------------- */

CONV_PREPARE_DATA(conv2d_grad_input_strided_avx512_cpu, keep)

PROA_KERNEL_BLOCKED(conv2d_grad_input_strided_avx512_cpu, conv2d_grad_input,
                    conv2d_grad_input_strided_avx512_cpu_prepare, strided_release, conv_image_format)
{
    const strided_state *s = run->state;
    if (run->fresh) PROA_TRY(proa__block_output(a->d_x, proa__conv_image_format()));
    strided_job j = {.s = s,
                     .from = gather_map_of(a->d_out, conv_pixels(s->g.out)),
                     .to = gather_map_of(a->d_x, conv_pixels(s->g.in)),
                     .filter = (const float *)(void *)proa__memory(a->weight)};
    return run_strided(&j);
}
