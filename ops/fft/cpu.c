/* FFTs on the CPU in the precision of the input: mixed-radix Stockham, and Bluestein's algorithm (1970) for
 * lengths with large prime factors. Compiled once per CPU level; static functions and the kernels only. */
#include "ops/fft/fft.h"
#include "kernels/rowwise.h"

#include <math.h>

/* FFT_BLOCK: elements per lane that are transposed together, so that they stay in the first-level cache;
 * FFT_RADIX: the largest prime radix that is computed by definition; FFT_CHUNK: lanes that it takes at a
 * time, four vectors of 64 bytes; FFT_PASSES: most factors of a 63-bit number; FFT_GRAIN: additions worth a
 * thread, about 50 µs. */
enum { FFT_BLOCK = 32, FFT_RADIX = 64, FFT_CHUNK = 64, FFT_PASSES = 64, FFT_GRAIN = 1 << 18 };

typedef enum fft_form { FFT_C2C, FFT_R2C, FFT_R2C_WHOLE, FFT_C2R } fft_form;

typedef struct fft_root {
    double re, im;
} fft_root;

/* exp(−2πi·k/n) to the last bit of double or nearly so: the angle is taken in the nearest octant. */
static fft_root fft_root_of(int64_t k, int64_t n)
{
    const double turn = 6.28318530717958647693;
    k %= n;
    int64_t eighths = 8 * k / n;        /* octant */
    int64_t rest = 8 * k - eighths * n; /* in units of 1/(8n) turns */
    bool mirrored = eighths % 2;
    if (mirrored) rest = n - rest;
    double angle = turn * (double)rest / (8.0 * (double)n);
    double c = cos(angle), s = sin(angle);
    switch (eighths) {
    case 0: return (fft_root){c, -s};
    case 1: return (fft_root){s, -c};
    case 2: return (fft_root){-s, -c};
    case 3: return (fft_root){-c, -s};
    case 4: return (fft_root){-c, s};
    case 5: return (fft_root){-s, c};
    case 6: return (fft_root){s, c};
    default: return (fft_root){c, s};
    }
}

/* Cost of a transform per element, in butterfly additions, for the choice between algorithms. */
static double fft_cost(int64_t n)
{
    double cost = 0;
    for (int64_t p = 2; p * p <= n; p++)
        for (; n % p == 0; n /= p) cost += p <= 5 ? (double)p : 1.5 * (double)p;
    return n > 1 ? cost + (n <= 5 ? (double)n : 1.5 * (double)n) : cost;
}

/* The smallest number from n on without prime factors above 5. */
static int64_t fft_good_size(int64_t n)
{
    int64_t best = 1;
    while (best < n) best *= 2;
    for (int64_t fives = 1; fives < best; fives *= 5)
        for (int64_t threes = fives; threes < best; threes *= 3) {
            int64_t size = threes;
            while (size < n) size *= 2;
            if (size < best) best = size;
        }
    return best;
}

/* Radices of n, eights first; −1 where Bluestein's algorithm is cheaper. */
static int fft_factors(int64_t n, int *radix)
{
    int count = 0, twos = 0;
    double direct = fft_cost(n);
    if (n > 50) {
        int64_t m = fft_good_size(2 * n - 1);
        if (3 * fft_cost(m) * (double)m < direct * (double)n) return -1;
    }
    while (n % 2 == 0) n /= 2, twos++;
    for (; twos >= 3 && twos != 4; twos -= 3) radix[count++] = 8;
    for (; twos >= 2; twos -= 2) radix[count++] = 4;
    if (twos) radix[count++] = 2;
    for (int p = 3; n > 1; p += 2) {
        if (p > FFT_RADIX) return -1;
        for (; n % p == 0; n /= p) radix[count++] = p;
    }
    return count;
}

/* Lines that are transformed together: a vector of them if they are contiguous, two vectors if they are
 * strided; fewer where the panel would outgrow half of an L2 cache of 1 MiB, down to one contiguous line or
 * eight strided ones. */
static int64_t fft_lanes(int64_t n, int64_t inner, int64_t all, int item)
{
    int64_t lanes = inner > 1 ? 128 / item : 64 / item;
    while (lanes > 1 && 4 * n * lanes * item > 512 * 1024) lanes /= 2;
    if (inner > 1 && lanes < 8) lanes = 8;
    if (inner == 1 && lanes < 64 / item) lanes = 1;
    return lanes < all ? lanes : all;
}

#define T float
#include "ops/fft/passes.inc"
#include "ops/fft/plan.inc"
#include "ops/fft/axis.inc"
#undef T
#define T double
#include "ops/fft/passes.inc"
#include "ops/fft/plan.inc"
#include "ops/fft/axis.inc"
#undef T

/* ---- kernels: a state is the plans of all axes ------------------------------------------- */

typedef struct fft_state {
    fft_state_float *single;
    fft_state_double *wide;
} fft_state;

static void fft_release(void *state)
{
    fft_state *s = state;
    if (!s) return;
    fft_state_free_float(s->single);
    fft_state_free_double(s->wide);
    proa__free(s);
}

static proa_status fft_prepare(const proa_tensor *whole, proa_ints axes, bool real, void **state)
{
    fft_state *s = proa__calloc(sizeof *s);
    if (!s) return proa_error();
    *state = s;
    if (whole->dtype == PROA_F64 || whole->dtype == PROA_C128)
        s->wide = fft_state_new_double(whole, axes, real);
    else s->single = fft_state_new_float(whole, axes, real);
    if (s->wide || s->single) return PROA_OK;
    fft_release(s);
    *state = NULL;
    return proa_error();
}

static proa_status fft_transform(const void *state, fft_form form, const proa_tensor *x, proa_tensor *out,
                                 proa_ints axes, int norm, bool forward)
{
    const fft_state *s = state;
    if (out->numel == 0) return PROA_OK;
    if (s->wide) return fft_transform_double(s->wide, form, x, out, axes, norm, forward);
    return fft_transform_float(s->single, form, x, out, axes, norm, forward);
}

static proa_status prepare_c2c(const void *args, void **state)
{
    const proa_fft_c2c_args *a = args;
    return fft_prepare(a->x, a->axes, false, state);
}

static proa_status prepare_r2c(const void *args, void **state)
{
    const proa_fft_r2c_args *a = args;
    return fft_prepare(a->x, a->axes, true, state);
}

static proa_status prepare_c2r(const void *args, void **state)
{
    const proa_fft_c2r_args *a = args;
    return fft_prepare(a->out, a->axes, true, state);
}

PROA_KERNEL_PREPARED(fft_c2c_cpu, fft_c2c, prepare_c2c, fft_release)
{
    return fft_transform(run->state, FFT_C2C, a->x, a->out, a->axes, (int)a->norm, a->forward);
}

PROA_KERNEL_PREPARED(fft_r2c_cpu, fft_r2c, prepare_r2c, fft_release)
{
    return fft_transform(run->state, a->onesided ? FFT_R2C : FFT_R2C_WHOLE, a->x, a->out, a->axes,
                         (int)a->norm, a->forward);
}

PROA_KERNEL_PREPARED(fft_c2r_cpu, fft_c2r, prepare_c2r, fft_release)
{
    return fft_transform(run->state, FFT_C2R, a->x, a->out, a->axes, (int)a->norm, a->forward);
}
