/* Random creation on a GPU. Element i uses the same bits and formulas as on the CPU: integers and uniform
 * numbers are equal; numbers computed with a logarithm or cosine agree to 2 ulp. */
#include "devices/cuda/kernel.h"

#include "ops/random/formulas.h"

/* Start of `blocks` Philox blocks: reserved from the thread's generator, or with a seed other than 0 the
 * start of that seed's stream. */
static proa_status random_start(cuda_context *c, int64_t seed, uint64_t blocks, cuda_draws *at)
{
    *at = cuda_draws{{(uint64_t)seed, 0}, NULL};
    return seed ? PROA_OK : cuda_draw(c, blocks, at);
}

#define RANDOM_KIND(kind)                                                                      \
    struct random_of_##kind {                                                                  \
        static __device__ __forceinline__ void make(random_numbers j, uint64_t b, float *four) \
        {                                                                                      \
            random_##kind##_floats(j, b, four);                                                \
        }                                                                                      \
        static __device__ __forceinline__ void make(random_numbers j, uint64_t b, double *two) \
        {                                                                                      \
            random_##kind##_doubles(j, b, two);                                                \
        }                                                                                      \
    };
RANDOM_KIND(uniform)
RANDOM_KIND(normal)
RANDOM_KIND(truncated)
RANDOM_KIND(exponential)

/* S: stored type; T: computed type, of which a Philox block of 128 bits gives EACH numbers. */
template <class K, class S, class T, int EACH>
__global__ void random_kernel(S *out, int64_t n, random_numbers j, cuda_draws draws)
{
    j.at = cuda_drawn(draws);
    struct alignas(sizeof(S) * EACH) vector {
        S at[EACH];
    };
    for (CUDA_EACH(b, (n + EACH - 1) / EACH)) {
        T v[EACH];
        vector made;
        K::make(j, (uint64_t)b, v);
        for (int k = 0; k < EACH; k++) made.at[k] = cuda_cast<S>(v[k]);
        if (b * EACH + EACH <= n) *(vector *)(void *)(out + b * EACH) = made;
        else
            for (int k = 0; b * EACH + k < n; k++) out[b * EACH + k] = made.at[k];
    }
}

template <class K, class S, class T, int EACH>
static proa_status random_launch(cuda_context *c, const cuda_tensor &out, random_numbers j, cuda_draws draws)
{
    S *to = out.as<S>();
    int64_t n = out.numel;
    return cuda_launch(c, cuda_blocks((n + EACH - 1) / EACH), CUDA_BLOCK, (random_kernel<K, S, T, EACH>), to,
                       n, j, draws);
}

template <class K>
static proa_status random_fill(cuda_context *c, const proa_tensor *t, double a, double b, int64_t seed)
{
    cuda_tensor out = cuda_look(t);
    int64_t n = out.numel;
    if (n <= 0) return PROA_OK;
    bool wide = out.dtype == PROA_F64;
    random_numbers j = {{}, a, b};
    cuda_draws draws;
    PROA_TRY(random_start(c, seed, (uint64_t)(wide ? (n + 1) / 2 : (n + 3) / 4), &draws));
    switch (out.dtype) {
    case PROA_F64: return random_launch<K, double, double, 2>(c, out, j, draws);
    case PROA_F32: return random_launch<K, float, float, 4>(c, out, j, draws);
    case PROA_F16: return random_launch<K, cuda_f16, float, 4>(c, out, j, draws);
    default: return random_launch<K, cuda_bf16, float, 4>(c, out, j, draws);
    }
}

#define MAKES_FLOATS CUDA_IS(a->out, CUDA_FLOATS)

CUDA_KERNEL(uniform, MAKES_FLOATS)
{
    return random_fill<random_of_uniform>(c, a->out, cuda_number(&a->min, -1), cuda_number(&a->max, 1),
                                          a->seed);
}
CUDA_KERNEL(gaussian, MAKES_FLOATS)
{
    return random_fill<random_of_normal>(c, a->out, a->mean, a->std, a->seed);
}
CUDA_KERNEL(truncated_gaussian_random, MAKES_FLOATS)
{
    return random_fill<random_of_truncated>(c, a->out, a->mean, a->std, a->seed);
}
CUDA_KERNEL(exponential, MAKES_FLOATS) { return random_fill<random_of_exponential>(c, a->out, a->lam, 0, 0); }

/* ---- integers, permutations, coins ----------------------------------------------------- */

__global__ void randint_kernel(char *out, proa_dtype d, int64_t item, int64_t n, cuda_draws draws,
                               int64_t low, uint64_t span)
{
    random_numbers j = {cuda_drawn(draws), 0, 0};
    for (CUDA_EACH(i, n)) {
        uint64_t v = (uint64_t)low + random_below(random_bits64(j, (uint64_t)i), span);
        cuda_store<int64_t>(out + i * item, d, (int64_t)v);
    }
}

CUDA_KERNEL(randint, CUDA_IS(a->out, CUDA_REALS))
{
    cuda_tensor out = cuda_look(a->out);
    int64_t n = out.numel, item = cuda_item(out.dtype), low = a->low;
    if (n <= 0) return PROA_OK;
    uint64_t span = (uint64_t)a->high - (uint64_t)a->low;
    cuda_draws draws;
    PROA_TRY(random_start(c, a->seed, (uint64_t)(n + 1) / 2, &draws));
    char *to = out.data;
    proa_dtype d = out.dtype;
    return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, randint_kernel, to, d, item, n, draws, low, span);
}

__global__ void bernoulli_kernel(char *out, const char *x, proa_dtype d, int64_t item, int64_t n,
                                 cuda_draws draws)
{
    proa_rng_state at = cuda_drawn(draws);
    for (CUDA_EACH(i, n)) {
        proa__philox_block r = proa__philox(at.seed, at.offset + (uint64_t)i / 4);
        bool yes = (double)r.v[i % 4] * 0x1p-32 < cuda_load<double>(x + i * item, d);
        cuda_store<double>(out + i * item, d, yes);
    }
}

CUDA_KERNEL(bernoulli, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->x);
    int64_t n = x.numel, item = cuda_item(x.dtype);
    if (n <= 0) return PROA_OK;
    cuda_draws draws;
    PROA_TRY(cuda_draw(c, (uint64_t)(n + 3) / 4, &draws));
    char *to = cuda_look(a->out).data;
    const char *from = x.data;
    proa_dtype d = x.dtype;
    return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, bernoulli_kernel, to, from, d, item, n, draws);
}

__global__ void randperm_kernel(char *out, proa_dtype d, int64_t item, int64_t n, const char *from)
{
    for (CUDA_EACH(i, n)) cuda_store<int64_t>(out + i * item, d, ((const int64_t *)(const void *)from)[i]);
}

/* Fisher and Yates' shuffle goes step by step: the host's work, which waits for nothing. */
CUDA_KERNEL(randperm, CUDA_IS(a->out, CUDA_REALS))
{
    cuda_tensor out = cuda_look(a->out);
    int64_t n = out.numel, item = cuda_item(out.dtype);
    if (n <= 0) return PROA_OK;
    if (n > INT64_MAX / 8) return cuda_fail(PROA_ERR_OUT_OF_MEMORY, "randperm: n is too large");
    if (cuda_unrecordable(c)) return cuda_host->error();
    cuda_draws draws;
    PROA_TRY(cuda_draw(c, (uint64_t)(n + 1) / 2, &draws));
    random_numbers j = {draws.at, 0, 0};
    int64_t *v = (int64_t *)cuda_host->alloc((size_t)n * 8);
    if (!v) return cuda_host->error();
    for (int64_t i = 0; i < n; i++) v[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = (int64_t)random_below(random_bits64(j, (uint64_t)i), (uint64_t)i + 1), t = v[i];
        v[i] = v[k];
        v[k] = t;
    }
    char *wide = (char *)cuda_scratch(c, (size_t)n * 8), *to = out.data;
    proa_dtype d = out.dtype;
    proa_status status = wide ? cuda_write(c, wide, v, (size_t)n * 8) : cuda_host->error();
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, randperm_kernel, to, d, item, n, wide);
    cuda_scratch_free(c, wide);
    cuda_host->free(v);
    return status;
}

/* ---- poisson and multinomial ------------------------------------------------------------ */

__global__ void poisson_kernel(char *out, const char *x, proa_dtype d, int64_t item, int64_t n,
                               cuda_draws draws, cuda_report report)
{
    proa_rng_state at = cuda_drawn(draws);
    for (CUDA_EACH(i, n)) {
        double mean = cuda_load<double>(x + i * item, d);
        bool fine = mean >= 0 && mean < (double)INFINITY;
        if (!fine) cuda_raise(report, i, cuda_whole(mean), 0, INT64_MAX);
        cuda_store<double>(out + i * item, d, fine ? random_poisson(at, i, mean) : mean);
    }
}

CUDA_KERNEL(poisson, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->x);
    int64_t n = x.numel, item = cuda_item(x.dtype);
    if (n <= 0) return PROA_OK;
    cuda_draws draws;
    PROA_TRY(cuda_draw(c, (uint64_t)n * RANDOM_POISSON_BLOCKS, &draws));
    char *to = cuda_look(a->out).data;
    const char *from = x.data;
    proa_dtype d = x.dtype;
    return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, poisson_kernel, to, from, d, item, n, draws,
                       cuda_reports(c, "x"));
}

struct multinomial_job {
    const char *x;
    proa_dtype dtype;
    int64_t item, n, rows, want;
    double *work; /* [rows, n]: running sums, or −log(u) / weight */
    int64_t *out;
    cuda_draws draws;
    bool again;
    cuda_report weights, possible;
};

/* The least (key, index) pair above the pair drawn last; key: −log(u) / weight. */
struct multinomial_next {
    double key;
    int64_t place;
};
CUDA_FN bool multinomial_before(double key, int64_t place, double other, int64_t at)
{
    return key < other || (key == other && place < at);
}

/* One block per row: checks the weights, then fills `work`: with replacement (again) their running sums,
 * added in order as on the CPU; else each entry's key −log(u) / weight. */
__global__ void multinomial_weights_kernel(multinomial_job j)
{
    proa_rng_state at = cuda_drawn(j.draws);
    __shared__ double piece[CUDA_BLOCK];
    for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
        double *work = j.work + r * j.n, total = 0;
        int64_t possible = 0;
        for (int64_t first = 0; first < j.n; first += CUDA_BLOCK) {
            int64_t i = first + threadIdx.x;
            double weight = i < j.n ? cuda_load<double>(j.x + (r * j.n + i) * j.item, j.dtype) : 0;
            bool fine = weight >= 0 && weight < (double)INFINITY;
            if (!fine) cuda_raise(j.weights, r * j.n + i, cuda_whole(weight), 0, INT64_MAX);
            if (!fine) weight = 0;
            possible += weight > 0;
            if (!j.again) {
                double wait = -log1p(-random_uniform_at(at, (uint64_t)(r * j.n + i)));
                if (i < j.n) work[i] = weight > 0 ? wait / weight : (double)INFINITY;
                continue;
            }
            __syncthreads();
            piece[threadIdx.x] = weight;
            __syncthreads();
            if (threadIdx.x == 0)
                for (int k = 0; k < CUDA_BLOCK && first + k < j.n; k++) work[first + k] = total += piece[k];
        }
        possible = cuda_block_reduce<cuda_sum>(possible);
        int64_t least = j.again ? 1 : j.want;
        if (threadIdx.x == 0 && possible < least) cuda_raise(j.possible, r, possible, least, j.n);
    }
}

/* With replacement: the first index whose running sum exceeds u · total. */
__global__ void multinomial_again_kernel(multinomial_job j)
{
    proa_rng_state at = cuda_drawn(j.draws);
    for (CUDA_EACH(k, j.rows * j.want)) {
        const double *sums = j.work + k / j.want * j.n;
        double u = random_uniform_at(at, (uint64_t)k) * sums[j.n - 1];
        int64_t low = 0, high = j.n - 1;
        while (low < high) {
            int64_t mid = low + (high - low) / 2;
            if (sums[mid] > u) high = mid;
            else low = mid + 1;
        }
        while (low > 0 && sums[low] == sums[low - 1]) low--; /* rounding went past the last positive weight */
        j.out[k] = low;
    }
}

/* Without replacement: the indices of the `want` least keys, in order. */
__global__ void multinomial_once_kernel(multinomial_job j)
{
    __shared__ double keys[CUDA_BLOCK];
    __shared__ int64_t places[CUDA_BLOCK];
    for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
        const double *wait = j.work + r * j.n;
        double last = -1;
        int64_t at = -1;
        for (int64_t k = 0; k < j.want; k++) {
            double key = (double)INFINITY;
            int64_t place = j.n;
            for (int64_t i = threadIdx.x; i < j.n; i += CUDA_BLOCK)
                if (multinomial_before(last, at, wait[i], i) && multinomial_before(wait[i], i, key, place))
                    key = wait[i], place = i;
            __syncthreads();
            keys[threadIdx.x] = key;
            places[threadIdx.x] = place;
            __syncthreads();
            for (unsigned half = CUDA_BLOCK / 2; half > 0; half /= 2) {
                unsigned o = threadIdx.x + half;
                if (threadIdx.x < half &&
                    multinomial_before(keys[o], places[o], keys[threadIdx.x], places[threadIdx.x]))
                    keys[threadIdx.x] = keys[o], places[threadIdx.x] = places[o];
                __syncthreads();
            }
            last = keys[0];
            at = places[0];
            if (threadIdx.x == 0) j.out[r * j.want + k] = at < j.n ? at : 0;
        }
    }
}

CUDA_KERNEL(multinomial, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->x);
    multinomial_job j = {};
    j.n = x.dim(-1);
    j.rows = x.ndim == 2 ? x.shape[0] : 1;
    j.want = a->num_samples;
    j.again = a->replacement;
    int64_t draws = j.again ? j.want : j.n;
    if (j.rows == 0 || j.n == 0) return PROA_OK;
    j.x = x.data;
    j.dtype = x.dtype;
    j.item = cuda_item(x.dtype);
    j.out = cuda_look(a->out).as<int64_t>();
    PROA_TRY(cuda_draw(c, (uint64_t)j.rows * (uint64_t)draws / 2 + 1, &j.draws));
    j.weights = cuda_reports(c, "x");
    j.possible = cuda_reports(c, "x (how many places of a row are above 0)");
    j.work = (double *)cuda_scratch(c, (size_t)x.numel * sizeof(double));
    if (!j.work) return cuda_host->error();
    proa_status s = cuda_launch(c, cuda_blocks(j.rows, 1), CUDA_BLOCK, multinomial_weights_kernel, j);
    if (s == PROA_OK && j.again)
        s = cuda_launch(c, cuda_blocks(j.rows * j.want), CUDA_BLOCK, multinomial_again_kernel, j);
    if (s == PROA_OK && !j.again)
        s = cuda_launch(c, cuda_blocks(j.rows, 1), CUDA_BLOCK, multinomial_once_kernel, j);
    cuda_scratch_free(c, j.work);
    return s;
}
