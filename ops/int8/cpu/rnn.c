/* LSTM and GRU with INT8 weights on the CPU. Rows of float inputs and of states are quantized when they are
 * multiplied, each by its own largest magnitude; sums are exact. Weights are packed once, in blocks of
 * sixteen hidden units with all their gates. Compiled once per CPU level; static functions and the kernel
 * only. */
#include "ops/int8/dot_bytes.h"
#include "ops/int8/source.h"
#include "ops/rnn/rnn.h"
#include "ops/rnn/simd_lstm.h"
#include "impl/int8.h"

#include <math.h>

#define T float
#include "ops/rnn/cells.inc"
#undef T

/* Hidden units of a block; bytes of gates that are computed at a time (1 MiB: stays in the caches until the
 * steps read it). */
enum { UNITS = DOT_COLUMNS, GATES_BYTES = 1 << 20 };

/* ---- packed weights ----------------------------------------------------------------------------- */

/* A matrix of gates · hidden rows, packed by blocks as dot_bytes.h reads them; beside it, by block and gate,
 * what the zero of bytes adds to sums, scales and biases. */
typedef struct packed_matrix {
    int64_t groups;
    int8_t *bytes;
    int32_t *excess;
    float *scale, *bias;
} packed_matrix;

typedef struct rnn_state {
    packed_matrix *matrices; /* input's and hidden's, of every layer and direction; kept */
    char *memory;
    packed_source *sources; /* of all tensors of the three lists */
    int64_t n_sources;
} rnn_state;

static void forget(rnn_state *s)
{
    for (int64_t i = 0; i < s->n_sources; i++) packed_forget(&s->sources[i]);
    proa__free(s->matrices);
    proa__free(s->memory);
    proa__free(s->sources);
    *s = (rnn_state){.n_sources = 0};
}

static void rnn_release(void *state)
{
    if (state) forget(state);
    proa__free(state);
}

static proa_status rnn_prepare(const void *args, void **state)
{
    (void)args;
    *state = proa__calloc(sizeof(rnn_state));
    return *state ? PROA_OK : proa_error();
}

static int64_t blocks_of(const rnn_sizes *s) { return (s->hidden + UNITS - 1) / UNITS; }

static size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Bytes of a packed matrix; with `at`, its arrays are placed there. */
static size_t place(packed_matrix *m, const rnn_sizes *s, int64_t columns, char *at)
{
    size_t rows = (size_t)(blocks_of(s) * s->gates * UNITS), each = padded(rows * sizeof(float));
    m->groups = (columns + 3) / 4;
    size_t bytes = padded(rows * 4 * (size_t)m->groups);
    if (at) {
        m->bytes = (int8_t *)at;
        m->excess = (int32_t *)(void *)(at + bytes);
        m->scale = (float *)(void *)(at + bytes + each);
        m->bias = (float *)(void *)(at + bytes + 2 * each);
    }
    return bytes + 3 * each;
}

typedef struct packing {
    const rnn_sizes *s;
    const packed_matrix *m;
    const proa_tensor *weight, *scale, *bias;
} packing;

/* Index of element k of unit u of gate g of block j. */
static int64_t packed_at(const packing *p, bool pairs, int64_t j, int64_t g, int64_t u, int64_t k)
{
    const int64_t gates = p->s->gates, groups = p->m->groups;
    if (pairs) return (j * gates + g) * 4 * groups * UNITS + int8_at(k, u);
    return 4 * (((j * groups + k / 4) * gates + g) * UNITS + u) + k % 4;
}

static void pack_row(const packing *p, int64_t j, int64_t g, int64_t u)
{
    const int64_t columns = p->weight->shape[1], row = g * p->s->hidden + j * UNITS + u;
    const int8_t *from = (const int8_t *)p->weight->data + row * columns;
    const bool pairs = dot_by_pairs();
    int64_t at = (j * p->s->gates + g) * UNITS + u;
    int32_t sum = 0;
    for (int64_t k = 0; k < columns; k++) {
        p->m->bytes[packed_at(p, pairs, j, g, u, k)] = from[k];
        sum += from[k];
    }
    p->m->excess[at] = pairs ? 0 : DOT_ZERO * sum;
    p->m->scale[at] = ((const float *)(const void *)p->scale->data)[row];
    p->m->bias[at] = ((const float *)(const void *)p->bias->data)[row];
}

static void pack_blocks(int64_t begin, int64_t end, void *context)
{
    const packing *p = context;
    for (int64_t j = begin; j < end; j++)
        for (int64_t g = 0; g < p->s->gates; g++)
            for (int64_t u = 0; u < UNITS && j * UNITS + u < p->s->hidden; u++) pack_row(p, j, g, u);
}

static bool is_packed(const rnn_state *s, const proa_tensors *lists)
{
    int64_t at = 0;
    if (!s->n_sources) return false;
    for (int l = 0; l < 3; l++)
        for (int64_t i = 0; i < lists[l].count; i++)
            if (!packed_is_of(&s->sources[at++], lists[l].at[i])) return false;
    return true;
}

static proa_status pack(rnn_state *s, const rnn_sizes *sizes, const proa_tensors *lists)
{
    if (is_packed(s, lists)) return PROA_OK;
    forget(s);
    int64_t n = lists[0].count, at = 0;
    size_t bytes = 0;
    s->matrices = proa__calloc((size_t)n * sizeof *s->matrices);
    s->sources = proa__calloc((size_t)(3 * n) * sizeof *s->sources);
    if (!s->matrices || !s->sources) return proa_error();
    for (int64_t i = 0; i < n; i++) bytes += place(&s->matrices[i], sizes, lists[0].at[i]->shape[1], NULL);
    s->memory = proa__calloc(bytes);
    if (!s->memory) return proa_error();
    char *to = s->memory;
    for (int64_t i = 0; i < n; i++) {
        packed_matrix *m = &s->matrices[i];
        to += place(m, sizes, lists[0].at[i]->shape[1], to);
        packing p = {sizes, m, lists[0].at[i], lists[1].at[i], lists[2].at[i]};
        proa__parallel(blocks_of(sizes), rows_grain(sizes->gates * UNITS * 4 * m->groups), pack_blocks, &p);
    }
    for (int l = 0; l < 3; l++)
        for (int64_t i = 0; i < n; i++) packed_note(&s->sources[at++], lists[l].at[i]);
    s->n_sources = at;
    return PROA_OK;
}

/* ---- quantized rows ------------------------------------------------------------------------------ */

/* Rows of floats, or of integers with one scale, to rows as dot_bytes.h reads them. */
typedef struct quantizing {
    const char *from;
    proa_dtype dtype;
    int64_t columns, stride; /* elements */
    int64_t to_stride;       /* bytes a row */
    float step;              /* of integers */
    char *to;
    float *scale;
} quantizing;

enum { PIECE = 256 };

/* Bytes of a row of so many groups. */
static int64_t row_bytes(int64_t groups) { return dot_by_pairs() ? 8 * groups : 4 * groups; }

/* A NaN becomes −127. */
static void quantize_floats(const float *restrict x, int64_t n, float by, int16_t *restrict to)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] * by;
        v = v > -127.0f ? v : -127.0f;
        to[i] = (int16_t)rintf(v < 127.0f ? v : 127.0f);
    }
}

static float largest_of(const float *restrict x, int64_t n)
{
    float largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < n; i++) {
        float v = fabsf(x[i]);
        largest = v > largest ? v : largest;
    }
    return largest;
}

/* Numbers [at, at + n) of row r to their place. */
static void put_row(const quantizing *q, int64_t r, int64_t at, int64_t n, const int16_t *from)
{
    if (!dot_by_pairs()) {
        uint8_t *to = (uint8_t *)q->to + r * q->to_stride + at;
        for (int64_t i = 0; i < n; i++) to[i] = (uint8_t)(from[i] + DOT_ZERO);
        return;
    }
    const int64_t tile = r / INT8_MR * INT8_MR;
    int16_t *to = (int16_t *)(void *)(q->to + tile * q->to_stride) + at * INT8_MR + 2 * (r - tile);
    for (int64_t i = 0; i < n; i += 2, to += 2 * INT8_MR)
        to[0] = from[i], to[1] = i + 1 < n ? from[i + 1] : 0;
}

static void quantize_rows(int64_t begin, int64_t end, void *context)
{
    const quantizing *q = context;
    int16_t piece[PIECE];
    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)(const void *)q->from + r * q->stride;
        const int8_t *integers = (const int8_t *)q->from + r * q->stride;
        const bool floats = q->dtype == PROA_F32;
        const float largest = floats ? largest_of(x, q->columns) : 0,
                    by = largest > 1e-30f ? 127 / largest : 0;
        for (int64_t at = 0; at < q->columns; at += PIECE) {
            const int64_t n = q->columns - at < PIECE ? q->columns - at : PIECE;
            if (floats) quantize_floats(x + at, n, by, piece);
            else
                for (int64_t i = 0; i < n; i++) piece[i] = integers[at + i];
            put_row(q, r, at, n, piece);
        }
        q->scale[r] = floats ? largest / 127 : q->step;
    }
}

/* ---- products -------------------------------------------------------------------------------------- */

typedef struct product {
    const packed_matrix *m;
    const char *x;
    const float *x_scale;
    int64_t x_stride, rows, gates;
    float *to; /* by block, row and gate: sixteen units */
} product;

/* Rows [at, at + n) of block j times its weights, as floats with bias. */
static void multiply_rows(const product *p, int64_t j, int64_t at, int n, float *to)
{
    int32_t sums[DOT_ROWS * DOT_VECTORS * UNITS];
    const int64_t width = p->gates * UNITS;
    dot_task t = {.x = p->x + at * p->x_stride,
                  .x_stride = p->x_stride,
                  .groups = p->m->groups,
                  .w = p->m->bytes + 4 * j * width * p->m->groups,
                  .sums = sums};
    dot_rows(n, (int)p->gates, &t);
    const int32_t *excess = p->m->excess + j * width;
    const float *scale = p->m->scale + j * width, *bias = p->m->bias + j * width;
    for (int r = 0; r < n; r++)
        for (int64_t g = 0; g < p->gates; g++) {
            const float step = p->x_scale[at + r];
            const int32_t *from = sums + (g * DOT_ROWS + r) * UNITS;
            float *out = to + r * width + g * UNITS;
#pragma omp simd
            for (int64_t i = 0; i < UNITS; i++) {
                const int64_t u = g * UNITS + i;
                out[i] = (float)(from[i] - excess[u]) * (scale[u] * step) + bias[u];
            }
        }
}

static void multiply_blocks(int64_t begin, int64_t end, void *context)
{
    const product *p = context;
    for (int64_t j = begin; j < end; j++)
        for (int64_t i = 0; i < p->rows; i += DOT_ROWS) {
            int64_t n = p->rows - i < DOT_ROWS ? p->rows - i : DOT_ROWS;
            multiply_rows(p, j, i, (int)n, p->to + (j * p->rows + i) * p->gates * UNITS);
        }
}

/* Blocks that are worth a thread: 2^18 byte products take some three microseconds for a single row, whose
 * weights come from a cache that cores share. */
static int64_t block_grain(const product *p)
{
    int64_t each = p->rows * p->gates * UNITS * (4 * p->m->groups + 64);
    return 1 + (1 << 18) / (each + 1);
}

/* ---- steps --------------------------------------------------------------------------------------- */

typedef struct layer {
    const rnn_sizes *s;
    proa_rnn_mode mode;
    const proa_tensor *lengths; /* NULL: all rows are full */
    int64_t direction, wide;    /* wide: hidden units, rounded up to blocks */
    product hidden;             /* its x: the states' bytes */
    char *bytes;
    float *h, *c, *gates, *y, *scale; /* h and c: rows of `wide`; gates: of the steps that are computed */
    int64_t t, row, rows;             /* the step, its first row in gates, and gates' rows */
} layer;

static inline bool is_active(const layer *l, int64_t b)
{
    return !l->lengths || l->t < rows_get_int((proa_dtype)l->lengths->dtype, l->lengths->data, b);
}

static void cell_row(const layer *l, int64_t j, int64_t b, const float *u)
{
    const int64_t n = l->s->hidden, k0 = j * UNITS, size = n - k0 < UNITS ? n - k0 : UNITS;
    float *gates = l->gates + (j * l->rows + l->row + b) * l->s->gates * UNITS;
    float *h = l->h + b * l->wide + k0, *c = l->c + b * l->wide + k0;
    float *y = l->y + ((l->t * l->s->batch + b) * l->s->directions + l->direction) * n + k0;
    if (!is_active(l, b)) {
        memset(y, 0, (size_t)size * sizeof *y);
        return;
    }
    if (l->mode == PROA_RNN_MODE_LSTM) lstm_row_float(u, UNITS, gates, UNITS, h, c, UNITS);
    else gru_row_float(u, UNITS, gates, UNITS, h, c, UNITS);
    memcpy(y, h, (size_t)size * sizeof *y);
}

static void step_blocks(int64_t begin, int64_t end, void *context)
{
    const layer *l = context;
    float u[DOT_ROWS * DOT_VECTORS * UNITS];
    for (int64_t j = begin; j < end; j++)
        for (int64_t b = 0; b < l->s->batch; b += DOT_ROWS) {
            int64_t n = l->s->batch - b < DOT_ROWS ? l->s->batch - b : DOT_ROWS;
            multiply_rows(&l->hidden, j, b, (int)n, u);
            for (int64_t r = 0; r < n; r++) cell_row(l, j, b + r, u + r * l->s->gates * UNITS);
        }
}

static void step(layer *l)
{
    quantizing q = {.from = (const char *)l->h,
                    .dtype = PROA_F32,
                    .columns = l->s->hidden,
                    .stride = l->wide,
                    .to_stride = l->hidden.x_stride,
                    .to = l->bytes,
                    .scale = l->scale};
    proa__parallel(l->s->batch, rows_grain(l->s->hidden), quantize_rows, &q);
    proa__parallel(blocks_of(l->s), block_grain(&l->hidden), step_blocks, l);
}

/* ---- layers ---------------------------------------------------------------------------------------- */

typedef struct scratch {
    float *between; /* output of every other layer */
    char *x, *bytes;
    float *x_scale, *scale, *gates, *h, *c;
    int64_t rows; /* of gates */
} scratch;

static void *take(char *at, size_t *used, size_t bytes)
{
    void *p = at ? at + *used : NULL;
    *used += padded(bytes);
    return p;
}

/* Bytes of scratch memory; with `at`, it is divided. */
static size_t divide(scratch *w, const rnn_sizes *s, char *at)
{
    const int64_t wide = blocks_of(s) * UNITS, out = s->hidden * s->directions;
    const int64_t columns = s->input > out ? s->input : out;
    int64_t steps = GATES_BYTES / 4 / (s->batch * wide * s->gates);
    steps = steps < 1 ? 1 : steps > s->steps ? s->steps : steps;
    w->rows = steps * s->batch;
    size_t used = 0;
    w->between = take(at, &used, s->layers > 1 ? (size_t)(s->steps * s->batch * out) * 4 : 0);
    const int64_t tiles = (w->rows + DOT_ROWS - 1) / DOT_ROWS, states = (s->batch + DOT_ROWS - 1) / DOT_ROWS;
    w->x = take(at, &used, (size_t)(tiles * DOT_ROWS * row_bytes((columns + 3) / 4)));
    w->bytes = take(at, &used, (size_t)(states * DOT_ROWS * row_bytes((s->hidden + 3) / 4)));
    w->x_scale = take(at, &used, (size_t)w->rows * 4);
    w->scale = take(at, &used, (size_t)s->batch * 4);
    w->gates = take(at, &used, (size_t)(w->rows * wide * s->gates) * 4);
    w->h = take(at, &used, (size_t)(s->batch * wide) * 4);
    w->c = take(at, &used, (size_t)(s->batch * wide) * 4);
    return used;
}

/* Rows of a state between a tensor and memory whose rows are `wide`. */
static void copy_state(const layer *l, float *memory, proa_tensor *t, int64_t pair, bool out)
{
    const int64_t n = l->s->hidden;
    float *rows = (float *)(void *)t->data + pair * l->s->batch * n;
    for (int64_t b = 0; b < l->s->batch; b++) {
        if (out) memcpy(rows + b * n, memory + b * l->wide, (size_t)n * 4);
        else memcpy(memory + b * l->wide, rows + b * n, (size_t)n * 4);
    }
}

/* Input of a layer. */
typedef struct input {
    const char *data;
    proa_dtype dtype;
    int64_t columns;
    float step;
} input;

/* The input products of steps `first` to `first + n` in the direction's order, then these steps. */
static void run_steps(layer *l, const input *x, const packed_matrix *m, const scratch *w, int64_t first,
                      int64_t n)
{
    const rnn_sizes *s = l->s;
    int64_t low = l->direction ? s->steps - first - n : first, rows = n * s->batch;
    size_t each = (size_t)x->columns * proa_dtype_size(x->dtype);
    quantizing q = {.from = x->data + (size_t)(low * s->batch) * each,
                    .dtype = x->dtype,
                    .columns = x->columns,
                    .stride = x->columns,
                    .to_stride = row_bytes(m->groups),
                    .step = x->step,
                    .to = w->x,
                    .scale = w->x_scale};
    proa__parallel(rows, rows_grain(x->columns), quantize_rows, &q);
    product p = {.m = m,
                 .x = w->x,
                 .x_scale = w->x_scale,
                 .x_stride = q.to_stride,
                 .rows = rows,
                 .gates = s->gates,
                 .to = w->gates};
    proa__parallel(blocks_of(s), block_grain(&p), multiply_blocks, &p);
    l->rows = rows;
    for (int64_t i = 0; i < n; i++) {
        l->t = l->direction ? low + n - 1 - i : low + i;
        l->row = (l->t - low) * s->batch;
        step(l);
    }
}

/* One layer and direction. */
static void run_layer(const proa_rnn_int8_args *a, layer *l, const input *x, const packed_matrix *m,
                      const scratch *w, int64_t pair)
{
    const rnn_sizes *s = l->s;
    bool lstm = l->mode == PROA_RNN_MODE_LSTM;
    l->bytes = w->bytes, l->scale = w->scale, l->gates = w->gates, l->h = w->h, l->c = w->c;
    l->hidden = (product){.m = &m[1],
                          .x = w->bytes,
                          .x_scale = w->scale,
                          .x_stride = row_bytes(m[1].groups),
                          .rows = s->batch,
                          .gates = s->gates};
    memset(w->h, 0, (size_t)(s->batch * l->wide) * 4);
    memset(w->c, 0, (size_t)(s->batch * l->wide) * 4);
    copy_state(l, w->h, a->pre_state.at[0], pair, false);
    if (lstm) copy_state(l, w->c, a->pre_state.at[1], pair, false);
    int64_t steps = w->rows / s->batch;
    for (int64_t first = 0; first < s->steps; first += steps)
        run_steps(l, x, m, w, first, s->steps - first < steps ? s->steps - first : steps);
    copy_state(l, w->h, a->state.at[0], pair, true);
    if (lstm) copy_state(l, w->c, a->state.at[1], pair, true);
}

static void run_layers(const proa_rnn_int8_args *a, const rnn_state *state, const rnn_sizes *s,
                       const scratch *w)
{
    input x = {a->input->data, (proa_dtype)a->input->dtype, s->input, (float)a->step};
    for (int64_t k = 0; k < s->layers; k++) {
        float *y = (s->layers - 1 - k) % 2 ? w->between : (float *)(void *)a->out->data;
        for (int64_t d = 0; d < s->directions; d++) {
            layer l = {.s = s,
                       .mode = a->mode,
                       .lengths = proa__absent(a->sequence_length) ? NULL : a->sequence_length,
                       .direction = d,
                       .wide = blocks_of(s) * UNITS,
                       .y = y};
            int64_t pair = k * s->directions + d;
            run_layer(a, &l, &x, state->matrices + 2 * pair, w, pair);
        }
        x = (input){(const char *)y, PROA_F32, s->hidden * s->directions, 1};
    }
}

static proa_status check_lengths(const proa_tensor *lengths, int64_t steps)
{
    for (int64_t b = 0; !proa__absent(lengths) && b < lengths->numel; b++) {
        int64_t n = rows_get_int((proa_dtype)lengths->dtype, lengths->data, b);
        if (n < 0 || n > steps)
            return ROWS_FAIL(rnn_int8, OUT_OF_RANGE, "sequence_length",
                             "entry %lld is %lld; expected 0 to %lld steps", (long long)b, (long long)n,
                             (long long)steps);
    }
    return PROA_OK;
}

PROA_KERNEL_PREPARED(rnn_int8_cpu, rnn_int8, rnn_prepare, rnn_release)
{
    rnn_sizes s =
        rnn_measure(a->input, a->pre_state.at[0], a->weight_list, a->mode, a->num_layers, a->is_bidirec);
    PROA_TRY(check_lengths(a->sequence_length, s.steps));
    if (s.steps == 0 || s.batch == 0) {
        for (int64_t i = 0; i < a->state.count; i++)
            if (a->state.at[i]->numel)
                memcpy(a->state.at[i]->data, a->pre_state.at[i]->data, (size_t)a->state.at[i]->numel * 4);
        return PROA_OK;
    }
    PROA_TRY(pack(run->state, &s, (const proa_tensors[]){a->weight_list, a->scale_list, a->bias_list}));
    scratch w;
    char *memory = proa_scratch(divide(&w, &s, NULL));
    if (!memory) return proa_error();
    divide(&w, &s, memory);
    memset(w.x, 0, (size_t)((char *)w.x_scale - w.x)); /* columns that round a row up to four */
    run_layers(a, run->state, &s, &w);
    proa_scratch_free(memory);
    return PROA_OK;
}
