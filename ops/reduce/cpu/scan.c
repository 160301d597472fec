/* CPU kernels of argmax, argmin, cumsum and cumprod; x is viewed as [lines, length, width], and `length` is
 * reduced or scanned. May use core and kernels only. */
#include "core/copy.h"
#include "kernels/iterator.h"
#include "kernels/nontemporal.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/simd_extremes.h"
#include "kernels/rowwise.h"
#include "impl/reduce.h"

#include <math.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* x seen as `lines` blocks of `length` rows of `width` elements; the op scans or
 * reduces the middle axis. */
typedef struct scan_shape {
    int64_t lines, length, width;
} scan_shape;

static scan_shape shape_at(const proa_tensor *x, int axis, bool flat)
{
    scan_shape s = {1, flat ? x->numel : 1, 1};
    for (int i = 0; i < x->ndim && !flat; i++)
        *(i < axis ? &s.lines : i == axis ? &s.length : &s.width) *= x->shape[i];
    return s;
}

enum { COLUMNS = 256, PIECE = 512, ARG_PIECE = 4096, NONTEMPORAL_AHEAD = 2048 }; /* the last in bytes */

/* The dtype values are compared or summed in. */
static proa_dtype wide_dtype(proa_dtype d)
{
    return d == PROA_C64 || d == PROA_C128 ? PROA_C128 : d <= PROA_I64 ? PROA_I64 : PROA_F64;
}

/* ---- argmax, argmin ---- */

typedef struct arg_job {
    const proa_tensor *x;
    char *out;
    proa_dtype out_dtype, wide;
    scan_shape shape;
    int64_t chunks;
    bool largest;
} arg_job;

/* best[i], index[i] are updated by row `at`; the first of equals stays, and the first NaN is final. */
#define ARG_ROW(name, T)                                                                       \
    static void name(T *best, int64_t *index, const T *x, int64_t n, int64_t at, bool largest) \
    {                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                      \
            bool better = largest ? x[i] > best[i] : x[i] < best[i];                           \
            better = (better || x[i] != x[i]) && best[i] == best[i];                           \
            best[i] = better || at == 0 ? x[i] : best[i];                                      \
            index[i] = better || at == 0 ? at : index[i];                                      \
        }                                                                                      \
    }
ARG_ROW(arg_row_f64, double)
ARG_ROW(arg_row_i64, int64_t)

/* The argmax or argmin of one contiguous line, with ARG_ROW's rules for ties and NaN. */
#define ARG_LINE(name, T)                                                                      \
    static void name(T *best, int64_t *index, const T *x, int64_t n, int64_t at, bool largest) \
    {                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                      \
            bool better = largest ? x[i] > *best : x[i] < *best;                               \
            better = at + i == 0 || ((better || x[i] != x[i]) && *best == *best);              \
            if (better) *best = x[i], *index = at + i;                                         \
        }                                                                                      \
    }
ARG_LINE(arg_line_f64, double)
ARG_LINE(arg_line_i64, int64_t)

/* Index of the first element equal to v (v NaN: of the first NaN); there is one. */
static int64_t place_of(const float *x, int64_t n, float v)
{
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        i32_lanes same = {0};
        for (int k = 0; k < 4; k++) {
            f32_lanes y = LANES_AT(x + i + k * LANES);
            same |= v == v ? (i32_lanes)(y == v) : (i32_lanes)(y != y);
        }
        int32_t any = 0;
        for (int k = 0; k < LANES; k++) any |= same[k];
        if (any) break;
    }
    while (v == v ? x[i] != v : x[i] == x[i]) i++;
    return i;
}

/* Argmax or argmin of a float32 line: finds the extreme of a piece first, then its index. */
static int64_t arg_line_f32(const float *x, int64_t n, bool largest)
{
    float best = 0;
    int64_t index = 0;
    for (int64_t at = 0, m; at < n; at += m) {
        m = n - at < ARG_PIECE ? n - at : ARG_PIECE;
        float v = largest ? simd_largest(x + at, m) : simd_least(x + at, m);
        if (at > 0 && !(largest ? v > best : v < best) && v == v) continue;
        best = v;
        index = at + place_of(x + at, m, v);
        if (v != v) break;
    }
    return index;
}

#if defined(__AVX512F__)
/* Index of the extreme of a line of at least 64 numbers, in one pass; −1: there is a NaN. Each vector lane
 * keeps its first best value and that value's index. */
static inline __attribute__((always_inline)) int64_t arg_lanes_f32(const float *x, int64_t n,
                                                                   const bool largest)
{
    const __m512i step = _mm512_set1_epi32(64);
    __m512 best[4], top;
    __m512i at[4], place[4], least = _mm512_set1_epi32(INT32_MAX);
    __mmask16 nan = 0;
    for (int k = 0; k < 4; k++) {
        best[k] = _mm512_loadu_ps(x + 16 * k);
        nan |= _mm512_cmp_ps_mask(best[k], best[k], _CMP_UNORD_Q);
        at[k] = place[k] =
            _mm512_add_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                             _mm512_set1_epi32(16 * k));
    }
    for (int64_t i = 64; i < n; i += 64)
        for (int k = 0; k < 4; k++) {
            int64_t left = n - i - 16 * k;
            __mmask16 in = left >= 16 ? 0xffff : left > 0 ? (__mmask16)((1u << left) - 1) : 0;
            __m512 v = _mm512_maskz_loadu_ps(in, x + i + 16 * k);
            nan |= _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
            place[k] = _mm512_add_epi32(place[k], step);
            __mmask16 take = largest ? _mm512_mask_cmp_ps_mask(in, v, best[k], _CMP_GT_OQ)
                                     : _mm512_mask_cmp_ps_mask(in, v, best[k], _CMP_LT_OQ);
            best[k] = _mm512_mask_mov_ps(best[k], take, v);
            at[k] = _mm512_mask_mov_epi32(at[k], take, place[k]);
        }
    if (nan) return -1;
    top = best[0];
    for (int k = 1; k < 4; k++) top = largest ? _mm512_max_ps(top, best[k]) : _mm512_min_ps(top, best[k]);
    top = _mm512_set1_ps(largest ? _mm512_reduce_max_ps(top) : _mm512_reduce_min_ps(top));
    for (int k = 0; k < 4; k++)
        least = _mm512_mask_min_epi32(least, _mm512_cmp_ps_mask(best[k], top, _CMP_EQ_OQ), least, at[k]);
    return _mm512_reduce_min_epi32(least);
}
#endif

static int64_t arg_line(const float *x, int64_t n, bool largest)
{
#if defined(__AVX512F__)
    if (n >= 64 && n < INT32_MAX - 64) {
        int64_t at = largest ? arg_lanes_f32(x, n, true) : arg_lanes_f32(x, n, false);
        if (at >= 0) return at;
    }
#endif
    return arg_line_f32(x, n, largest);
}

static void arg_lines_f32(int64_t begin, int64_t end, void *context)
{
    const arg_job *j = context;
    const float *x = (const float *)(const void *)j->x->data;
    int64_t out_item = (int64_t)proa_dtype_size(j->out_dtype), n = j->shape.length;
    for (int64_t line = begin; line < end; line++) {
        nontemporal_prefetch(x + line * n, NONTEMPORAL_AHEAD, n < PIECE ? n * 4 : 0);
        int64_t index = arg_line(x + line * n, n, j->largest);
        proa__convert(j->out_dtype, j->out + line * out_item, PROA_I64, &index, 1);
    }
}

static void arg_tasks(int64_t begin, int64_t end, void *context)
{
    const arg_job *j = context;
    proa_dtype d = (proa_dtype)j->x->dtype;
    int64_t item = (int64_t)proa_dtype_size(d), out_item = (int64_t)proa_dtype_size(j->out_dtype);
    _Alignas(64) double best[COLUMNS], piece[PIECE];
    int64_t index[COLUMNS];
    bool integer = j->wide == PROA_I64, line = j->shape.width == 1;
    for (int64_t task = begin; task < end; task++) {
        int64_t block = task / j->chunks, column = task % j->chunks * COLUMNS;
        int64_t n = j->shape.width - column < COLUMNS ? j->shape.width - column : COLUMNS;
        const char *x = j->x->data + (block * j->shape.length * j->shape.width + column) * item;
        for (int64_t at = 0; at < j->shape.length; at += line ? PIECE : 1) {
            int64_t m = line ? (j->shape.length - at < PIECE ? j->shape.length - at : PIECE) : n;
            proa__convert(j->wide, piece, d, x + at * j->shape.width * item, m);
            if (integer)
                (line ? arg_line_i64 : arg_row_i64)((int64_t *)(void *)best, index,
                                                    (const int64_t *)(void *)piece, m, at, j->largest);
            else (line ? arg_line_f64 : arg_row_f64)(best, index, piece, m, at, j->largest);
        }
        proa__convert(j->out_dtype, j->out + (block * j->shape.width + column) * out_item, PROA_I64, index,
                      n);
    }
}

static proa_status arg_reduce(const char *who, proa_tensor *out, const proa_tensor *x,
                              const proa_scalar *axis_, bool largest)
{
    int axis;
    bool flat;
    PROA_TRY(proa__scan_axis(who, axis_, x->ndim, &axis, &flat));
    if (out->numel <= 0) return PROA_OK;
    arg_job j = {.x = x,
                 .out = out->data,
                 .out_dtype = (proa_dtype)out->dtype,
                 .largest = largest,
                 .shape = shape_at(x, axis, flat),
                 .wide = wide_dtype((proa_dtype)x->dtype)};
    j.chunks = (j.shape.width + COLUMNS - 1) / COLUMNS;
    int64_t work = j.shape.length * (j.shape.width < COLUMNS ? j.shape.width : COLUMNS);
    bool lines = x->dtype == PROA_F32 && j.shape.width == 1;
    proa__parallel(j.shape.lines * j.chunks, rows_grain(work), lines ? arg_lines_f32 : arg_tasks, &j);
    return PROA_OK;
}

PROA_KERNEL(argmax_cpu, argmax) { return arg_reduce("argmax", a->out, a->x, &a->axis, true); }
PROA_KERNEL(argmin_cpu, argmin) { return arg_reduce("argmin", a->out, a->x, &a->axis, false); }

/* ---- running sums and products ---- */

typedef struct scan_job {
    const proa_tensor *x;
    proa_tensor *out;
    proa_dtype wide;
    scan_shape shape;
    int64_t chunks;
    bool product, exclusive, reverse;
} scan_job;

/* Folds a row into acc and replaces it by the running value before (exclusive) or after its own element. */
#define SCAN_ROW(name, T, FOLD)                                       \
    static void name(void *acc, void *row, int64_t n, bool exclusive) \
    {                                                                 \
        T *a = acc, *x = row;                                         \
        for (int64_t i = 0; i < n; i++) {                             \
            T before = a[i], after = FOLD(a[i], x[i]);                \
            a[i] = after;                                             \
            x[i] = exclusive ? before : after;                        \
        }                                                             \
    }
#define SCAN_LINE(name, T, FOLD)                                                    \
    static void name(void *acc, void *row, int64_t n, bool exclusive, bool reverse) \
    {                                                                               \
        T a = *(T *)acc, *x = row;                                                  \
        for (int64_t k = 0; k < n; k++) {                                           \
            int64_t i = reverse ? n - 1 - k : k;                                    \
            T before = a;                                                           \
            a = FOLD(a, x[i]);                                                      \
            x[i] = exclusive ? before : a;                                          \
        }                                                                           \
        *(T *)acc = a;                                                              \
    }
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define SCAN(name, T, FOLD) SCAN_ROW(name##_row, T, FOLD) SCAN_LINE(name##_line, T, FOLD)
SCAN(sum_f64, double, ADD)
SCAN(sum_i64, uint64_t, ADD)
SCAN(sum_c128, double _Complex, ADD)
SCAN(prod_f64, double, MUL)
SCAN(prod_i64, uint64_t, MUL)
SCAN(prod_c128, double _Complex, MUL)

typedef struct scan_fns {
    void (*row)(void *acc, void *row, int64_t n, bool exclusive);
    void (*line)(void *acc, void *row, int64_t n, bool exclusive, bool reverse);
} scan_fns;

static scan_fns pick_scan(const scan_job *j)
{
    if (j->wide == PROA_I64)
        return j->product ? (scan_fns){prod_i64_row, prod_i64_line} : (scan_fns){sum_i64_row, sum_i64_line};
    if (j->wide == PROA_F64)
        return j->product ? (scan_fns){prod_f64_row, prod_f64_line} : (scan_fns){sum_f64_row, sum_f64_line};
    return j->product ? (scan_fns){prod_c128_row, prod_c128_line} : (scan_fns){sum_c128_row, sum_c128_line};
}

static void scan_start(const scan_job *j, char *acc, int64_t n)
{
    int64_t one = j->product;
    _Alignas(16) char value[16];
    proa__convert(j->wide, value, PROA_I64, &one, 1);
    proa__gather(acc, value, n, 0, (int64_t)proa_dtype_size(j->wide));
}

static void scan_tasks(int64_t begin, int64_t end, void *context)
{
    const scan_job *j = context;
    proa_dtype from = (proa_dtype)j->x->dtype, to = (proa_dtype)j->out->dtype;
    int64_t in_item = (int64_t)proa_dtype_size(from), out_item = (int64_t)proa_dtype_size(to);
    _Alignas(64) char acc[COLUMNS * 16], piece[PIECE * 16];
    scan_fns fns = pick_scan(j);
    bool line = j->shape.width == 1;
    int64_t step = line ? PIECE : 1, pieces = (j->shape.length + step - 1) / step;
    for (int64_t task = begin; task < end; task++) {
        int64_t block = task / j->chunks, column = task % j->chunks * COLUMNS;
        int64_t n = j->shape.width - column < COLUMNS ? j->shape.width - column : COLUMNS;
        int64_t base = block * j->shape.length * j->shape.width + column;
        scan_start(j, acc, n);
        for (int64_t k = 0; k < pieces; k++) {
            int64_t at = (j->reverse ? pieces - 1 - k : k) * step;
            int64_t m = line ? (j->shape.length - at < step ? j->shape.length - at : step) : n;
            int64_t place = base + at * j->shape.width;
            proa__convert(j->wide, piece, from, j->x->data + place * in_item, m);
            if (line) fns.line(acc, piece, m, j->exclusive, j->reverse);
            else fns.row(acc, piece, m, j->exclusive);
            proa__convert(to, j->out->data + place * out_item, j->wide, piece, m);
        }
    }
}

/* Vectors of cumulative sums, and the lanes of v moved up by one, two and four. */
#if defined(__AVX512F__)
enum { STEP = 8 };
#define UP_ONE(v) __builtin_shufflevector(v, zero, 8, 0, 1, 2, 3, 4, 5, 6)
#define UP_TWO(v) __builtin_shufflevector(v, zero, 8, 8, 0, 1, 2, 3, 4, 5)
#define UP_FOUR(v) __builtin_shufflevector(v, zero, 8, 8, 8, 8, 0, 1, 2, 3)
#define LAST(v) __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7)
#else
enum { STEP = 4 };
#define UP_ONE(v) __builtin_shufflevector(v, zero, 4, 0, 1, 2)
#define UP_TWO(v) __builtin_shufflevector(v, zero, 4, 4, 0, 1)
#define UP_FOUR(v) zero
#define LAST(v) __builtin_shufflevector(v, v, 3, 3, 3, 3)
#endif
typedef double step_wide __attribute__((vector_size(STEP * 8)));
typedef float step_narrow __attribute__((vector_size(STEP * 4), aligned(4), may_alias));

/* Cumulative sums of a float32 line in double, STEP elements at a time: a prefix sum within the vector, plus
 * the sum of all elements before. */
static void sum_line_f32(float *to, const float *x, int64_t n, double *carry)
{
    const step_wide zero = {0};
    step_wide before = zero + *carry;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        step_wide v = __builtin_convertvector(*(const step_narrow *)(const void *)(x + i), step_wide);
        v += UP_ONE(v);
        v += UP_TWO(v);
        v += UP_FOUR(v);
        const step_wide last = LAST(v);
        v += before;
        before += last;
        *(step_narrow *)(void *)(to + i) = __builtin_convertvector(v, step_narrow);
    }
    double sum = before[0];
    for (; i < n; i++) to[i] = (float)(sum += (double)x[i]);
    *carry = sum;
}

static void sum_lines_f32(int64_t begin, int64_t end, void *context)
{
    const scan_job *j = context;
    _Alignas(64) float piece[NONTEMPORAL_TILE / 4];
    int64_t n = j->shape.length;
    bool nontemporal = n >= 2 * LANES && j->out->numel * 4 >= proa__nontemporal_bytes();
    for (int64_t line = begin; line < end; line++) {
        const float *x = (const float *)(const void *)j->x->data + line * n;
        float *out = (float *)(void *)j->out->data + line * n;
        double carry = 0;
        for (int64_t at = 0, m; at < n; at += m) {
            m = nontemporal ? nontemporal_length(out + at, n - at, NONTEMPORAL_TILE / 4, 4) : n;
            if (nontemporal) nontemporal_prefetch(x + at, NONTEMPORAL_AHEAD, m * 4);
            sum_line_f32(nontemporal ? piece : out + at, x + at, m, &carry);
            if (nontemporal) nontemporal_copy(out + at, piece, m * 4);
        }
    }
    if (nontemporal) proa__copy_nontemporal_end();
}

static proa_status scan(scan_job *j)
{
    if (j->out->numel <= 0) return PROA_OK;
    j->wide = wide_dtype((proa_dtype)(j->x->dtype > j->out->dtype ? j->x->dtype : j->out->dtype));
    j->chunks = (j->shape.width + COLUMNS - 1) / COLUMNS;
    int64_t work = j->shape.length * (j->shape.width < COLUMNS ? j->shape.width : COLUMNS);
    bool sums = j->x->dtype == PROA_F32 && j->out->dtype == PROA_F32 && j->shape.width == 1 && !j->product &&
                !j->exclusive && !j->reverse && j->x->data != j->out->data;
    proa__parallel(j->shape.lines * j->chunks, rows_grain(ROWS_COSTLY * work),
                   sums ? sum_lines_f32 : scan_tasks, j);
    return PROA_OK;
}

PROA_KERNEL(cumsum_cpu, cumsum)
{
    int axis;
    bool flat;
    PROA_TRY(proa__scan_axis("cumsum", &a->axis, a->x->ndim, &axis, &flat));
    scan_job j = {.x = a->x,
                  .out = a->out,
                  .exclusive = a->exclusive,
                  .reverse = a->reverse,
                  .shape = shape_at(a->x, axis, flat || a->flatten)};
    return scan(&j);
}

PROA_KERNEL(cumprod_cpu, cumprod)
{
    int axis = (int)(a->dim < 0 ? a->dim + a->x->ndim : a->dim);
    scan_job j = {.x = a->x, .out = a->out, .product = true, .shape = shape_at(a->x, axis, a->x->ndim == 0)};
    return scan(&j);
}

/* ---- gradient of cumprod ---- */

/* With the first zero of a line at z: left of it dx_i = Σ_{i≤j<z} out_j d_j / x_i; at it, Σ_{j≥z} d_j times
 * the product of all x up to j except x_z; right of it dx_i = 0. */
#define SAME(v) (v)
#define CONJUGATE(v) (__builtin_conj(v))
#define NAME cumprod_grad_f64
#define T double
#define CONJ SAME
#include "ops/reduce/cpu/cumprod_grad.inc"
#define NAME cumprod_grad_c128
#define T double _Complex
#define CONJ CONJUGATE
#include "ops/reduce/cpu/cumprod_grad.inc"

/* All four tensors as one wide dtype: three inputs are converted, the result converted back. */
PROA_KERNEL(cumprod_grad_cpu, cumprod_grad)
{
    const proa_tensor *x = a->x;
    int64_t n = x->numel;
    if (n <= 0) return PROA_OK;
    proa_dtype d = (proa_dtype)x->dtype, wide = wide_dtype(d) == PROA_C128 ? PROA_C128 : PROA_F64;
    size_t item = proa_dtype_size(wide), bytes;
    if (!proa__mul_size((size_t)n, 4 * item, &bytes)) return proa_error();
    char *w = proa_scratch(bytes), *at[4];
    if (!w) return proa_error();
    for (int i = 0; i < 4; i++) at[i] = w + (size_t)i * (size_t)n * item;
    proa__convert(wide, at[1], d, x->data, n);
    proa__convert(wide, at[2], (proa_dtype)a->out->dtype, a->out->data, n);
    proa__convert(wide, at[3], (proa_dtype)a->d_out->dtype, a->d_out->data, n);
    scan_shape s = shape_at(x, (int)(a->dim < 0 ? a->dim + x->ndim : a->dim), x->ndim == 0);
    for (int64_t l = 0; l < s.lines * s.width; l++) {
        int64_t first = l / s.width * s.length * s.width + l % s.width;
        size_t o = (size_t)first * item;
        if (wide == PROA_C128)
            cumprod_grad_c128((void *)(at[0] + o), (void *)(at[1] + o), (void *)(at[2] + o),
                              (void *)(at[3] + o), s.length, s.width);
        else
            cumprod_grad_f64((void *)(at[0] + o), (void *)(at[1] + o), (void *)(at[2] + o),
                             (void *)(at[3] + o), s.length, s.width);
    }
    proa__convert((proa_dtype)a->d_x->dtype, a->d_x->data, wide, at[0], n);
    proa_scratch_free(w);
    return PROA_OK;
}
