/* Collects statistics of activations and searches the scale of least Kullback-Leibler divergence. May use
 * core. */
#include "calibrate.h"

#include <math.h>

/* The elements of a float32 tensor, in the scope; NULL on error. */
static const float *elements(proa_tensor *t, int64_t *n)
{
    *n = proa_numel(t);
    size_t bytes = (size_t)*n * sizeof(float);
    float *v = proa_scope_alloc(bytes + 1);
    return v && (*n == 0 || proa_copy_out(t, v, bytes) == PROA_OK) ? v : NULL;
}

proa_status proa__observe_largest(proa__observed *o, proa_tensor *t)
{
    PROA_SCOPED;
    int64_t n;
    double largest = 0;
    const float *v = elements(t, &n);
    if (!v) return proa_error();
    for (int64_t i = 0; i < n; i++)
        if (fabs((double)v[i]) > largest) largest = fabs((double)v[i]);
    o->sum += largest;
    if (largest > o->largest) o->largest = largest;
    return PROA_OK;
}

proa_status proa__observe_bins(proa__observed *o, proa_tensor *t)
{
    PROA_SCOPED;
    int64_t n;
    const float *v = elements(t, &n);
    if (!o->bins) o->bins = proa__calloc(PROA__BINS * sizeof *o->bins);
    if (!v || !o->bins) return proa_error();
    double per_unit = o->largest > 0 ? PROA__BINS / o->largest : 0;
    for (int64_t i = 0; i < n; i++) {
        double at = fabs((double)v[i]) * per_unit;
        if (at >= 0) o->bins[at < PROA__BINS ? (int)at : PROA__BINS - 1]++;
    }
    return PROA_OK;
}

/* Divergence of the first i bins, whose last one takes the `outliers` beyond it, from n levels of i / n bins
 * each. A level's mass is shared equally by its bins that are not empty. */
static double divergence(const double *bins, int i, int n, double inside, double outliers)
{
    double sum = 0, total = inside + outliers;
    for (int level = 0; level < n; level++) {
        int from = level * (i / n), to = level == n - 1 ? i : from + i / n, filled = 0;
        double mass = 0;
        for (int k = from; k < to; k++) mass += bins[k], filled += bins[k] > 0;
        for (int k = from; k < to; k++) {
            double p = bins[k] + (k == i - 1 ? outliers : 0);
            if (p > 0) sum += p * (log(inside * p) - log(total * mass / filled));
        }
    }
    return sum / total;
}

double proa__scale_of_divergence(const proa__observed *o, int64_t bits)
{
    const int first = (PROA__BINS - 1) / 2, n = (1 << (bits - 1)) - 1;
    double total = 0, inside = 0, least = 0;
    int at = 0;
    for (int i = 0; i < PROA__BINS; i++) total += o->bins[i];
    for (int i = 0; i < PROA__BINS; inside += o->bins[i++]) {
        if (i < first || o->bins[i - 1] <= 0) continue;
        double d = divergence(o->bins, i, n, inside, total - inside);
        if (at && d >= least) continue;
        least = d;
        at = i;
    }
    if (!at)
        for (at = first; at > 0 && o->bins[at] <= 0;) at--;
    return (at + 0.5) * o->largest / PROA__BINS;
}
