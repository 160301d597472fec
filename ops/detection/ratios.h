/* Collects the distinct aspect ratios of prior boxes, for the CPU and for GPUs. Plain C, uses nothing. */
#ifndef PROA_OPS_DETECTION_RATIOS_H
#define PROA_OPS_DETECTION_RATIOS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { DETECTION_RATIOS = 64 };

/* Appends `ratio`, and with `flip` its inverse, to the n ratios in `to`, unless `to` has it already (within
 * 1e-6). Returns the new number of ratios; the caller makes sure that `to` has space for two more. */
static inline __attribute__((unused)) int64_t detection_add_ratio(double *to, int64_t n, double ratio,
                                                                  bool flip)
{
    for (int64_t k = 0; k < n; k++)
        if (fabs(ratio - to[k]) < 1e-6) return n;
    to[n++] = ratio;
    if (flip) to[n++] = (double)(float)(1 / ratio);
    return n;
}

#endif
