/* Kernels of multinomial and poisson. Each draw uses its own bits of the Philox stream, whatever the number
 * of threads. May use core, kernels and ops headers. */
#include "ops/ints.h"
#include "kernels/iterator.h"
#include "kernels/simd_philox.h"
#include "impl/random.h"

#include "ops/random/formulas.h"

#include <stdatomic.h>

/* ---- multinomial -------------------------------------------------------------------------- */

enum { DRAWN = 512 }; /* uniform numbers drawn at once */

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

/* u[i] = number first + i of the stream, uniform in [0, 1), as random_uniform_at gives it; n <= DRAWN. */
static void draw_uniforms(proa_rng_state at, uint64_t first, int64_t n, double *u)
{
    _Alignas(64) uint32_t word[4][DRAWN / 2 + PHILOX_LANES];
    uint32_t *const words[4] = {word[0], word[1], word[2], word[3]};
    int64_t odd = (int64_t)(first % 2), blocks = (odd + n + 1) / 2;
    philox_lanes(at, first / 2, (int)((blocks + PHILOX_LANES - 1) / PHILOX_LANES * PHILOX_LANES), words);
    for (int64_t i = 0; i < n; i++) {
        int64_t block = (odd + i) / 2, half = (odd + i) % 2 * 2;
        u[i] = proa__uniform_f64(word[half][block], word[half + 1][block]);
    }
}

static bool comes_after(place_key a, place_key b)
{
    return a.key > b.key || (a.key == b.key && a.place > b.place);
}

/* Sift-down of entry p in a heap whose top comes last. */
static void sink(place_key *heap, int64_t p, int64_t n)
{
    for (int64_t c; (c = 2 * p + 1) < n; p = c) {
        if (c + 1 < n && comes_after(heap[c + 1], heap[c])) c++;
        if (!comes_after(heap[c], heap[p])) return;
        place_key t = heap[p];
        heap[p] = heap[c], heap[c] = t;
    }
}

/* Adds an entry to a heap of at most `want`, from which the last falls out. Returns the number of entries. */
static int64_t keep_least(place_key *heap, int64_t count, int64_t want, place_key entry)
{
    if (count < want) {
        heap[count++] = entry;
        if (count == want)
            for (int64_t i = want / 2 - 1; i >= 0; i--) sink(heap, i, want);
    } else if (comes_after(heap[0], entry)) {
        heap[0] = entry;
        sink(heap, 0, want);
    }
    return count;
}

/* Without replacement: the `want` least of −log(1 − u) / weight, in order (Efraimidis and Spirakis, 2006). As
 * −log(1 − u) >= u, most entries need no logarithm. */
static void draw_once(const double *weight, int64_t n, int64_t want, place_key *heap, proa_rng_state at,
                      uint64_t first, int64_t *out)
{
    double u[DRAWN];
    int64_t count = 0;
    for (int64_t begin = 0; begin < n; begin += DRAWN) {
        int64_t m = n - begin < DRAWN ? n - begin : DRAWN;
        draw_uniforms(at, first + (uint64_t)begin, m, u);
        for (int64_t i = 0; i < m; i++) {
            double w = weight[begin + i];
            if (!(w > 0) || (count == want && u[i] > heap[0].key * w * (1 + 1e-12))) continue;
            count = keep_least(heap, count, want, (place_key){-log1p(-u[i]) / w, begin + i});
        }
    }
    while (count > 0) {
        out[--count] = heap[0].place;
        heap[0] = heap[count];
        sink(heap, 0, count);
    }
}

typedef struct multinomial_job {
    const proa_tensor *x;
    int64_t n, want, *out;
    bool again; /* with replacement */
    proa_rng_state at;
} multinomial_job;

/* A row's weights in double; fails unless enough of them are above 0. */
static proa_status read_weights(const multinomial_job *j, int64_t row, double *weight)
{
    proa_dtype d = (proa_dtype)j->x->dtype;
    int64_t possible = 0, least = j->again ? 1 : j->want;
    proa__convert(PROA_F64, weight, d, j->x->data + row * j->n * (int64_t)proa_dtype_size(d), j->n);
    for (int64_t i = 0; i < j->n; i++) {
        if (!(weight[i] >= 0 && weight[i] < INFINITY))
            return OP_FAIL("multinomial", INVALID_ARGUMENT, "x",
                           "row %lld has %g at place %lld; expected finite numbers, 0 or more",
                           (long long)row, weight[i], (long long)i);
        possible += weight[i] > 0;
    }
    if (possible >= least) return PROA_OK;
    return OP_FAIL("multinomial", INVALID_ARGUMENT, "x",
                   "row %lld has %lld entries above 0; expected %lld or more", (long long)row,
                   (long long)possible, (long long)least);
}

static void multinomial_rows(int64_t begin, int64_t end, void *context)
{
    const multinomial_job *j = context;
    size_t most, more = j->again ? (size_t)j->n * sizeof(double) : (size_t)j->want * sizeof(place_key);
    if (!proa__mul_size((size_t)j->n, sizeof(double) + sizeof(place_key), &most)) return;
    double *weight = proa_scratch((size_t)j->n * sizeof(double) + more);
    if (!weight) return;
    for (int64_t r = begin; r < end && read_weights(j, r, weight) == PROA_OK; r++) {
        int64_t *out = j->out + r * j->want;
        uint64_t first = (uint64_t)r * (uint64_t)(j->again ? j->want : j->n);
        if (j->again) draw_again(weight, j->n, j->want, weight + j->n, j->at, first, out);
        else draw_once(weight, j->n, j->want, (place_key *)(void *)(weight + j->n), j->at, first, out);
    }
    proa_scratch_free(weight);
}

PROA_KERNEL(multinomial_cpu, multinomial)
{
    const proa_tensor *x = a->x;
    int64_t rows = x->ndim == 2 ? x->shape[0] : 1;
    multinomial_job j = {.x = x, .n = x->shape[x->ndim - 1], .want = a->num_samples, .again = a->replacement};
    if (rows == 0) return PROA_OK;
    j.out = (int64_t *)(void *)a->out->data;
    j.at = proa__rng_reserve((uint64_t)rows * (uint64_t)(j.again ? j.want : j.n) / 2 + 1);
    proa__parallel(rows, 1 + (1 << 13) / (j.n + 1), multinomial_rows, &j);
    return proa_error();
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
