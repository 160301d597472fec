/* Kernels of multinomial and poisson. Each draw uses its own bits of the Philox stream, whatever the number
 * of threads. May use core, kernels and ops headers. */
#include "ops/ints.h"
#include "kernels/iterator.h"
#include "impl/random.h"

#include "ops/random/formulas.h"

#include <stdatomic.h>

/* ---- multinomial -------------------------------------------------------------------------- */

typedef struct place_key {
    double key;
    int64_t place;
} place_key;

/* The first index whose running sum exceeds u. */
static int64_t place_of(const double *sums, int64_t n, double u)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (sums[mid] > u) high = mid;
        else low = mid + 1;
    }
    return low;
}

static void draw_again(const double *weight, int64_t n, int64_t want, double *sums, proa_rng_state at,
                       uint64_t first, int64_t *out)
{
    double total = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        sums[i] = total += weight[i];
        if (weight[i] > 0) last = i;
    }
    for (int64_t k = 0; k < want; k++)
        out[k] = place_of(sums, last + 1, random_uniform_at(at, first + (uint64_t)k) * total);
}

/* Sift-down of entry p in a min-heap. */
static void sink(place_key *heap, int64_t p, int64_t n)
{
    for (int64_t c; (c = 2 * p + 1) < n; p = c) {
        if (c + 1 < n && heap[c + 1].key < heap[c].key) c++;
        if (heap[p].key <= heap[c].key) return;
        place_key t = heap[p];
        heap[p] = heap[c], heap[c] = t;
    }
}

/* Without replacement: the `want` least of −log(u) / weight, in order (Efraimidis and Spirakis, 2006). */
static void draw_once(const double *weight, int64_t n, int64_t want, place_key *keys, proa_rng_state at,
                      uint64_t first, int64_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        double wait = -log1p(-random_uniform_at(at, first + (uint64_t)i));
        keys[i] = (place_key){weight[i] > 0 ? wait / weight[i] : INFINITY, i};
    }
    for (int64_t i = n / 2 - 1; i >= 0; i--) sink(keys, i, n);
    for (int64_t k = 0; k < want; k++) {
        out[k] = keys[0].place;
        keys[0] = keys[n - 1 - k];
        sink(keys, 0, n - 1 - k);
    }
}

PROA_KERNEL(multinomial_cpu, multinomial)
{
    const proa_tensor *x = a->x;
    int64_t n = x->shape[x->ndim - 1], rows = x->ndim == 2 ? x->shape[0] : 1, want = a->num_samples;
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)x->dtype), draws = a->replacement ? want : n;
    size_t bytes;
    if (rows == 0) return PROA_OK;
    if (!proa__mul_size((size_t)n, sizeof(double) + sizeof(place_key), &bytes)) return proa_error();
    double *weight = proa_scratch(bytes);
    if (!weight) return proa_error();
    proa_rng_state at = proa__rng_reserve((uint64_t)rows * (uint64_t)draws / 2 + 1);
    for (int64_t r = 0; r < rows; r++) {
        int64_t possible = 0;
        proa__convert(PROA_F64, weight, (proa_dtype)x->dtype, x->data + r * n * item, n);
        for (int64_t i = 0; i < n; i++) {
            if (!(weight[i] >= 0 && weight[i] < INFINITY)) {
                double bad = weight[i];
                proa_scratch_free(weight);
                return OP_FAIL("multinomial", INVALID_ARGUMENT, "x",
                               "row %lld has %g at place %lld; expected finite numbers, 0 or more",
                               (long long)r, bad, (long long)i);
            }
            possible += weight[i] > 0;
        }
        if (possible < (a->replacement ? 1 : want)) {
            proa_scratch_free(weight);
            return OP_FAIL("multinomial", INVALID_ARGUMENT, "x",
                           "row %lld has %lld entries above 0; expected %lld or more", (long long)r,
                           (long long)possible, (long long)(a->replacement ? 1 : want));
        }
        int64_t *out = (int64_t *)(void *)a->out->data + r * want;
        uint64_t first = (uint64_t)r * (uint64_t)draws;
        if (a->replacement) draw_again(weight, n, want, weight + n, at, first, out);
        else draw_once(weight, n, want, (place_key *)(void *)(weight + n), at, first, out);
    }
    proa_scratch_free(weight);
    return PROA_OK;
}

/* ---- poisson ------------------------------------------------------------------------------ */

typedef struct poisson_job {
    const proa_tensor *x;
    proa_tensor *out;
    proa_rng_state at;
    atomic_bool bad;
} poisson_job;

enum { STEP = 64 };

static void poisson_steps(int64_t begin, int64_t end, void *context)
{
    poisson_job *j = context;
    proa_dtype d = (proa_dtype)j->x->dtype;
    int64_t item = (int64_t)proa_dtype_size(d);
    double v[STEP];
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * STEP, n = j->x->numel - first < STEP ? j->x->numel - first : STEP;
        proa__convert(PROA_F64, v, d, j->x->data + first * item, n);
        for (int64_t i = 0; i < n; i++) {
            if (!(v[i] >= 0 && v[i] < INFINITY)) atomic_store(&j->bad, true);
            else v[i] = random_poisson(j->at, first + i, v[i]);
        }
        proa__convert(d, j->out->data + first * item, PROA_F64, v, n);
    }
}

PROA_KERNEL(poisson_cpu, poisson)
{
    int64_t n = a->x->numel;
    if (n <= 0) return PROA_OK;
    poisson_job j = {.x = a->x, .out = a->out, .at = proa__rng_reserve((uint64_t)n * RANDOM_POISSON_BLOCKS)};
    proa__parallel((n + STEP - 1) / STEP, 16, poisson_steps, &j);
    if (!atomic_load(&j.bad)) return PROA_OK;
    return OP_FAIL("poisson", INVALID_ARGUMENT, "x",
                   "has an element that is negative or not finite; expected means");
}
