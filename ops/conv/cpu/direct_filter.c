/* Direct wgrad of float32 convolutions in blocked layouts: a tile of the filter's gradient, some input
 * channels by a few blocks of output channels at one tap, is summed in registers over a chunk of pixels.
 * oneDNN's primitives reach the same speed, with threads that wait for each other in barriers that spin. Work
 * is cut by size alone, so that results do not depend on the number of threads. May use core and helpers of
 * ops/. */
#include "ops/conv/algorithms.h"
#include "ops/conv/gather_map.h"

enum {
    BLOCK = CONV_BLOCK,
    TILE = BLOCK * BLOCK,
    WIDE = 3,             /* blocks of output channels that are summed together, at most */
    ROWS = BLOCK / 2,     /* input channels of two or three such blocks; of one, a block's */
    CHUNK = 2048 / BLOCK, /* pixels, some more or less: WIDE blocks of d_out stay in the L1 cache */
    PANEL_OUT = 96,       /* channels of a panel of the filter, which stays in the L2 cache */
    PANEL_IN = 128,       /* with the pixels of a chunk */
    TASKS = 32,           /* at least, where a task's work is as below: panels times sums */
    TASK_WORK = 1 << 19,  /* multiply-adds: some 30 µs of a core */
    SUM_PIXELS = 512,     /* that a sum is over at least, so that products take longer than adding it */
};

/* Output pixels [from, end) of an axis for which a tap reads inside the image. */
typedef struct tap_range {
    int64_t from, end;
} tap_range;

typedef struct filter_job {
    const conv_geometry *g;
    image_map x, d;
    tap_range range[2][CONV_DIRECT_SIDE_MAX]; /* of rows and columns, by tap */
    int64_t taps;
    int64_t lines, images;      /* of a chunk: rows of one image, or whole images */
    int64_t row_chunks, chunks; /* of an image, of all */
    int64_t in_panels, out_panels, sums;
    int64_t sum_floats;
    float *to; /* sums, one after the other, each in CONV_FILTER_FORMAT */
    float *result;
} filter_job;

/* Pixels of a chunk. */
typedef struct filter_chunk {
    int64_t image, end_image, row, end_row;
    bool first; /* of its sum */
} filter_chunk;

static filter_chunk chunk_of(const filter_job *j, int64_t i, bool first)
{
    const int64_t image = i / j->row_chunks * j->images, row = i % j->row_chunks * j->lines;
    return (filter_chunk){image, gemm_min(image + j->images, j->g->batch), row,
                          gemm_min(row + j->lines, j->g->out[1]), first};
}

/* sum[row][block] += x[row] · d[block] over n pixels. */
static inline __attribute__((always_inline)) void add_pixels(gather_lane (*sum)[WIDE], const float *x,
                                                             int64_t step, const float *d, int64_t block,
                                                             int64_t n, const int rows, const int wide)
{
    for (; n > 0; n--, x += step, d += BLOCK) {
        gather_lane v[WIDE];
#pragma GCC unroll 3
        for (int k = 0; k < wide; k++) v[k] = *(const gather_lane *)(d + k * block);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
            for (int k = 0; k < wide; k++) sum[i][k] += x[i] * v[k];
    }
}

/* Adds one tap's products over a chunk to a tile, or stores them if the chunk is the first: `rows` input
 * channels from x on, `wide` blocks of output channels from d on. next: floats between the tile's blocks at
 * `to`. */
static inline __attribute__((always_inline)) void sum_tile(const filter_job *j, const filter_chunk *c,
                                                           int64_t tap, const float *x, const float *d,
                                                           float *to, int64_t next, const int rows,
                                                           const int wide)
{
    const conv_geometry *g = j->g;
    const int64_t r = tap / g->kernel[2], k = tap % g->kernel[2], step = g->stride[2] * BLOCK;
    const tap_range columns = j->range[1][k];
    const int64_t row = j->range[0][r].from > c->row ? j->range[0][r].from : c->row;
    const int64_t end = gemm_min(j->range[0][r].end, c->end_row);
    int64_t n = columns.end - columns.from, lines = n > 0 ? end - row : 0;
    const int64_t line = (row * g->stride[1] - g->before[1] + r * g->dilation[1]) * g->in[2];
    const int64_t column = columns.from * g->stride[2] - g->before[2] + k * g->dilation[2];
    x += (line + column) * BLOCK, d += (row * g->out[2] + columns.from) * BLOCK;
    /* Rows that follow one another in both images are one. */
    const int64_t down = g->stride[1] * g->in[2] * BLOCK;
    if (n == g->out[2] && step == BLOCK && down == n * BLOCK) n *= lines, lines = 1;
    gather_lane sum[BLOCK][WIDE] = {{{0}}};
    for (int b = 0; b < wide; b++) gather_prefetch(to + b * next, (size_t)(rows * BLOCK) * sizeof *to, 1);
    for (int64_t image = c->image; image < c->end_image; image++)
        for (int64_t y = 0; y < lines; y++)
            add_pixels(sum, x + image * j->x.image + y * down, step,
                       d + image * j->d.image + y * g->out[2] * BLOCK, j->d.block, n, rows, wide);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int b = 0; b < wide; b++) {
            gather_lane *at = (gather_lane *)(to + b * next + i * BLOCK);
            if (!c->first) sum[i][b] += *at;
            *at = sum[i][b];
        }
}

/* Adds a chunk to all taps of a block of input channels and `wide` of output channels. */
static void sum_block(const filter_job *j, const filter_chunk *c, const float *x, const float *d, float *to,
                      int64_t next, int64_t wide)
{
    for (int64_t tap = 0; tap < j->taps; tap++, to += TILE) {
        if (wide == 1) sum_tile(j, c, tap, x, d, to, next, BLOCK, 1);
        for (int64_t i = 0; wide > 1 && i < BLOCK; i += ROWS)
            if (wide == 2) sum_tile(j, c, tap, x + i, d, to + i * BLOCK, next, ROWS, 2);
            else sum_tile(j, c, tap, x + i, d, to + i * BLOCK, next, ROWS, 3);
    }
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Task: panel of input channels (fastest), panel of output channels, sum. */
static void tasks_range(int64_t begin, int64_t end, void *context)
{
    const filter_job *j = context;
    const int64_t ins = j->x.blocks, outs = j->d.blocks, next = ins * j->taps * TILE;
    for (int64_t task = begin; task < end; task++) {
        const int64_t in = task % j->in_panels, out = task / j->in_panels % j->out_panels;
        const int64_t sum = task / (j->in_panels * j->out_panels);
        const int64_t from = in * ins / j->in_panels, to = (in + 1) * ins / j->in_panels;
        const int64_t tiles = ceil_div(outs, WIDE), first = out * tiles / j->out_panels * WIDE;
        const int64_t last = gemm_min((out + 1) * tiles / j->out_panels * WIDE, outs);
        float *panel = j->to + sum * j->sum_floats;
        const int64_t start = sum * j->chunks / j->sums, stop = (sum + 1) * j->chunks / j->sums;
        for (int64_t i = start; i < stop; i++) {
            const filter_chunk c = chunk_of(j, i, i == start);
            for (int64_t o = first, wide; o < last; o += wide) {
                wide = last - o == 4 ? 2 : gemm_min(last - o, WIDE);
                for (int64_t b = from; b < to; b++)
                    sum_block(j, &c, j->x.data + b * j->x.block, j->d.data + o * j->d.block,
                              panel + o * next + b * j->taps * TILE, next, wide);
            }
        }
    }
}

static void add_range(int64_t begin, int64_t end, void *context)
{
    const filter_job *j = context;
    for (int64_t i = begin * BLOCK; i < end * BLOCK; i += BLOCK) {
        gather_lane sum = *(const gather_lane *)(j->to + i);
        for (int64_t k = 1; k < j->sums; k++) sum += *(const gather_lane *)(j->to + k * j->sum_floats + i);
        *(gather_lane *)(j->result + i) = sum;
    }
}

static tap_range range_of(const conv_geometry *g, int i, int64_t tap)
{
    const int64_t at = tap * g->dilation[i] - g->before[i], stride = g->stride[i];
    const int64_t end = at < g->in[i] ? ceil_div(g->in[i] - at, stride) : 0;
    return (tap_range){at < 0 ? ceil_div(-at, stride) : 0, gemm_min(end, g->out[i])};
}

/* Cuts the work into chunks, panels and sums. */
static void cut(filter_job *j)
{
    const conv_geometry *g = j->g;
    const int64_t pixels = conv_pixels(g->out), operands = g->batch * (j->x.image + j->d.image);
    const double work = conv_work(g) / TASK_WORK;
    const int64_t tasks = work < TASKS ? 1 + (int64_t)work : TASKS;
    j->lines = pixels < 2 * CHUNK ? g->out[1] : ceil_div(CHUNK, g->out[2]);
    j->row_chunks = ceil_div(g->out[1], j->lines);
    j->lines = ceil_div(g->out[1], j->row_chunks);
    j->images = pixels < CHUNK ? gemm_min(ceil_div(CHUNK, pixels), g->batch) : 1;
    j->chunks = ceil_div(g->batch, j->images) * j->row_chunks;
    j->in_panels = ceil_div(g->in_channels, PANEL_IN);
    j->out_panels = ceil_div(g->out_channels, PANEL_OUT);
    j->sums = gemm_min(ceil_div(tasks, j->in_panels * j->out_panels), j->chunks);
    j->sums = gemm_min(gemm_min(j->sums, g->batch * pixels / SUM_PIXELS), 1 + operands / j->sum_floats);
    if (j->sums < 1) j->sums = 1;
    const int64_t out_tiles = ceil_div(j->d.blocks, WIDE);
    while (j->sums * j->out_panels * j->in_panels < tasks && j->out_panels < out_tiles) j->out_panels++;
    while (j->sums * j->out_panels * j->in_panels < tasks && 2 * j->in_panels <= j->x.blocks) j->in_panels++;
}

static proa_status run_filter(filter_job *j)
{
    const conv_geometry *g = j->g;
    for (int i = 0; i < 2; i++)
        for (int64_t tap = 0; tap < g->kernel[1 + i]; tap++) j->range[i][tap] = range_of(g, 1 + i, tap);
    j->taps = conv_pixels(g->kernel);
    j->sum_floats = g->in_channels * g->out_channels * j->taps;
    cut(j);
    j->to = j->sums > 1 ? proa_scratch((size_t)(j->sums * j->sum_floats) * sizeof(float)) : j->result;
    if (!j->to) return proa_error();
    const int64_t tasks = j->in_panels * j->out_panels * j->sums;
    proa__parallel(tasks, conv_grain(g, tasks), tasks_range, j);
    if (j->sums == 1) return PROA_OK;
    proa__parallel(j->sum_floats / BLOCK, 1 << 10, add_range, j);
    proa_scratch_free(j->to);
    return PROA_OK;
}

CONV_KERNEL_WEIGHTS(conv2d_grad_filter_direct_cpu, conv_keep_geometry, conv_drop_geometry, conv_filter_format)
{
    if (!CONV_BLOCKS_FIT) return proa_decline("needs AVX2");
    const conv_geometry *g = run->state;
    conv_form forms[CONV_FORMS];
    proa_status status = conv_forms_begin(run, BACKWARD_WEIGHTS, a->x, a->d_out, a->d_weight, forms);
    if (status == PROA_OK)
        status = run_filter(
            &(filter_job){.g = g,
                          .x = image_map_of(forms[0].data, true, g->in_channels, conv_pixels(g->in)),
                          .d = image_map_of(forms[1].data, true, g->out_channels, conv_pixels(g->out)),
                          .result = forms[CONV_RESULT].data});
    return conv_forms_end(forms, status);
}
