/* Compares kernels with the machine's limits: float32 matmul and convolution with oneDNN called directly,
 * large elementwise ops with the faster of a plain and a non-temporal triad. Both sides of a ratio are
 * measured alternately, on the same threads; the fastest round of each counts, to exclude disturbances.
 * Outputs come from the allocator's cache, as in a training loop. */
#include "direct_onednn.h"
#include "timing.h"
#include "triad.h"

#include <proa.h>

enum { ROUNDS = 25 };

/* ---- matmul and conv ------------------------------------------------------------------- */

typedef struct duel {
    const char *what;
    proa_tensor *x, *w;
    int is_conv;
    double flops;
    direct direct;
} duel;

static double proa_seconds(const duel *d)
{
    double start = now();
    PROA_SCOPE {
        if (d->is_conv) opaque(proa_conv2d(d->x, d->w, PROA_NONE, .padding = PROA_INTS(1, 1)));
        else opaque(proa_matmul(d->x, d->w));
    }
    return now() - start;
}

static void report(const duel *d, double ours, double theirs, const char *against, double target)
{
    printf("%-34s %8.3f ms %7.1f GFLOP/s   %5.2f x %s", d->what, ours * 1e3, d->flops / ours * 1e-9,
           theirs / ours, against);
    if (target > 0) printf("   target %.2f: %s", target, verdict(theirs / ours >= target));
    printf("\n");
}

static void fight(duel *d, const char *against, double target)
{
    double ours[ROUNDS], theirs[ROUNDS];
    if (!d->direct.ready) {
        double t[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) t[i] = proa_seconds(d);
        double each = fastest(t, ROUNDS);
        printf("%-34s %8.3f ms %7.1f GFLOP/s   (no oneDNN in this build)\n", d->what, each * 1e3,
               d->flops / each * 1e-9);
        return;
    }
    proa_seconds(d);
    direct_seconds(&d->direct);
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = proa_seconds(d);
        theirs[i] = direct_seconds(&d->direct);
    }
    report(d, fastest(ours, ROUNDS), fastest(theirs, ROUNDS), against, target);
    direct_free(&d->direct);
}

static void matmul(int64_t n)
{
    proa_tensor *x = proa_gaussian(PROA_SHAPE(n, n)), *y = proa_gaussian(PROA_SHAPE(n, n));
    duel d = {"matmul 1024 x 1024 x 1024, float32", x, y, 0, 2.0 * (double)n * (double)n * (double)n, {0}};
    direct_matmul(&d.direct, n, proa_data(x), proa_data(y));
    fight(&d, "oneDNN directly", 0.95);
}

/* plain: oneDNN, too, starts and ends in plain NCHW memory, as Proa's caller does; otherwise all tensors are
 * stored in the layouts that oneDNN chooses, which is the bound for a network in blocked layout. */
static void conv(int64_t batch, int64_t channels, int64_t side, int plain)
{
    proa_tensor *x = proa_gaussian(PROA_SHAPE(batch, channels, side, side));
    proa_tensor *w = proa_gaussian(PROA_SHAPE(channels, channels, 3, 3));
    double flops = 2.0 * 9.0 * (double)(batch * channels * channels * side * side);
    char what[64];
    snprintf(what, sizeof what, "conv 3 x 3, %d x %d x %d x %d", (int)batch, (int)channels, (int)side,
             (int)side);
    duel d = {what, x, w, 1, flops, {0}};
    int64_t dims[] = {batch, channels, side, side};
    direct_conv3x3(&d.direct, dims, proa_data(x), proa_data(w), plain);
    fight(&d, plain ? "oneDNN directly, plain NCHW" : "oneDNN directly, blocked", plain ? 0.95 : 0);
}

/* ---- elementwise ----------------------------------------------------------------------- */

enum { ELEMENTS = 1 << 24, PASSES = 101 }; /* 64 MiB a tensor: beyond the caches of one socket */

static double seconds_of(proa_tensor *x, proa_tensor *y)
{
    double start = now();
    PROA_SCOPE {
        opaque(y ? proa_add(x, y) : proa_relu(x));
    }
    return now() - start;
}

static void bandwidth(void)
{
    proa_tensor *x = proa_full(PROA_SHAPE(ELEMENTS), 1.5), *y = proa_full(PROA_SHAPE(ELEMENTS), 0.5);
    proa_tensor *to = proa_full(PROA_SHAPE(ELEMENTS), 0.0);
    double add[PASSES], relu[PASSES], plain[PASSES], streamed[PASSES];
    const double bytes = sizeof(float) * (double)ELEMENTS;
    for (int warm = 0; warm < 2; warm++) seconds_of(x, y), seconds_of(x, NULL);
    for (int i = 0; i < PASSES; i++) {
        add[i] = seconds_of(x, y);
        plain[i] = triad_seconds(proa_data(to), proa_data(x), proa_data(y), ELEMENTS, 0);
        relu[i] = seconds_of(x, NULL);
        streamed[i] = triad_seconds(proa_data(to), proa_data(x), proa_data(y), ELEMENTS, 1);
    }
    double p = 3 * bytes / fastest(plain, PASSES), s = 3 * bytes / fastest(streamed, PASSES),
           best = p > s ? p : s;
    double a = 3 * bytes / fastest(add, PASSES), r = 2 * bytes / fastest(relu, PASSES);
    printf("triad, plain stores                %7.2f GB/s\n", p * 1e-9);
    printf("triad, streaming stores            %7.2f GB/s\n", s * 1e-9);
    printf("add, 64 MiB tensors                %7.2f GB/s   %5.2f x the better triad   target 0.85: %s\n",
           a * 1e-9, a / best, verdict(a / best >= 0.85));
    printf("relu, 64 MiB tensors               %7.2f GB/s   %5.2f x the better triad   target 0.85: %s\n",
           r * 1e-9, r / best, verdict(r / best >= 0.85));
}

int main(void)
{
    printf("%s\n", proa_build_info());
    PROA_SCOPE {
        matmul(1024);
    }
    PROA_SCOPE {
        conv(16, 64, 56, 1);
    }
    PROA_SCOPE {
        conv(16, 64, 56, 0);
    }
    PROA_SCOPE {
        conv(16, 256, 14, 1);
    }
    PROA_SCOPE {
        conv(16, 256, 14, 0);
    }
    PROA_SCOPE {
        bandwidth();
    }
    return proa_finish(stderr);
}
