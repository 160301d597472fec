/* Non-maximum suppression for kernels: candidates in order of score, and their overlaps. May use core
 * only. */
#ifndef PROA_OPS_DETECTION_SUPPRESS_H
#define PROA_OPS_DETECTION_SUPPRESS_H

#include "core/internal.h"

/* A box with its score, for sorting. */
typedef struct candidate {
    double score;
    int64_t box;   /* index of the box, in the caller's numbering */
    int64_t label; /* its class */
} candidate;

/* Sorts by descending score, stably (merge sort; `scratch` has space for n entries). */
static inline __attribute__((unused)) void sort_best(candidate *c, candidate *scratch, int64_t n)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            int64_t mid = low + width < n ? low + width : n, high = low + 2 * width < n ? low + 2 * width : n;
            int64_t i = low, k = mid;
            for (int64_t to = low; to < high; to++)
                scratch[to] = i < mid && (k >= high || !(c[k].score > c[i].score)) ? c[i++] : c[k++];
        }
        memcpy(c, scratch, (size_t)n * sizeof *c);
    }
}

/* Intersection over union of boxes [x1, y1, x2, y2]; `more` is added to each side length (1 for pixel
 * coordinates). */
#define SUPPRESS_OVERLAP(T)                                                                     \
    static inline __attribute__((unused)) T overlap_##T(const T *a, const T *b, T more)         \
    {                                                                                           \
        if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return 0;                 \
        T w = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]) + more;                 \
        T h = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]) + more;                 \
        T one = a[2] < a[0] || a[3] < a[1] ? 0 : (a[2] - a[0] + more) * (a[3] - a[1] + more);   \
        T other = b[2] < b[0] || b[3] < b[1] ? 0 : (b[2] - b[0] + more) * (b[3] - b[1] + more); \
        return w * h / (one + other - w * h);                                                   \
    }
SUPPRESS_OVERLAP(float)
SUPPRESS_OVERLAP(double)
#undef SUPPRESS_OVERLAP

#endif
