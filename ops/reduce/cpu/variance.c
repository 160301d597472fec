/* CPU kernel of variance in one pass over memory: a slice of the terms is read twice while it is in cache
 * (for its mean, then for deviations), and slices are merged in order, so the bits do not depend on the
 * number of threads. May use core, kernels and ops/. */
#include "kernels/iterator.h"
#include "kernels/rowwise.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/simd_extremes.h"
#include "ops/reduce/plan.h"
#include "impl/reduce.h"

/* Terms of a slice: of one result, or of up to COLUMNS neighboring ones. */
enum { ROW_SLICE = 1 << 15, COLUMN_SLICE = 128, COLUMNS = 512, PIECE = 512 };

/* Moments of a set of terms: mean, and sum of squared deviations from it. */
typedef struct moments {
    double mean, squares;
} moments;

typedef struct variance_job {
    proa_reduce_plan plan;
    const proa_tensor *x;
    proa_dtype as; /* what terms are read as: float32 or float64 */
    moments *part; /* [slices][outputs] */
    int64_t slices, per_slice, blocks;
    bool plain; /* x is contiguous float32 and each result reduces one whole row */
} variance_job;

/* ---- sums of rows ---- */

static double sum_double(const double *x, int64_t n)
{
    double lane[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) lane[k] += x[i + k];
    for (; i < n; i++) lane[0] += x[i];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Sum of deviations from `mean`, and sum of their squares. */
static void distances_double(const double *x, int64_t n, double mean, double sum[2])
{
    double lane[8] = {0}, square[8] = {0};
    for (int64_t i = 0; i < n; i += 8) {
        int m = n - i < 8 ? (int)(n - i) : 8;
        for (int k = 0; k < m; k++) {
            double d = x[i + k] - mean;
            lane[k] += d, square[k] += d * d;
        }
    }
    sum[0] += sum_double(lane, 8), sum[1] += sum_double(square, 8);
}

/* Eight vectors of floats become one, as a tree, before sums go on in double. */
static inline __attribute__((always_inline)) void widen(const f32_lanes *v, f64_lanes *low, f64_lanes *high)
{
    float part[LANES];
    *(f32_lanes *)(void *)part = *v;
    *low += __builtin_convertvector(HALF_AT(part), f64_lanes);
    *high += __builtin_convertvector(HALF_AT(part + LANES / 2), f64_lanes);
}

static inline __attribute__((always_inline)) double folded(const f64_lanes *low, const f64_lanes *high)
{
    f64_lanes v = *low + *high;
    return lanes_sum_f64(&v);
}

static double sum_float(const float *x, int64_t n)
{
    f64_lanes low = {0}, high = {0};
    int64_t i = 0;
    for (; i + EIGHT * LANES <= n; i += EIGHT * LANES) {
        LANES_TREE(v, x + i, LANES, lanes_add);
        widen(&v, &low, &high);
    }
    double sum = folded(&low, &high);
    for (; i < n; i++) sum += (double)x[i];
    return sum;
}

static void distances_float(const float *x, int64_t n, double mean, double sum[2])
{
    const float by = (float)mean;
    f64_lanes low[2] = {{0}}, high[2] = {{0}};
    int64_t i = 0;
    for (; i + EIGHT * LANES <= n; i += EIGHT * LANES) {
        f32_lanes d = {0}, square = {0}, e = {0}, other = {0};
        for (int k = 0; k < EIGHT; k += 2) {
            f32_lanes one = LANES_AT(x + i + k * LANES) - by, two = LANES_AT(x + i + (k + 1) * LANES) - by;
            d += one, square += one * one, e += two, other += two * two;
        }
        d += e, square += other;
        widen(&d, &low[0], &high[0]);
        widen(&square, &low[1], &high[1]);
    }
    sum[0] += folded(&low[0], &high[0]), sum[1] += folded(&low[1], &high[1]);
    for (; i < n; i++) {
        double d = (double)(x[i] - by);
        sum[0] += d, sum[1] += d * d;
    }
}

/* ---- one slice ---- */

/* n terms from element `at` on as dtype `as`: x's own memory, or converted into buffer. */
static const void *terms(const variance_job *j, proa_dtype as, int64_t at, int64_t n, void *buffer)
{
    proa_dtype d = (proa_dtype)j->x->dtype;
    const char *p = j->x->data + at * (int64_t)proa_dtype_size(d);
    if (d == as) return p;
    proa__convert(as, buffer, d, p, n);
    return buffer;
}

/* Sums over terms [begin, end) of one result. mean NULL: sum[0] is the sum of the terms; else the sums of
 * deviations from *mean and of their squares. */
static void walk_row(const variance_job *j, int64_t output, int64_t begin, int64_t end, const double *mean,
                     double sum[2])
{
    const proa_reduce_plan *p = &j->plan;
    _Alignas(64) double buffer[PIECE];
    int64_t base = proa__group_offset(&p->kept, output);
    bool whole = (proa_dtype)j->x->dtype == j->as;
    sum[0] = sum[1] = 0;
    for (int64_t n; begin < end; begin += n) {
        int64_t run = begin / p->inner, first = begin - run * p->inner;
        n = p->inner - first < end - begin ? p->inner - first : end - begin;
        if (!whole && n > PIECE) n = PIECE;
        int64_t at = base + first + (p->reduced.n ? proa__group_offset(&p->reduced, run) : 0);
        const void *x = terms(j, j->as, at, n, buffer);
        if (j->as == PROA_F64 && mean) distances_double(x, n, *mean, sum);
        else if (j->as == PROA_F64) sum[0] += sum_double(x, n);
        else if (mean) distances_float(x, n, *mean, sum);
        else sum[0] += sum_float(x, n);
    }
}

/* Σ d² − (Σ d)² / n corrects for deviations from a rounded mean. */
static moments joined(double mean, const double sum[2], int64_t n)
{
    double by = sum[0] / (double)n;
    return (moments){mean + by, sum[1] - sum[0] * by};
}

/* Moments of one contiguous row of float32, read in place. */
static moments plain_row(const variance_job *j, int64_t output)
{
    int64_t n = j->plan.inner;
    const float *x = (const float *)(const void *)j->x->data + output * n;
    double sum[2] = {0}, mean = (double)(float)(sum_float(x, n) / (double)n);
    distances_float(x, n, mean, sum);
    return joined(mean, sum, n);
}

static void row_slice(const variance_job *j, int64_t output, int64_t begin, int64_t end, moments *to)
{
    double sum[2], mean;
    walk_row(j, output, begin, end, NULL, sum);
    mean = sum[0] / (double)(end - begin);
    if (j->as == PROA_F32) mean = (double)(float)mean;
    walk_row(j, output, begin, end, &mean, sum);
    *to = joined(mean, sum, end - begin);
}

/* sum[k], square[k] take EIGHT terms' distances from mean[k]: added up in T first. */
#define T float
#include "ops/reduce/cpu/column_distances.inc"
#define T double
#include "ops/reduce/cpu/column_distances.inc"

static void slices(int64_t begin, int64_t end, void *context)
{
    const variance_job *j = context;
    const proa_reduce_plan *p = &j->plan;
    for (int64_t task = begin; task < end; task++) {
        int64_t unit = task / j->slices, slice = task % j->slices, from = slice * j->per_slice;
        int64_t to = from + j->per_slice < p->terms ? from + j->per_slice : p->terms;
        moments *part = j->part + slice * p->outputs;
        if (j->plain) {
            part[unit] = plain_row(j, unit);
            continue;
        }
        if (p->rows) {
            row_slice(j, unit, from, to, part + unit);
            continue;
        }
        int64_t outer = unit / j->blocks, column = unit % j->blocks * COLUMNS, left = p->inner - column;
        (j->as == PROA_F64 ? columns_double : columns_float)(j, proa__group_offset(&p->kept, outer) + column,
                                                             left < COLUMNS ? left : COLUMNS, from, to,
                                                             part + outer * p->inner + column);
    }
}

/* ---- all of it ---- */

/* Merges the moments of two sets of terms. */
static void join(moments *a, int64_t n, const moments *b, int64_t m)
{
    double all = (double)(n + m), apart = b->mean - a->mean;
    a->mean += apart * ((double)m / all);
    a->squares += b->squares + apart * apart * ((double)n * (double)m / all);
}

static void finish(const variance_job *j, bool unbiased, proa_tensor *out)
{
    const proa_reduce_plan *p = &j->plan;
    int64_t less = unbiased ? 1 : 0, count = p->terms > less ? p->terms - less : less;
    double result[PIECE];
    for (int64_t at = 0, n; at < p->outputs; at += n) {
        n = p->outputs - at < PIECE ? p->outputs - at : PIECE;
        for (int64_t k = 0; k < n; k++) {
            moments all = j->part[at + k];
            for (int64_t s = 1, done = j->per_slice; s < j->slices; s++, done += j->per_slice) {
                int64_t more = p->terms - done < j->per_slice ? p->terms - done : j->per_slice;
                join(&all, done, &j->part[s * p->outputs + at + k], more);
            }
            result[k] = all.squares / (double)count;
        }
        proa__convert((proa_dtype)out->dtype,
                      out->data + at * (int64_t)proa_dtype_size((proa_dtype)out->dtype), PROA_F64, result, n);
    }
}

PROA_KERNEL(variance_cpu, variance)
{
    unsigned mask;
    PROA_TRY(proa__reduce_mask("variance", &a->axis, a->x->ndim, &mask));
    variance_job j = {.x = a->x, .as = a->x->dtype == PROA_F64 ? PROA_F64 : PROA_F32};
    proa_reduce_plan *p = &j.plan;
    proa__reduce_plan(p, a->x, mask);
    if (p->outputs <= 0) return PROA_OK;
    j.per_slice = p->rows ? ROW_SLICE : COLUMN_SLICE;
    if (j.per_slice > p->terms) j.per_slice = p->terms;
    j.slices = p->terms > 0 ? (p->terms + j.per_slice - 1) / j.per_slice : 1;
    j.plain = p->rows && p->reduced.n == 0 && j.slices == 1 && a->x->dtype == PROA_F32;
    j.blocks = (p->inner + COLUMNS - 1) / COLUMNS;
    size_t bytes;
    if (!proa__mul_size((size_t)(p->outputs * j.slices), sizeof *j.part, &bytes)) return proa_error();
    j.part = proa_scratch(bytes);
    if (!j.part) return proa_error();
    if (p->terms <= 0) memset(j.part, 0, bytes);
    int64_t units = p->rows ? p->outputs : p->outputs / p->inner * j.blocks;
    int64_t width = p->rows ? 1 : p->inner < COLUMNS ? p->inner : COLUMNS;
    if (p->terms > 0) proa__parallel(units * j.slices, ROW_SLICE / (j.per_slice * width + 1) + 1, slices, &j);
    finish(&j, a->unbiased, a->out);
    proa_scratch_free(j.part);
    return PROA_OK;
}
