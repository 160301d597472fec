/* prroi_pool and its gradient: integrals of bilinear interpolations are products of weights by row and by
 * column. The unit of work is forward a region, backward an image. May use core and kernels only. */
#include "ops/regions/owners.h"

#include <math.h>

/* Pixels [from, to) that a cell covers along an axis. */
typedef struct precise_span {
    int64_t from, to;
    double low, high;
    double *weight;       /* integral of the pixel's hat function over the cell */
    double *first, *last; /* the hat function at the cell's edges; for gradients of boxes */
} precise_span;

typedef struct precise_job {
    const void *x, *boxes, *d_out;
    void *out, *d_x, *d_boxes;
    const roi_owners *owners;
    int64_t batch, channels, height, width, n, rows, columns;
    double scale;
} precise_job;

/* ∫ of max(0, 1 − |t|) up to v. */
static double hat_integral(double v)
{
    if (v <= -1) return 0;
    if (v >= 1) return 1;
    return v < 0 ? (v + 1) * (v + 1) / 2 : 1 - (1 - v) * (1 - v) / 2;
}

static double hat(double v) { return fabs(v) < 1 ? 1 - fabs(v) : 0; }

/* Cell k of `cells` of a side from `low` to `high`, along an axis of n pixels. */
static void span_of(double low, double high, int64_t k, int64_t cells, int64_t n, precise_span *s)
{
    double cell = (high > low ? high - low : 0) / (double)cells;
    s->low = low + cell * (double)k, s->high = s->low + cell;
    s->from = bounded(ceil(s->low - 1), n), s->to = bounded(floor(s->high + 1) + 1, n);
    for (int64_t i = s->from; i < s->to; i++) {
        double before = s->low - (double)i, behind = s->high - (double)i;
        s->weight[i - s->from] = hat_integral(behind) - hat_integral(before);
        s->first[i - s->from] = hat(before), s->last[i - s->from] = hat(behind);
    }
}

/* Memory of two spans; NULL on error. */
static double *precise_scratch(const precise_job *j, precise_span *down, precise_span *across)
{
    size_t bytes;
    if (!proa__mul_size((size_t)j->height + (size_t)j->width + 1, 3 * sizeof(double), &bytes)) return NULL;
    double *at = proa_scratch(bytes);
    if (!at) return NULL;
    down->weight = at, down->first = at + j->height, down->last = at + 2 * j->height;
    at += 3 * j->height;
    across->weight = at, across->first = at + j->width, across->last = at + 2 * j->width;
    return down->weight;
}

#define T float
#include "ops/regions/cpu/precise.inc"
#undef T
#define T double
#include "ops/regions/cpu/precise.inc"

#define PRECISE_JOB(a)                                                                       \
    {                                                                                        \
        .x = (a)->x->data, .boxes = (a)->boxes->data, .batch = (a)->x->shape[0],             \
        .channels = (a)->x->shape[1], .height = (a)->x->shape[2], .width = (a)->x->shape[3], \
        .n = (a)->boxes->shape[0], .rows = (a)->pooled_height, .columns = (a)->pooled_width, \
        .scale = (float)(a)->spatial_scale, .owners = &owners                                \
    }

PROA_KERNEL(prroi_pool_cpu, prroi_pool)
{
    roi_owners owners;
    precise_job job = PRECISE_JOB(a);
    PROA_TRY(owners_of("prroi_pool", a->boxes_num, a->offsets, job.batch, job.n, &owners));
    job.out = a->out->data;
    proa__parallel(job.n, 1, a->x->dtype == PROA_F64 ? precise_regions_double : precise_regions_float, &job);
    proa_scratch_free(owners.first);
    return proa_error();
}

PROA_KERNEL(prroi_pool_grad_cpu, prroi_pool_grad)
{
    roi_owners owners;
    precise_job job = PRECISE_JOB(a);
    PROA_TRY(owners_of("prroi_pool_grad", a->boxes_num, a->offsets, job.batch, job.n, &owners));
    job.d_out = a->d_out->data, job.d_x = a->d_x->data, job.d_boxes = a->d_boxes->data;
    proa__parallel(job.batch, 1, a->x->dtype == PROA_F64 ? precise_back_double : precise_back_float, &job);
    proa_scratch_free(owners.first);
    return proa_error();
}
