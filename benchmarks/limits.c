/* Limits of this machine as plain C reaches them: multiply-adds, bandwidth of reads, copies, a triad and
 * Adam's update, fresh memory, malloc, a parallel region, a one-thread radix sort. Prints one JSON object;
 * OMP_NUM_THREADS sets the threads. The fastest of several rounds counts. With the argument `probe` it prints
 * multiply-adds and reads alone, as means over some tenth of a second; `quick` runs one round of all but the
 * triad. C library and OpenMP. */
#include "timing.h"
#include "triad.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { FLOATS = 1 << 24, ROUNDS = 15 }; /* 64 MiB an array */

/* One thread's part of [0, FLOATS), in whole lines. */
#if defined(_OPENMP)
#define PARALLEL _Pragma("omp parallel")
static int64_t part(int last)
{
    int64_t lines = FLOATS / 16;
    return lines * (omp_get_thread_num() + last) / omp_get_num_threads() * 16;
}
static int team(void) { return omp_get_max_threads(); }
#else
#define PARALLEL
static int64_t part(int last) { return last ? FLOATS : 0; }
static int team(void) { return 1; }
#endif

/* One function, compiled for each width of vectors and chosen when the program loads. */
#if defined(__x86_64__) && defined(__GNUC__)
#define LEVELS __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define LEVELS
#endif

/* Rounds of `probe` and `quick`, whose mean counts; 0: ROUNDS, of which the fastest counts. */
static int probes;

/* Rounds of what takes long. */
static int rounds_of(int usual) { return probes ? 1 : usual; }

#define BEST(seconds, ...)                                                    \
    do {                                                                      \
        double all_ = 0;                                                      \
        seconds = INFINITY;                                                   \
        for (int round_ = 0; round_ < (probes ? probes : ROUNDS); round_++) { \
            double start_ = now();                                            \
            __VA_ARGS__;                                                      \
            double took_ = now() - start_;                                    \
            all_ += took_;                                                    \
            if (took_ < seconds) seconds = took_;                             \
        }                                                                     \
        if (probes) seconds = all_ / probes;                                  \
    } while (0)

/* ---- arithmetic ------------------------------------------------------------------------ */

enum { CHAINS = 12, STEPS = 1 << 21 };

/* Twelve independent chains of multiply-adds: enough for two units of latency four to six. */
#define FMA_LOOP(name, target_, vector, set, fma, lanes_)                                           \
    target_ static float name(float a, float b, int *lanes)                                         \
    {                                                                                               \
        vector sum[CHAINS], va = set(a), vb = set(b);                                               \
        for (int c = 0; c < CHAINS; c++) sum[c] = set(b * (float)c);                                \
        for (int i = 0; i < STEPS; i++) {                                                           \
            _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) sum[c] = fma(sum[c], va, vb); \
        }                                                                                           \
        for (int c = 0; c < CHAINS; c++) opaque(&sum[c]);                                           \
        *lanes = lanes_;                                                                            \
        return b;                                                                                   \
    }
#define ONE(x) (x)
FMA_LOOP(fma_1, , float, ONE, fmaf, 1)
#if defined(__x86_64__)
FMA_LOOP(fma_8, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, _mm256_fmadd_ps, 8)
FMA_LOOP(fma_16, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, _mm512_fmadd_ps, 16)
#elif defined(__aarch64__)
#include <arm_neon.h>
#define FMA_NEON(sum, a, b) vfmaq_f32(b, sum, a)
FMA_LOOP(fma_4, , float32x4_t, vdupq_n_f32, FMA_NEON, 4)
#endif

static float multiply_add(int *lanes)
{
    float a = 0.999f, b = 0.001f;
    opaque(&a);
    opaque(&b);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return fma_16(a, b, lanes);
    if (__builtin_cpu_supports("fma")) return fma_8(a, b, lanes);
#elif defined(__aarch64__)
    return fma_4(a, b, lanes);
#endif
    return fma_1(a, b, lanes);
}

static double fma_gflops(void)
{
    double seconds;
    int lanes = 1;
    BEST(
        seconds, PARALLEL {
            int mine;
            multiply_add(&mine);
            lanes = mine;
        });
    return 2.0 * CHAINS * STEPS * lanes * team() / seconds * 1e-9;
}

/* ---- memory ---------------------------------------------------------------------------- */

static float *array(void)
{
    float *p = aligned_alloc(1 << 21, FLOATS * sizeof *p);
    if (!p) abort();
    madvise(p, FLOATS * sizeof *p, MADV_HUGEPAGE);
    for (int64_t i = 0; i < FLOATS; i++) p[i] = 1;
    return p;
}

LEVELS static float sum_part(const float *x, int64_t n)
{
    enum { LANES = 64 };
    float sum[LANES] = {0}, all = 0;
    for (int64_t i = 0; i < n; i += LANES)
        for (int k = 0; k < LANES; k++) sum[k] += x[i + k];
    for (int k = 0; k < LANES; k++) all += sum[k];
    return all;
}

TRIAD_TARGET static void copy_streamed(float *to, const float *from, int64_t n)
{
#if defined(__x86_64__)
    for (int64_t i = 0; i < n; i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
    _mm_sfence();
#else
    memcpy(to, from, (size_t)n * sizeof *to);
#endif
}

static double read_gbs(const float *x)
{
    double seconds;
    BEST(
        seconds, PARALLEL {
            int64_t from = part(0), until = part(1) / 64 * 64;
            float sum = sum_part(x + from / 64 * 64, until - from / 64 * 64);
            opaque(&sum);
        });
    return FLOATS * 4.0 / seconds * 1e-9;
}

static double copy_gbs(float *to, const float *x)
{
    double plain, streamed = INFINITY;
    BEST(
        plain, PARALLEL { memcpy(to + part(0), x + part(0), (size_t)(part(1) - part(0)) * sizeof *to); });
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx"))
        BEST(
            streamed, PARALLEL { copy_streamed(to + part(0), x + part(0), part(1) - part(0)); });
#endif
    return FLOATS * 8.0 / (plain < streamed ? plain : streamed) * 1e-9;
}

static double triad_gbs(float *to, const float *x, const float *y)
{
    double best = INFINITY;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        double took = triad_seconds(to, x, y, FLOATS, i % 2);
        if (took < best) best = took;
    }
    return FLOATS * 12.0 / best * 1e-9;
}

/* Adam's update of n parameters: four arrays read, three written. */
LEVELS static void adam_part(float *restrict p, float *restrict m, float *restrict v, const float *restrict g,
                             int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        m[i] = 0.9f * m[i] + 0.1f * g[i];
        v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
        p[i] -= 0.001f * m[i] / (sqrtf(v[i]) + 1e-8f);
    }
}

static double adam_gbs(float *p, float *m, float *v, const float *g)
{
    double seconds;
    BEST(
        seconds, PARALLEL {
            int64_t at = part(0);
            adam_part(p + at, m + at, v + at, g + at, part(1) - at);
        });
    return FLOATS * 28.0 / seconds * 1e-9;
}

/* Writing memory that the system has just handed out: page faults. */
static double first_touch_gbs(void)
{
    const size_t bytes = (size_t)1 << 28;
    double best = INFINITY;
    for (int i = 0; i < rounds_of(3); i++) {
        char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) abort();
        double start = now();
        memset(p, 1, bytes);
        opaque(p);
        double took = now() - start;
        if (took < best) best = took;
        munmap(p, bytes);
    }
    return (double)bytes / best * 1e-9;
}

/* ---- small things ------------------------------------------------------------------------ */

static double malloc_ns(void)
{
    enum { CALLS = 100000 };
    double seconds;
    BEST(
        seconds, for (int i = 0; i < CALLS; i++) {
            void *p = malloc(64);
            opaque(p);
            free(p);
        });
    return seconds / CALLS * 1e9;
}

static double fork_join_us(void)
{
    const int calls = probes ? 20 : 2000; /* on a busy machine each may take a millisecond */
    double seconds;
    BEST(seconds, for (int i = 0; i < calls; i++) { PARALLEL { opaque(&seconds);
}
});
return seconds / calls * 1e6;
}

/* Sorts n keys with their indices by four passes of eight bits, as an argsort of positive floats would. */
static void radix(uint64_t *items, uint64_t *other, int64_t n)
{
    for (int shift = 32; shift < 64; shift += 8) {
        int64_t start[256] = {0}, at = 0;
        for (int64_t i = 0; i < n; i++) start[items[i] >> shift & 255]++;
        for (int d = 0; d < 256; d++) {
            int64_t count = start[d];
            start[d] = at;
            at += count;
        }
        for (int64_t i = 0; i < n; i++) other[start[items[i] >> shift & 255]++] = items[i];
        uint64_t *swap = items;
        items = other;
        other = swap;
    }
}

static double radix_ms(void)
{
    enum { KEYS = 1000000 };
    uint64_t *items = malloc(KEYS * sizeof *items), *other = malloc(KEYS * sizeof *other);
    if (!items || !other) abort();
    double best = INFINITY;
    for (int round = 0; round < rounds_of(5); round++) {
        uint64_t state = 88172645463325252u; /* xorshift */
        for (uint64_t i = 0; i < KEYS; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            items[i] = state << 32 | i;
        }
        double start = now();
        radix(items, other, KEYS);
        opaque(items);
        double took = now() - start;
        if (took < best) best = took;
    }
    free(items);
    free(other);
    return best * 1e3;
}

/* The argument `probe`: prints the speed of two short loops, by which quiet.py detects other work. */
static int probe(void)
{
    float *a = array();
    probes = 8;
    double gflops = fma_gflops();
    probes = 30;
    printf("{\"fma_gflops\": %.1f, \"read_gbs\": %.2f}\n", gflops, read_gbs(a));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "probe") == 0) return probe();
    if (argc > 1 && strcmp(argv[1], "quick") == 0) probes = 1;
    float *a = array(), *b = array(), *c = array(), *d = array();
    printf("{\"clock_ghz\": %.2f, \"threads\": %d, \"fma_gflops\": %.1f, ", clock_ghz(), team(),
           fma_gflops());
    printf("\"read_gbs\": %.2f, \"copy_gbs\": %.2f, \"triad_gbs\": %.2f, ", read_gbs(a), copy_gbs(a, b),
           triad_gbs(a, b, c));
    printf("\"adam_gbs\": %.2f, \"first_touch_gbs\": %.2f, ", adam_gbs(a, b, c, d), first_touch_gbs());
    printf("\"malloc_ns\": %.2f, \"fork_join_us\": %.2f, \"radix_ms\": %.2f}\n", malloc_ns(), fork_join_us(),
           radix_ms());
    return 0;
}
