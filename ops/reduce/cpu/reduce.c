/* CPU kernels of reductions. Sums and products of floats run in double (a float32 sum first adds groups of
 * eight terms in float32), of complex numbers in complex double, of integers in int64; every partial result
 * covers a fixed slice of the terms, so the bits do not depend on the number of threads. May use core,
 * kernels and ops. */
#include "kernels/iterator.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/simd_extremes.h"
#include "ops/reduce/plan.h"
#include "impl/reduce.h"

#include <math.h>

/* One kind of reduction in one dtype: terms of dtype `in` are folded into values of dtype `acc`. */
typedef struct reducer {
    proa_dtype in, acc;
    void (*row)(void *acc, const void *x, int64_t n);    /* folds x[0 … n) into acc[0] */
    void (*column)(void *acc, const void *x, int64_t n); /* folds x[i] into acc[i] */
    void (*merge)(void *acc, const void *x, int64_t n);  /* folds the partial result x[i] into acc[i] */
    /* folds x[i], x[i + step], … of up to EIGHT rows into acc[i]; `rows` counts EIGHT more where they follow;
     * NULL: row by row */
    void (*columns)(void *acc, const void *x, int rows, int64_t step, int64_t n);
    _Alignas(16) char start[16];
} reducer;

/* One reduction, with functions applied to terms before and to results after the folding. */
typedef struct reduce_job {
    const reducer *r;
    proa_reduce_plan plan;
    const proa_tensor *x;
    void (*before)(void *x, int64_t n, double p);
    void (*after)(void *acc, int64_t n, double p);
    double p;
    char *partial; /* [slices][outputs] of dtype acc */
    int64_t slices, per_slice, chunks;
} reduce_job;

enum { CHUNK = 512, SLICE = 1 << 15, MAX_SLICES = 256 };

/* ---- the foldings ---- */

/* TERM: what is folded of an element. */
#define COLUMN(name, IN, ACC, FOLD, TERM)                                                 \
    static void name(void *acc, const void *x, int64_t n)                                 \
    {                                                                                     \
        proa_c_##ACC *to = acc;                                                           \
        const proa_c_##IN *from = x;                                                      \
        for (int64_t i = 0; i < n; i++) to[i] = FOLD(to[i], TERM((proa_c_##ACC)from[i])); \
    }
/* Sixteen running values, folded pairwise at the end. */
#define ROW(name, IN, ACC, FOLD, START, TERM)                                           \
    static void name(void *acc, const void *x, int64_t n)                               \
    {                                                                                   \
        typedef proa_c_##ACC A;                                                         \
        const proa_c_##IN *from = x;                                                    \
        A lane[16], total = *(const A *)acc;                                            \
        for (int k = 0; k < 16; k++) lane[k] = START;                                   \
        int64_t i = 0;                                                                  \
        for (; i + 16 <= n; i += 16)                                                    \
            for (int k = 0; k < 16; k++) lane[k] = FOLD(lane[k], TERM((A)from[i + k])); \
        for (; i < n; i++) lane[0] = FOLD(lane[0], TERM((A)from[i]));                   \
        for (int w = 8; w > 0; w /= 2)                                                  \
            for (int k = 0; k < w; k++) lane[k] = FOLD(lane[k], lane[k + w]);           \
        *(A *)acc = FOLD(total, lane[0]);                                               \
    }
#define FOLDING_OF(name, IN, ACC, FOLD, START, TERM) \
    ROW(name##_row, IN, ACC, FOLD, START, TERM)      \
    COLUMN(name##_column, IN, ACC, FOLD, TERM)       \
    COLUMN(name##_merge, ACC, ACC, FOLD, PLAIN)
#define FOLDING(name, IN, ACC, FOLD, START) FOLDING_OF(name, IN, ACC, FOLD, START, PLAIN)

#define PLAIN(v) (v)
#define SQUARE(v) ((v) * (v))
#define ADD(a, b) ((a) + (b))
#define WRAP_ADD(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define MUL(a, b) ((a) * (b))
#define WRAP_MUL(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
/* NaN takes precedence */
#define MAX(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define MIN(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define MAX_INT(a, b) ((b) > (a) ? (b) : (a))
#define MIN_INT(a, b) ((b) < (a) ? (b) : (a))
#define OR(a, b) ((uint8_t)((a) | (b)))
#define AND(a, b) ((uint8_t)((a) & (b)))

/* float32: eight vectors become one, as a tree, before sums go on in double. */
FOLDING(sum_f32_short, F32, F64, ADD, 0)
static void sum_f32_row(void *acc, const void *x, int64_t n)
{
    const float *from = x;
    float part[LANES];
    f64_lanes low = {0}, high = {0};
    int64_t i = 0;
    for (; i + EIGHT * LANES <= n; i += EIGHT * LANES) {
        LANES_TREE(v, from + i, LANES, lanes_add);
        *(f32_lanes *)(void *)part = v;
        low += __builtin_convertvector(HALF_AT(part), f64_lanes);
        high += __builtin_convertvector(HALF_AT(part + LANES / 2), f64_lanes);
    }
    if (i) {
        low += high;
        *(double *)acc += lanes_sum_f64(&low);
    }
    if (i < n) sum_f32_short_row(acc, from + i, n - i);
}

/* Up to eight rows become one, which the columns then take: a cache line of eight in one piece. */
static void sum_f32_columns(void *acc, const void *x, int rows, int64_t step, int64_t n)
{
    const float *from = x;
    float part[CHUNK];
    int64_t i = 0;
    /* Rows that lie apart are asked for where registers are wide: Zen 1 took 3.4 times as long with that. */
    const bool asks = rows == 2 * EIGHT && (n == step || VECTOR_BYTES == 64);
    const int64_t each = n == step ? SIXTEEN : step,
                  lines = n == step ? EIGHT : 1; /* in the order of memory */
    for (; rows >= EIGHT && i + SIXTEEN <= n; i += SIXTEEN) {
        for (int k = 0; k < EIGHT && asks; k++)
            __builtin_prefetch(from + EIGHT * step + i * lines + k * each);
#pragma GCC unroll 4
        for (int l = 0; l < SIXTEEN; l += LANES) {
            LANES_TREE(v, from + i + l, step, lanes_add);
            *(f32_lanes *)(void *)(part + i + l) = v;
        }
    }
    for (int64_t j = i; j < n; j++) part[j] = from[j];
    for (int k = 1; k < rows && k < EIGHT; k++)
        for (int64_t j = i; j < n; j++) part[j] += from[j + k * step];
    sum_f32_short_column(acc, part, n);
}

#define EXTREME(name, T, FIND, FOLD)                            \
    static void name##_row(void *acc, const void *x, int64_t n) \
    {                                                           \
        proa_c_##T *best = acc, one = FIND(x, n);               \
        *best = FOLD(*best, one);                               \
    }                                                           \
    COLUMN(name##_column, T, T, FOLD, PLAIN)                    \
    COLUMN(name##_merge, T, T, FOLD, PLAIN)
EXTREME(max_f32, F32, simd_largest, MAX)
EXTREME(min_f32, F32, simd_least, MIN)
EXTREME(max_f64, F64, simd_largest_f64, MAX)
EXTREME(min_f64, F64, simd_least_f64, MIN)
#define sum_f32_column sum_f32_short_column
#define sum_f32_merge sum_f32_short_merge

FOLDING(sum_f64, F64, F64, ADD, 0)
FOLDING_OF(squares_f32, F32, F64, ADD, 0, SQUARE)
FOLDING_OF(squares_f64, F64, F64, ADD, 0, SQUARE)
FOLDING_OF(absolutes_f32, F32, F64, ADD, 0, fabs)
FOLDING_OF(absolutes_f64, F64, F64, ADD, 0, fabs)
FOLDING(sum_i64, I64, I64, WRAP_ADD, 0)
FOLDING(sum_c128, C128, C128, ADD, 0)
FOLDING(prod_f32, F32, F64, MUL, 1)
FOLDING(prod_f64, F64, F64, MUL, 1)
FOLDING(prod_i64, I64, I64, WRAP_MUL, 1)
FOLDING(prod_c128, C128, C128, MUL, 1)
FOLDING(max_i64, I64, I64, MAX_INT, INT64_MIN)
FOLDING(min_i64, I64, I64, MIN_INT, INT64_MAX)
/* Rows of float32, eight at once, each product in the order of the rows. */
static void prod_f32_columns(void *acc, const void *x, int rows, int64_t step, int64_t n)
{
    double *to = acc;
    const float *from = x;
    for (int k = 0; k < rows && rows < EIGHT; k++) prod_f32_column(acc, from + k * step, n);
    for (int64_t i = 0; i < n && rows >= EIGHT; i++) {
        double product = to[i];
#pragma GCC unroll 8
        for (int k = 0; k < EIGHT; k++) product *= (double)from[i + k * step];
        to[i] = product;
    }
}

FOLDING(any_u8, U8, U8, OR, 0)
FOLDING(all_u8, U8, U8, AND, 1)

/* SQUARES, ABSOLUTES: sums of those, of floats. */
typedef enum fold { SUM, PROD, MAXIMUM, MINIMUM, ANY, ALL, SQUARES, ABSOLUTES } fold;

static void make_reducer(reducer *r, fold kind, proa_dtype d)
{
    double number = kind == PROD ? 1 : kind == MAXIMUM ? -INFINITY : kind == MINIMUM ? INFINITY : 0;
    int64_t whole = kind == PROD || kind == ALL ? 1
                    : kind == MAXIMUM           ? INT64_MIN
                    : kind == MINIMUM           ? INT64_MAX
                                                : 0;
#define USE(name, IN, ACC)                                                          \
    *r = (reducer)                                                                  \
    {                                                                               \
        PROA_##IN, PROA_##ACC, name##_row, name##_column, name##_merge, NULL, { 0 } \
    }
    bool is_complex = d == PROA_C64 || d == PROA_C128, integer = d <= PROA_I64, wide = d == PROA_F64;
    if (kind == SQUARES && wide) USE(squares_f64, F64, F64);
    else if (kind == SQUARES) USE(squares_f32, F32, F64);
    else if (kind == ABSOLUTES && wide) USE(absolutes_f64, F64, F64);
    else if (kind == ABSOLUTES) USE(absolutes_f32, F32, F64);
    else if (kind == ANY) USE(any_u8, BOOL, BOOL);
    else if (kind == ALL) USE(all_u8, BOOL, BOOL);
    else if (kind == SUM && is_complex) USE(sum_c128, C128, C128);
    else if (kind == SUM && integer) USE(sum_i64, I64, I64);
    else if (kind == SUM && wide) USE(sum_f64, F64, F64);
    else if (kind == SUM) USE(sum_f32, F32, F64);
    else if (kind == PROD && is_complex) USE(prod_c128, C128, C128);
    else if (kind == PROD && integer) USE(prod_i64, I64, I64);
    else if (kind == PROD && wide) USE(prod_f64, F64, F64);
    else if (kind == PROD) USE(prod_f32, F32, F64);
    else if (kind == MAXIMUM && integer) USE(max_i64, I64, I64);
    else if (kind == MAXIMUM && wide) USE(max_f64, F64, F64);
    else if (kind == MAXIMUM) USE(max_f32, F32, F32);
    else if (integer) USE(min_i64, I64, I64);
    else if (wide) USE(min_f64, F64, F64);
    else USE(min_f32, F32, F32);
    if (r->in == PROA_F32 && kind <= PROD) r->columns = kind == SUM ? sum_f32_columns : prod_f32_columns;
    if (r->acc <= PROA_I64) proa__convert(r->acc, r->start, PROA_I64, &whole, 1);
    else proa__convert(r->acc, r->start, PROA_F64, &number, 1);
}

/* ---- walking the terms ---- */

static bool in_place(const reduce_job *j) { return (proa_dtype)j->x->dtype == j->r->in && !j->before; }

/* n terms from element `at` on in the reducer's input dtype: x's own memory, or converted into buffer. */
static const void *terms(const reduce_job *j, int64_t at, int64_t n, char *buffer)
{
    proa_dtype d = (proa_dtype)j->x->dtype;
    const char *p = j->x->data + at * (int64_t)proa_dtype_size(d);
    if (in_place(j)) return p;
    proa__convert(j->r->in, buffer, d, p, n);
    if (j->before) j->before(buffer, n, j->p);
    return buffer;
}

/* Computes one result from its terms [begin, end): contiguous runs of plan.inner elements. */
static void fold_rows(const reduce_job *j, int64_t output, int64_t begin, int64_t end, void *acc)
{
    const proa_reduce_plan *p = &j->plan;
    _Alignas(64) char buffer[CHUNK * 16];
    int64_t base = proa__group_offset(&p->kept, output), inner = p->inner;
    while (begin < end) {
        int64_t run = begin / inner, first = begin - run * inner;
        int64_t n = inner - first < end - begin ? inner - first : end - begin;
        int64_t at = base + first + (p->reduced.n ? proa__group_offset(&p->reduced, run) : 0);
        begin += n;
        int64_t step = in_place(j) ? SLICE : CHUNK; /* terms read in place need no buffer */
        for (int64_t i = 0; i < n; i += step) {
            int64_t m = n - i < step ? n - i : step;
            j->r->row(acc, terms(j, at + i, m, buffer), m);
        }
    }
}

/* Reduces contiguous rows that are too short to divide: one result per row. */
static void fold_plain_rows(const reduce_job *j, int64_t begin, int64_t end)
{
    int64_t acc_size = (int64_t)proa_dtype_size(j->r->acc);
    int64_t row_size = j->plan.inner * (int64_t)proa_dtype_size((proa_dtype)j->x->dtype);
    const char *x = j->x->data + begin * row_size;
    for (char *acc = j->partial + begin * acc_size; begin < end; begin++, acc += acc_size, x += row_size)
        j->r->row(acc, x, j->plan.inner);
}

/* Up to CHUNK neighboring results, from terms [begin, end) each. */
static void fold_columns(const reduce_job *j, int64_t unit, int64_t begin, int64_t end, char *acc_of_slice)
{
    const proa_reduce_plan *p = &j->plan;
    _Alignas(64) char buffer[CHUNK * 16];
    int64_t outer = unit / j->chunks, column = unit % j->chunks * CHUNK;
    int64_t n = p->inner - column < CHUNK ? p->inner - column : CHUNK;
    int64_t base = proa__group_offset(&p->kept, outer) + column,
            acc_size = (int64_t)proa_dtype_size(j->r->acc);
    char *acc = acc_of_slice + (outer * p->inner + column) * acc_size;
    int64_t t = begin;
    if (j->r->columns && in_place(j) && p->reduced.n == 1)
        for (; t < end; t += EIGHT)
            j->r->columns(acc, terms(j, base + proa__group_offset(&p->reduced, t), n, buffer),
                          end - t < 2 * EIGHT ? (int)(end - t) : 2 * EIGHT, p->reduced.stride[0], n);
    for (; t < end; t++) j->r->column(acc, terms(j, base + proa__group_offset(&p->reduced, t), n, buffer), n);
}

static void reduce_tasks(int64_t begin, int64_t end, void *context)
{
    const reduce_job *j = context;
    const proa_reduce_plan *p = &j->plan;
    int64_t acc_size = (int64_t)proa_dtype_size(j->r->acc);
    if (p->rows && p->reduced.n == 0 && j->slices == 1 && p->inner <= SLICE && in_place(j)) {
        fold_plain_rows(j, begin, end);
        return;
    }
    for (int64_t task = begin; task < end; task++) {
        int64_t unit = task / j->slices, slice = task % j->slices;
        int64_t from = slice * j->per_slice,
                to = from + j->per_slice < p->terms ? from + j->per_slice : p->terms;
        char *acc = j->partial + slice * p->outputs * acc_size;
        if (p->rows) fold_rows(j, unit, from, to, acc + unit * acc_size);
        else fold_columns(j, unit, from, to, acc);
    }
}

/* ---- one reduction ---- */

/* Chooses slices from sizes alone, so that results do not depend on threads. */
static void choose_slices(reduce_job *j, int64_t units)
{
    const proa_reduce_plan *p = &j->plan;
    int64_t width = p->rows ? 1 : p->inner < CHUNK ? p->inner : CHUNK;
    int64_t least = SLICE / width + 1; /* terms that make a slice worthwhile */
    j->slices = 1;
    if (units < 64 && p->terms > 2 * least) {
        j->slices = p->terms / least;
        if (j->slices > MAX_SLICES) j->slices = MAX_SLICES;
    }
    j->per_slice = (p->terms + j->slices - 1) / j->slices;
}

static proa_status reduce_run(reduce_job *j, proa_tensor *out, unsigned mask)
{
    proa_reduce_plan *p = &j->plan;
    proa__reduce_plan(p, j->x, mask);
    if (p->outputs <= 0) return PROA_OK;
    j->chunks = p->rows ? 1 : (p->inner + CHUNK - 1) / CHUNK;
    int64_t units = p->rows ? p->outputs : p->outputs / p->inner * j->chunks;
    choose_slices(j, units);
    size_t acc_size = proa_dtype_size(j->r->acc), bytes;
    if (!proa__mul_size((size_t)(p->outputs * j->slices), acc_size, &bytes)) return proa_error();
    _Alignas(16) char few[256];
    j->partial = bytes <= sizeof few ? few : proa_scratch(bytes);
    if (!j->partial) return proa_error();
    proa__gather(j->partial, j->r->start, p->outputs * j->slices, 0, (int64_t)acc_size);
    if (p->terms > 0) {
        int64_t width = p->rows ? 1 : p->inner < CHUNK ? p->inner : CHUNK;
        int64_t grain = SLICE / (j->per_slice * width + 1) + 1;
        proa__parallel(units * j->slices, grain, reduce_tasks, j);
    }
    for (int64_t s = 1; s < j->slices; s++)
        j->r->merge(j->partial, j->partial + (size_t)(s * p->outputs) * acc_size, p->outputs);
    if (j->after) j->after(j->partial, p->outputs, j->p);
    proa__convert((proa_dtype)out->dtype, out->data, j->r->acc, j->partial, p->outputs);
    if (j->partial != few) proa_scratch_free(j->partial);
    return PROA_OK;
}

static proa_status reduce(const char *who, fold kind, proa_tensor *out, const proa_tensor *x,
                          const proa_ints *axis)
{
    reducer r;
    unsigned mask;
    PROA_TRY(proa__reduce_mask(who, axis, x->ndim, &mask));
    /* sums and products convert their terms to the result's dtype first, as Paddle does */
    make_reducer(&r, kind, (proa_dtype)(kind <= PROD ? out->dtype : x->dtype));
    reduce_job j = {.r = &r, .x = x};
    return reduce_run(&j, out, mask);
}

PROA_KERNEL(sum_cpu, sum) { return reduce("sum", SUM, a->out, a->x, &a->axis); }
PROA_KERNEL(prod_cpu, prod) { return reduce("prod", PROD, a->out, a->x, &a->axis); }
PROA_KERNEL(max_cpu, max) { return reduce("max", MAXIMUM, a->out, a->x, &a->axis); }
PROA_KERNEL(min_cpu, min) { return reduce("min", MINIMUM, a->out, a->x, &a->axis); }
PROA_KERNEL(amax_cpu, amax) { return reduce("amax", MAXIMUM, a->out, a->x, &a->axis); }
PROA_KERNEL(amin_cpu, amin) { return reduce("amin", MINIMUM, a->out, a->x, &a->axis); }
PROA_KERNEL(any_cpu, any) { return reduce("any", ANY, a->out, a->x, &a->axis); }
PROA_KERNEL(all_cpu, all) { return reduce("all", ALL, a->out, a->x, &a->axis); }

/* ---- mean ---- */

static void divide_f64(void *acc, int64_t n, double count)
{
    double *x = acc;
    for (int64_t i = 0; i < n; i++) x[i] /= count;
}
static void divide_i64(void *acc, int64_t n, double count)
{
    int64_t *x = acc;
    for (int64_t i = 0; i < n; i++) x[i] = count > 0 ? x[i] / (int64_t)count : 0;
}
static void divide_c128(void *acc, int64_t n, double count)
{
    double _Complex *x = acc;
    for (int64_t i = 0; i < n; i++) x[i] /= count;
}

PROA_KERNEL(mean_cpu, mean)
{
    reducer r;
    unsigned mask;
    if (a->x->dtype == PROA_BOOL)
        return reduce("mean", ANY, a->out, a->x, &a->axis); /* as Paddle rounds it */
    PROA_TRY(proa__reduce_mask("mean", &a->axis, a->x->ndim, &mask));
    make_reducer(&r, SUM, (proa_dtype)a->x->dtype);
    reduce_job j = {.r = &r, .x = a->x};
    j.after = r.acc == PROA_F64 ? divide_f64 : r.acc == PROA_I64 ? divide_i64 : divide_c128;
    int64_t count = 1;
    for (int i = 0; i < a->x->ndim; i++)
        if (mask >> i & 1) count *= a->x->shape[i];
    j.p = (double)count;
    return reduce_run(&j, a->out, mask);
}

/* ---- norms ---- */

#define NORM_TERMS(name, T, expression)                         \
    static void name(void *terms_, int64_t n, double p)         \
    {                                                           \
        (void)p;                                                \
        T *x = terms_;                                          \
        for (int64_t i = 0; i < n; i++) x[i] = (T)(expression); \
    }
NORM_TERMS(absolute_f32, float, fabsf(x[i]))
NORM_TERMS(absolute_f64, double, fabs(x[i]))
NORM_TERMS(present_f64, double, x[i] != 0)
NORM_TERMS(power_f64, double, pow(fabs(x[i]), p))

static void root_f64(void *acc, int64_t n, double p)
{
    double *x = acc;
    for (int64_t i = 0; i < n; i++) x[i] = p == 2 ? sqrt(x[i]) : p == 1 || p == 0 ? x[i] : pow(x[i], 1 / p);
}

PROA_KERNEL(p_norm_cpu, p_norm)
{
    reducer r;
    proa_dtype d = (proa_dtype)a->x->dtype;
    int axis = (int)(a->axis < 0 ? a->axis + a->x->ndim : a->axis);
    unsigned mask = a->asvector ? (1u << a->x->ndim) - 1 : a->x->ndim ? 1u << axis : 0;
    reduce_job j = {.r = &r, .x = a->x, .p = a->porder};
    if (isinf(a->porder)) {
        make_reducer(&r, a->porder > 0 ? MAXIMUM : MINIMUM, d);
        j.before = d == PROA_F64 ? absolute_f64 : absolute_f32;
        return reduce_run(&j, a->out, mask);
    }
    if (j.p == 1 || j.p == 2) {
        make_reducer(&r, j.p == 2 ? SQUARES : ABSOLUTES, d);
    } else {
        make_reducer(&r, SUM, PROA_F64);
        j.before = j.p == 0 ? present_f64 : power_f64;
    }
    j.after = root_f64;
    return reduce_run(&j, a->out, mask);
}
