/* Portable kernels of random creation. Element i of a tensor always uses the same bits of the same Philox
 * block after the reservation, whatever the threads. May use core only. */
#include "core/philox.h"
#include "ops/iterator.h"
#include "ops/scalar.h"
#include "ops_impl.h"

#include <math.h>

/* Elements a block of 128 bits makes: four from 32 bits each, or two from 64 each. */
enum { STEP = 512 };

typedef struct random_job {
    proa_tensor *out;
    const proa_tensor *x;
    proa_rng_state at;
    double a, b; /* bounds, or mean and deviation, or rate */
    int64_t low; /* randint */
    uint64_t span;
    void (*floats)(const struct random_job *j, uint64_t block, float *four);
    void (*doubles)(const struct random_job *j, uint64_t block, double *two);
} random_job;

/* ---- what a block makes ---- */

static void uniform_floats(const random_job *j, uint64_t block, float *four)
{
    proa__philox_block r = proa__philox(j->at.seed, j->at.offset + block);
    float low = (float)j->a, high = (float)j->b, span = high - low;
    for (int i = 0; i < 4; i++) {
        float v = low + span * proa__uniform_f32(r.v[i]);
        four[i] = v >= high && high > low ? low : v; /* rounding may reach the open end */
    }
}

static void uniform_doubles(const random_job *j, uint64_t block, double *two)
{
    proa__philox_block r = proa__philox(j->at.seed, j->at.offset + block);
    for (int i = 0; i < 2; i++) {
        double v = j->a + (j->b - j->a) * proa__uniform_f64(r.v[2 * i], r.v[2 * i + 1]);
        two[i] = v >= j->b && j->b > j->a ? j->a : v;
    }
}

static void normal_floats(const random_job *j, uint64_t block, float *four)
{
    proa__philox_block r = proa__philox(j->at.seed, j->at.offset + block);
    proa__normal_f32(r.v[0], r.v[1], &four[0], &four[1]);
    proa__normal_f32(r.v[2], r.v[3], &four[2], &four[3]);
    for (int i = 0; i < 4; i++) four[i] = (float)j->a + (float)j->b * four[i];
}

static void normal_doubles(const random_job *j, uint64_t block, double *two)
{
    proa__normal_f64(proa__philox(j->at.seed, j->at.offset + block), &two[0], &two[1]);
    for (int i = 0; i < 2; i++) two[i] = j->a + j->b * two[i];
}

/* Φ⁻¹ by bisection-free Newton steps on erfc from a logistic first guess: u in (0, 1). */
static double normal_quantile(double u)
{
    double x = log(u / (1 - u)) / 1.702;
    for (int i = 0; i < 6; i++) {
        double miss = 0.5 * erfc(-x * 0.70710678118654752440) - u;
        double step = miss * 2.50662827463100050242 * exp(0.5 * x * x);
        x -= step / (1 + 0.5 * x * step);
    }
    return x;
}

/* Φ(−2) and Φ(2) bound the uniform number. */
static double truncated(const random_job *j, double u)
{
    const double low = 0.02275013194817920720;
    double x = normal_quantile(low + u * (1 - 2 * low));
    x = x < -2 ? -2 : x > 2 ? 2 : x;
    return j->a + j->b * x;
}

static void truncated_floats(const random_job *j, uint64_t block, float *four)
{
    proa__philox_block r = proa__philox(j->at.seed, j->at.offset + block);
    for (int i = 0; i < 4; i++) four[i] = (float)truncated(j, ((double)r.v[i] + 0.5) * 0x1p-32);
}

static void truncated_doubles(const random_job *j, uint64_t block, double *two)
{
    proa__philox_block r = proa__philox(j->at.seed, j->at.offset + block);
    for (int i = 0; i < 2; i++) two[i] = truncated(j, proa__uniform_f64(r.v[2 * i], r.v[2 * i + 1]));
}

static void exponential_floats(const random_job *j, uint64_t block, float *four)
{
    proa__philox_block r = proa__philox(j->at.seed, j->at.offset + block);
    for (int i = 0; i < 4; i++) four[i] = -logf(1 - proa__uniform_f32(r.v[i])) / (float)j->a;
}

static void exponential_doubles(const random_job *j, uint64_t block, double *two)
{
    proa__philox_block r = proa__philox(j->at.seed, j->at.offset + block);
    for (int i = 0; i < 2; i++) two[i] = -log1p(-proa__uniform_f64(r.v[2 * i], r.v[2 * i + 1])) / j->a;
}

/* ---- filling tensors ---- */

/* Ranges are counted in steps, so that every range starts at a block. */
static void float_steps(int64_t begin, int64_t end, void *context)
{
    const random_job *j = context;
    proa_dtype d = (proa_dtype)j->out->dtype;
    int64_t item = (int64_t)proa_dtype_size(d);
    _Alignas(64) float v[STEP];
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * STEP, n = j->out->numel - first < STEP ? j->out->numel - first : STEP;
        for (int64_t i = 0; i < n; i += 4) j->floats(j, (uint64_t)(first + i) / 4, v + i);
        proa__convert(d, j->out->data + first * item, PROA_F32, v, n);
    }
}

static void double_steps(int64_t begin, int64_t end, void *context)
{
    const random_job *j = context;
    _Alignas(64) double v[STEP];
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * STEP, n = j->out->numel - first < STEP ? j->out->numel - first : STEP;
        for (int64_t i = 0; i < n; i += 2) j->doubles(j, (uint64_t)(first + i) / 2, v + i);
        memcpy(j->out->data + first * 8, v, (size_t)n * 8);
    }
}

/* Where the numbers start: reserved from the thread's generator, or the beginning of the given seed's. */
static proa_rng_state reserve(int64_t seed, uint64_t blocks)
{
    if (seed) return (proa_rng_state){(uint64_t)seed, 0};
    return proa__rng_reserve(blocks);
}

static proa_status run_random(random_job *j, int64_t seed)
{
    int64_t n = j->out->numel, steps = (n + STEP - 1) / STEP;
    if (n <= 0) return PROA_OK;
    bool wide = j->out->dtype == PROA_F64;
    j->at = reserve(seed, (uint64_t)(wide ? (n + 1) / 2 : (n + 3) / 4));
    proa__parallel(steps, 16, wide ? double_steps : float_steps, j);
    return PROA_OK;
}

PROA_KERNEL(uniform_cpu, uniform)
{
    random_job j = {.out = a->out, .floats = uniform_floats, .doubles = uniform_doubles};
    proa__scalar_to(&a->min, PROA_F64, -1, &j.a);
    proa__scalar_to(&a->max, PROA_F64, 1, &j.b);
    return run_random(&j, a->seed);
}

PROA_KERNEL(gaussian_cpu, gaussian)
{
    random_job j = {
        .out = a->out, .a = a->mean, .b = a->std, .floats = normal_floats, .doubles = normal_doubles};
    return run_random(&j, a->seed);
}

PROA_KERNEL(truncated_gaussian_random_cpu, truncated_gaussian_random)
{
    random_job j = {
        .out = a->out, .a = a->mean, .b = a->std, .floats = truncated_floats, .doubles = truncated_doubles};
    return run_random(&j, a->seed);
}

PROA_KERNEL(exponential_cpu, exponential)
{
    random_job j = {.out = a->out, .a = a->lam, .floats = exponential_floats, .doubles = exponential_doubles};
    return run_random(&j, 0);
}

/* ---- integers, permutations, coins ---- */

/* 64 bits an element: the product's high half is uniform on [0, span) up to 2^-64 · span. */
static uint64_t below(uint64_t bits, uint64_t span)
{
    uint64_t high = (bits >> 32) * (span >> 32), mid1 = (bits >> 32) * (span & 0xffffffffu);
    uint64_t mid2 = (bits & 0xffffffffu) * (span >> 32), low = (bits & 0xffffffffu) * (span & 0xffffffffu);
    uint64_t carry = ((low >> 32) + (mid1 & 0xffffffffu) + (mid2 & 0xffffffffu)) >> 32;
    return high + (mid1 >> 32) + (mid2 >> 32) + carry;
}

static uint64_t bits64(const random_job *j, uint64_t i)
{
    proa__philox_block r = proa__philox(j->at.seed, j->at.offset + i / 2);
    return (uint64_t)r.v[i % 2 * 2] << 32 | r.v[i % 2 * 2 + 1];
}

static void integer_steps(int64_t begin, int64_t end, void *context)
{
    const random_job *j = context;
    proa_dtype d = (proa_dtype)j->out->dtype;
    int64_t item = (int64_t)proa_dtype_size(d), v[STEP];
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * STEP, n = j->out->numel - first < STEP ? j->out->numel - first : STEP;
        for (int64_t i = 0; i < n; i++)
            v[i] = (int64_t)((uint64_t)j->low + below(bits64(j, (uint64_t)(first + i)), j->span));
        proa__convert(d, j->out->data + first * item, PROA_I64, v, n);
    }
}

PROA_KERNEL(randint_cpu, randint)
{
    int64_t n = a->out->numel;
    if (n <= 0) return PROA_OK;
    random_job j = {.out = a->out, .low = a->low, .span = (uint64_t)a->high - (uint64_t)a->low};
    j.at = reserve(a->seed, (uint64_t)(n + 1) / 2);
    proa__parallel((n + STEP - 1) / STEP, 16, integer_steps, &j);
    return PROA_OK;
}

/* Fisher and Yates' shuffle (Durstenfeld, 1964). */
PROA_KERNEL(randperm_cpu, randperm)
{
    int64_t n = a->out->numel;
    size_t bytes;
    if (n <= 0) return PROA_OK;
    if (!proa__mul_size((size_t)n, 8, &bytes)) return proa_error();
    int64_t *v = proa_scratch(bytes);
    if (!v) return proa_error();
    random_job j = {.at = reserve(0, (uint64_t)(n + 1) / 2)};
    for (int64_t i = 0; i < n; i++) v[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = (int64_t)below(bits64(&j, (uint64_t)i), (uint64_t)i + 1), t = v[i];
        v[i] = v[k];
        v[k] = t;
    }
    proa__convert((proa_dtype)a->out->dtype, a->out->data, PROA_I64, v, n);
    proa_scratch_free(v);
    return PROA_OK;
}

static void coin_steps(int64_t begin, int64_t end, void *context)
{
    const random_job *j = context;
    proa_dtype d = (proa_dtype)j->x->dtype;
    int64_t item = (int64_t)proa_dtype_size(d);
    _Alignas(64) double v[STEP];
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * STEP, n = j->x->numel - first < STEP ? j->x->numel - first : STEP;
        proa__convert(PROA_F64, v, d, j->x->data + first * item, n);
        for (int64_t i = 0; i < n; i += 4) {
            proa__philox_block r = proa__philox(j->at.seed, j->at.offset + (uint64_t)(first + i) / 4);
            for (int64_t k = 0; k < 4 && i + k < n; k++) v[i + k] = (double)r.v[k] * 0x1p-32 < v[i + k];
        }
        proa__convert(d, j->out->data + first * item, PROA_F64, v, n);
    }
}

PROA_KERNEL(bernoulli_cpu, bernoulli)
{
    int64_t n = a->out->numel;
    if (n <= 0) return PROA_OK;
    random_job j = {.out = a->out, .x = a->x, .at = reserve(0, (uint64_t)(n + 3) / 4)};
    proa__parallel((n + STEP - 1) / STEP, 16, coin_steps, &j);
    return PROA_OK;
}
