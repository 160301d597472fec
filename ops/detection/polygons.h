/* Overlaps of boxes and of polygons in double, for kernels of non-maximum suppression. May use core only. */
#ifndef PROA_OPS_DETECTION_POLYGONS_H
#define PROA_OPS_DETECTION_POLYGONS_H

#include "ops/detection/suppress.h"

#include <math.h>

enum { POLYGON_CORNERS = 16, POLYGON_CUTS = 4 * POLYGON_CORNERS * (POLYGON_CORNERS + 1) };

/* Corners x, y, x, y, …; the last side leads back to the first. */
typedef struct polygon {
    const double *at;
    int corners;
} polygon;

static inline const double *corner(polygon p, int i) { return p.at + 2 * (i % p.corners); }

static inline double polygon_area(polygon p)
{
    double sum = 0;
    for (int i = 0; i < p.corners; i++)
        sum += corner(p, i)[0] * corner(p, i + 1)[1] - corner(p, i)[1] * corner(p, i + 1)[0];
    return fabs(sum) / 2;
}

static inline void sort_numbers(double *v, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && v[k] < v[k - 1]; k--) {
            double t = v[k];
            v[k] = v[k - 1], v[k - 1] = t;
        }
}

/* Heights at which sides of two polygons cross one another, appended to v. */
static inline int add_crossings(polygon a, polygon b, double *v, int n)
{
    for (int i = 0; i < a.corners; i++)
        for (int k = 0; k < b.corners; k++) {
            const double *p = corner(a, i), *q = corner(a, i + 1), *r = corner(b, k), *s = corner(b, k + 1);
            double px = q[0] - p[0], py = q[1] - p[1], rx = s[0] - r[0], ry = s[1] - r[1];
            double across = px * ry - py * rx;
            double t = ((r[0] - p[0]) * ry - (r[1] - p[1]) * rx) / across;
            if (across != 0 && t > 0 && t < 1) v[n++] = p[1] + t * py;
        }
    return n;
}

/* The crossings of a polygon's sides with the height y, ascending. */
static inline int passes(polygon p, double y, double *x)
{
    int n = 0;
    for (int i = 0; i < p.corners; i++) {
        const double *a = corner(p, i), *b = corner(p, i + 1);
        if ((a[1] <= y) != (b[1] <= y)) x[n++] = a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
    }
    sort_numbers(x, n);
    return n;
}

/* The area that two polygons share, by the even-odd rule: between neighbouring heights no sides cross, so
 * that the shared width is linear and its middle tells the area. */
static inline double polygon_shared(polygon a, polygon b)
{
    double heights[POLYGON_CUTS], left[POLYGON_CORNERS], right[POLYGON_CORNERS], sum = 0;
    int n = 0;
    for (int i = 0; i < a.corners; i++) heights[n++] = corner(a, i)[1];
    for (int i = 0; i < b.corners; i++) heights[n++] = corner(b, i)[1];
    n = add_crossings(a, b, heights, n);
    n = add_crossings(a, a, heights, n);
    n = add_crossings(b, b, heights, n);
    sort_numbers(heights, n);
    for (int h = 0; h + 1 < n; h++) {
        double y = (heights[h] + heights[h + 1]) / 2, wide = 0;
        int of_a = passes(a, y, left), of_b = passes(b, y, right);
        for (int i = 0; i + 1 < of_a; i += 2)
            for (int k = 0; k + 1 < of_b; k += 2) {
                double low = left[i] > right[k] ? left[i] : right[k];
                double high = left[i + 1] < right[k + 1] ? left[i + 1] : right[k + 1];
                if (high > low) wide += high - low;
            }
        sum += wide * (heights[h + 1] - heights[h]);
    }
    return sum;
}

/* Intersection over union of boxes (4 sides) or polygons; `more` is added to a box's side lengths. */
static inline __attribute__((unused)) double overlap_of(const double *a, const double *b, int sides,
                                                        double more)
{
    if (sides == 4) return overlap_double(a, b, more);
    polygon p = {a, sides / 2}, q = {b, sides / 2};
    double one = polygon_area(p), other = polygon_area(q), both = polygon_shared(p, q);
    return both > 0 && one > 0 && other > 0 ? both / (one + other - both) : 0;
}

#endif
