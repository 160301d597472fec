/* Overhead of one op call: `add` of two one-element float32 tensors whose result is made and released, with
 * and without recording a gradient, against a C loop of malloc, add and free. The three alternate, so that
 * changes of clock and load affect all; prints medians. */
#include "timing.h"

#include <proa.h>

#include <stdlib.h>

enum { CALLS = 20000, ROUNDS = 301 };

/* The bare loop: what a C programmer would write for one heap-allocated sum. */
static double bare(const float *x, const float *y)
{
    double start = now_here();
    for (int i = 0; i < CALLS; i++) {
        float *sum = malloc(sizeof *sum);
        if (!sum) abort();
        *sum = *x + *y;
        opaque(sum);
        free(sum);
    }
    return (now_here() - start) / CALLS;
}

static double calls(proa_tensor *x, proa_tensor *y)
{
    double start = now_here();
    for (int i = 0; i < CALLS; i++) {
        proa_tensor *sum = proa_add(x, y);
        opaque(sum);
        proa_drop(sum);
    }
    return (now_here() - start) / CALLS;
}

int main(void)
{
    static double plain[ROUNDS], recorded[ROUNDS], loop[ROUNDS];
    float one = 1, two = 2;
    opaque(&one);
    opaque(&two);
    proa_set_threads(1);
    proa_tensor *x = proa_full(PROA_SHAPE(1), 1.0), *y = proa_full(PROA_SHAPE(1), 2.0);
    proa_tensor *leaf = proa_full(PROA_SHAPE(1), 1.0);
    proa_set_stop_gradient(leaf, false);
    for (int i = 0; i < ROUNDS; i++) {
        loop[i] = bare(&one, &two);
        plain[i] = calls(x, y);
        recorded[i] = calls(leaf, y);
    }
    double base = median(loop, ROUNDS), a = median(plain, ROUNDS), b = median(recorded, ROUNDS);
    printf("clock about %.2f GHz (a chain of dependent additions)\n", clock_ghz());
    printf("bare malloc + add + free         %7.1f ns\n", base * 1e9);
    printf("add, one element                 %7.1f ns   %5.2f x bare   target  80 ns at 3 GHz: %s\n", a * 1e9,
           a / base, verdict(a * 1e9 * clock_ghz() / 3 <= 80));
    printf("add, one element, recorded       %7.1f ns   %5.2f x bare   target 160 ns at 3 GHz: %s\n", b * 1e9,
           b / base, verdict(b * 1e9 * clock_ghz() / 3 <= 160));
    return proa_finish(stderr);
}
