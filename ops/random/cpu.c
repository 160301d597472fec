/* CPU kernels of random creation. Element i uses the same bits of the same Philox block, counted from the
 * op's reservation in the stream, whatever the number of threads. May use core, kernels and elementwise
 * formulas. */
#include "core/copy.h"
#include "ops/elementwise/formulas.h"
#include "kernels/iterator.h"
#include "kernels/simd_philox.h"
#include "ops/scalar.h"
#include "impl/random.h"

#include "ops/random/formulas.h"

enum { STEP = 512, BLOCKS = STEP / 4 };

typedef struct random_job {
    proa_tensor *out;
    const proa_tensor *x;
    random_numbers with;
    int64_t low; /* randint */
    uint64_t span;
    /* word[v][i] of BLOCKS blocks becomes out[4 i + v] */
    void (*floats)(random_numbers j, uint32_t (*word)[BLOCKS], float *out);
    void (*doubles)(random_numbers j, uint64_t block, double *two);
} random_job;

/* ---- formulas.h's floats, as vector code ---- */

static void uniform_floats(random_numbers j, uint32_t (*word)[BLOCKS], float *out)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int v = 0; v < 4; v++) out[4 * i + v] = random_uniform_float(j, word[v][i]);
}

/* Two normals from two words, as proa__normal_f32 makes them, to a few ulp. */
static inline void normal_pair(uint32_t a, uint32_t b, float *x, float *y)
{
    float u = ((float)(int32_t)(a >> 8) + 1.0f) * 0x1p-24f;
    float angle = 6.28318530717958647692f * proa__uniform_f32(b);
    float radius = sqrtf(-2.0f * m_log_F32(u));
    *x = radius * m_cos_quick_F32(angle);
    *y = radius * m_sin_quick_F32(angle);
}

static void normal_floats(random_numbers j, uint32_t (*word)[BLOCKS], float *out)
{
    float mean = (float)j.a, deviation = (float)j.b, v[4][BLOCKS];
    for (int i = 0; i < BLOCKS; i++) normal_pair(word[0][i], word[1][i], &v[0][i], &v[1][i]);
    for (int i = 0; i < BLOCKS; i++) normal_pair(word[2][i], word[3][i], &v[2][i], &v[3][i]);
    for (int i = 0; i < BLOCKS; i++)
        for (int k = 0; k < 4; k++) out[4 * i + k] = mean + deviation * v[k][i];
}

static void truncated_floats(random_numbers j, uint32_t (*word)[BLOCKS], float *out)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int v = 0; v < 4; v++)
            out[4 * i + v] = (float)random_truncated(j, ((double)word[v][i] + 0.5) * 0x1p-32);
}

static void exponential_floats(random_numbers j, uint32_t (*word)[BLOCKS], float *out)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int v = 0; v < 4; v++)
            out[4 * i + v] = -m_log_F32(1 - proa__uniform_f32(word[v][i])) / (float)j.a;
}

/* ---- filling tensors ---- */

/* Ranges are counted in steps, so that every range starts at a block. */
static void float_steps(int64_t begin, int64_t end, void *context)
{
    const random_job *j = context;
    proa_dtype d = (proa_dtype)j->out->dtype;
    int64_t item = (int64_t)proa_dtype_size(d);
    _Alignas(64) float v[STEP];
    _Alignas(64) uint32_t word[4][BLOCKS];
    uint32_t *const words[4] = {word[0], word[1], word[2], word[3]};
    bool nontemporal = d == PROA_F32 && j->out->numel * item >= proa__nontemporal_bytes();
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * STEP, n = j->out->numel - first < STEP ? j->out->numel - first : STEP;
        philox_lanes(j->with.at, (uint64_t)first / 4, BLOCKS, words);
        j->floats(j->with, word, v);
        if (nontemporal) proa__copy_nontemporal(j->out->data + first * item, (const char *)v, n * item);
        else proa__convert(d, j->out->data + first * item, PROA_F32, v, n);
    }
    if (nontemporal) proa__copy_nontemporal_end();
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

/* Start of `blocks` Philox blocks: reserved from the thread's generator, or with a seed other than 0 the
 * start of that seed's stream. */
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
    random_job j = {.out = a->out, .floats = uniform_floats, .doubles = random_uniform_doubles};
    proa__scalar_to(&a->min, PROA_F64, -1, &j.with.a);
    proa__scalar_to(&a->max, PROA_F64, 1, &j.with.b);
    return run_random(&j, a->seed);
}

PROA_KERNEL(gaussian_cpu, gaussian)
{
    random_job j = {.out = a->out,
                    .with = {.a = a->mean, .b = a->std},
                    .floats = normal_floats,
                    .doubles = random_normal_doubles};
    return run_random(&j, a->seed);
}

PROA_KERNEL(truncated_gaussian_random_cpu, truncated_gaussian_random)
{
    random_job j = {.out = a->out,
                    .with = {.a = a->mean, .b = a->std},
                    .floats = truncated_floats,
                    .doubles = random_truncated_doubles};
    return run_random(&j, a->seed);
}

PROA_KERNEL(exponential_cpu, exponential)
{
    random_job j = {.out = a->out,
                    .with = {.a = a->lam},
                    .floats = exponential_floats,
                    .doubles = random_exponential_doubles};
    return run_random(&j, 0);
}

/* ---- integers, permutations, coins ---- */

/* The numbers of 2 * BLOCKS blocks, two a block. */
static void integers_of(const random_job *j, uint32_t (*word)[2 * BLOCKS], int64_t *out)
{
    uint64_t low = (uint64_t)j->low, span = j->span;
    for (int i = 0; i < 2 * BLOCKS; i++)
        for (int half = 0; half < 2; half++) {
            uint64_t bits = (uint64_t)word[2 * half][i] << 32 | word[2 * half + 1][i];
            out[2 * i + half] = (int64_t)(low + random_below(bits, span));
        }
}

static void integer_steps(int64_t begin, int64_t end, void *context)
{
    const random_job *j = context;
    proa_dtype d = (proa_dtype)j->out->dtype;
    int64_t item = (int64_t)proa_dtype_size(d);
    _Alignas(64) int64_t v[STEP];
    _Alignas(64) uint32_t word[4][2 * BLOCKS];
    uint32_t *const words[4] = {word[0], word[1], word[2], word[3]};
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * STEP, n = j->out->numel - first < STEP ? j->out->numel - first : STEP;
        philox_lanes(j->with.at, (uint64_t)first / 2, 2 * BLOCKS, words);
        integers_of(j, word, v);
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
    uint32_t word[4][BLOCKS];
    uint32_t *const words[4] = {word[0], word[1], word[2], word[3]};
    for (int64_t first = (n - 1) / (2 * BLOCKS) * (2 * BLOCKS), i = n - 1; i > 0; first -= 2 * BLOCKS) {
        philox_lanes(j.with.at, (uint64_t)first / 2, BLOCKS, words); /* two numbers of 64 bits a block */
        for (; i >= first && i > 0; i--) {
            int64_t at = i - first, odd = at % 2 * 2;
            uint64_t bits = (uint64_t)word[odd][at / 2] << 32 | word[odd + 1][at / 2];
            int64_t k = (int64_t)random_below(bits, (uint64_t)i + 1), t = v[i];
            v[i] = v[k];
            v[k] = t;
        }
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
