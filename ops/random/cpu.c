/* Portable kernels of random creation. Element i of a tensor always uses the same bits of the same Philox
 * block after the reservation, whatever the threads. May use core only. */
#include "ops/iterator.h"
#include "ops/scalar.h"
#include "ops_impl.h"

#include "ops/random/formulas.h"

enum { STEP = 512 };

typedef struct random_job {
    proa_tensor *out;
    const proa_tensor *x;
    random_numbers with;
    int64_t low; /* randint */
    uint64_t span;
    void (*floats)(random_numbers j, uint64_t block, float *four);
    void (*doubles)(random_numbers j, uint64_t block, double *two);
} random_job;

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
        for (int64_t i = 0; i < n; i += 4) j->floats(j->with, (uint64_t)(first + i) / 4, v + i);
        proa__convert(d, j->out->data + first * item, PROA_F32, v, n);
    }
}

static void double_steps(int64_t begin, int64_t end, void *context)
{
    const random_job *j = context;
    _Alignas(64) double v[STEP];
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * STEP, n = j->out->numel - first < STEP ? j->out->numel - first : STEP;
        for (int64_t i = 0; i < n; i += 2) j->doubles(j->with, (uint64_t)(first + i) / 2, v + i);
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
    j->with.at = reserve(seed, (uint64_t)(wide ? (n + 1) / 2 : (n + 3) / 4));
    proa__parallel(steps, 16, wide ? double_steps : float_steps, j);
    return PROA_OK;
}

PROA_KERNEL(uniform_cpu, uniform)
{
    random_job j = {.out = a->out, .floats = random_uniform_floats, .doubles = random_uniform_doubles};
    proa__scalar_to(&a->min, PROA_F64, -1, &j.with.a);
    proa__scalar_to(&a->max, PROA_F64, 1, &j.with.b);
    return run_random(&j, a->seed);
}

PROA_KERNEL(gaussian_cpu, gaussian)
{
    random_job j = {.out = a->out,
                    .with = {.a = a->mean, .b = a->std},
                    .floats = random_normal_floats,
                    .doubles = random_normal_doubles};
    return run_random(&j, a->seed);
}

PROA_KERNEL(truncated_gaussian_random_cpu, truncated_gaussian_random)
{
    random_job j = {.out = a->out,
                    .with = {.a = a->mean, .b = a->std},
                    .floats = random_truncated_floats,
                    .doubles = random_truncated_doubles};
    return run_random(&j, a->seed);
}

PROA_KERNEL(exponential_cpu, exponential)
{
    random_job j = {.out = a->out,
                    .with = {.a = a->lam},
                    .floats = random_exponential_floats,
                    .doubles = random_exponential_doubles};
    return run_random(&j, 0);
}

/* ---- integers, permutations, coins ---- */

static void integer_steps(int64_t begin, int64_t end, void *context)
{
    const random_job *j = context;
    proa_dtype d = (proa_dtype)j->out->dtype;
    int64_t item = (int64_t)proa_dtype_size(d), v[STEP];
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * STEP, n = j->out->numel - first < STEP ? j->out->numel - first : STEP;
        for (int64_t i = 0; i < n; i++)
            v[i] = (int64_t)((uint64_t)j->low +
                             random_below(random_bits64(j->with, (uint64_t)(first + i)), j->span));
        proa__convert(d, j->out->data + first * item, PROA_I64, v, n);
    }
}

PROA_KERNEL(randint_cpu, randint)
{
    int64_t n = a->out->numel;
    if (n <= 0) return PROA_OK;
    random_job j = {.out = a->out, .low = a->low, .span = (uint64_t)a->high - (uint64_t)a->low};
    j.with.at = reserve(a->seed, (uint64_t)(n + 1) / 2);
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
    random_job j = {.with = {.at = reserve(0, (uint64_t)(n + 1) / 2)}};
    for (int64_t i = 0; i < n; i++) v[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = (int64_t)random_below(random_bits64(j.with, (uint64_t)i), (uint64_t)i + 1), t = v[i];
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
            proa__philox_block r =
                proa__philox(j->with.at.seed, j->with.at.offset + (uint64_t)(first + i) / 4);
            for (int64_t k = 0; k < 4 && i + k < n; k++) v[i + k] = (double)r.v[k] * 0x1p-32 < v[i + k];
        }
        proa__convert(d, j->out->data + first * item, PROA_F64, v, n);
    }
}

PROA_KERNEL(bernoulli_cpu, bernoulli)
{
    int64_t n = a->out->numel;
    if (n <= 0) return PROA_OK;
    random_job j = {.out = a->out, .x = a->x, .with = {.at = reserve(0, (uint64_t)(n + 3) / 4)}};
    proa__parallel((n + STEP - 1) / STEP, 16, coin_steps, &j);
    return PROA_OK;
}
