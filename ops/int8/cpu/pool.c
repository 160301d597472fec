/* CPU kernels of max and average pooling of 8-bit integers. Compiled once per CPU level; static functions and
 * the kernel only. */
#include "ops/pool/geometry.h"
#include "impl/int8.h"

#include <math.h>

/* Bytes that are worth a thread. */
enum { GRAIN = 1 << 17 };

typedef struct pooling {
    pool_geometry g;
    const char *x;
    char *out;
} pooling;

/* Mean pooling: the result is mean · scale, rounded to [low, high] unless it is float32. */
typedef struct averaging {
    pooling p;
    proa_dtype dtype;
    float scale, low, high;
} averaging;

/* Channels whose sums are kept at a time. */
enum { SUMS = 256 };

/* Number of elements that the window of output (i, j) is divided by. */
static float window_size(const pool_geometry *g, int64_t i, int64_t j, int64_t *y0, int64_t *y1, int64_t *x0,
                         int64_t *x1)
{
    int64_t length = pool_window(g, 1, i, y0, y1) * pool_window(g, 2, j, x0, x1);
    return (float)(g->exclusive || g->adaptive ? (*y1 - *y0) * (*x1 - *x0) : length);
}

static void put_means(const averaging *v, const int32_t *sums, float size, int64_t at, int64_t n)
{
    const float by = size > 0 ? v->scale / size : 0;
    if (v->dtype == PROA_F32) {
        float *out = (float *)(void *)v->p.out + at;
        for (int64_t k = 0; k < n; k++) out[k] = (float)sums[k] * by;
        return;
    }
    uint8_t *out = (uint8_t *)v->p.out + at;
    for (int64_t k = 0; k < n; k++) {
        float y = (float)sums[k] * by;
        y = y > v->low ? y : v->low;
        out[k] = (uint8_t)(int32_t)rintf(y < v->high ? y : v->high);
    }
}

#define T int8_t
#define FN(name) name##_signed
#include "pool.inc"
#undef T
#undef FN
#define T uint8_t
#define FN(name) name##_unsigned
#include "pool.inc"

PROA_KERNEL(max_pool2d_int8_cpu, max_pool2d_int8)
{
    pooling p = {.x = a->x->data, .out = a->out->data};
    PROA_TRY(proa__pool_geometry(&MAX_INT8_PARAMS(a), &p.g));
    if (a->out->numel == 0) return PROA_OK;
    bool is_signed = a->x->dtype == PROA_I8;
    int64_t parts = p.g.channels_last ? p.g.batch * p.g.out[1] : p.g.batch * p.g.channels;
    int64_t work = a->out->numel / parts * p.g.kernel[1] * p.g.kernel[2];
    proa__parallel(parts, 1 + GRAIN / (work + 1),
                   p.g.channels_last ? (is_signed ? lines_signed : lines_unsigned)
                                     : (is_signed ? planes_signed : planes_unsigned),
                   &p);
    return PROA_OK;
}

PROA_KERNEL(avg_pool2d_int8_cpu, avg_pool2d_int8)
{
    averaging v = {.p = {.x = a->x->data, .out = a->out->data},
                   .dtype = a->dtype,
                   .scale = (float)a->scale,
                   .low = a->dtype == PROA_U8 ? 0 : -128,
                   .high = (float)a->high};
    PROA_TRY(proa__pool_geometry(&AVG_INT8_PARAMS(a), &v.p.g));
    if (a->out->numel == 0) return PROA_OK;
    const pool_geometry *g = &v.p.g;
    bool is_signed = a->x->dtype == PROA_I8;
    int64_t parts = g->channels_last ? g->batch * g->out[1] : g->batch * g->channels;
    int64_t work = a->x->numel / parts;
    proa__parallel(parts, 1 + GRAIN / (work + 1),
                   g->channels_last ? (is_signed ? mean_lines_signed : mean_lines_unsigned)
                                    : (is_signed ? mean_planes_signed : mean_planes_unsigned),
                   &v);
    return PROA_OK;
}
