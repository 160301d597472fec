/* Kernels of interpolate and its gradient. Positions and weights are float32, as Paddle has them.
 * May use core only. */
#include "ops/rows.h"
#include "ops/vision/vision.h"
#include "ops/wide.h"

#include <math.h>

/* Along one axis: `n` source places and weights an output. */
typedef struct axis_taps {
    int n;
    int64_t in, out;
    int64_t *at;
    float *weight;
} axis_taps;

/* Images as [outer, depth, height, width, inner]; absent axes are of length 1. */
typedef struct resize_job {
    int64_t outer, inner;
    axis_taps axis[3];
    void *to;
    const void *from;
} resize_job;

#define T float
#include "cpu_interpolate.inc"
#undef T
#define T double
#include "cpu_interpolate.inc"
#undef T

/* Keys' cubic at distance t from the second of four taps. */
static void cubic_weights(float t, float *w)
{
    const float a = -0.75f;
    float far = t + 1, near = 1 - t, beyond = 2 - t;
    w[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * near - (a + 3)) * near * near + 1;
    w[3] = ((a * beyond - 5 * a) * beyond + 8 * a) * beyond - 4 * a;
}

static int64_t clamped(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static void fill_taps(axis_taps *x, const vision_resize *r, float ratio)
{
    bool middle = r->align_mode == 0 && !r->align_corners;
    for (int64_t i = 0; i < x->out; i++) {
        int64_t *at = x->at + i * x->n;
        float *w = x->weight + i * x->n, half = ratio * ((float)i + 0.5f) - 0.5f, edge = ratio * (float)i;
        if (x->n == 1) {
            at[0] = clamped((int64_t)(r->align_corners ? edge + 0.5f : edge), x->in);
            w[0] = 1;
        } else if (x->n == 2) {
            float from = middle ? (half > 0 ? half : 0) : edge;
            at[0] = clamped((int64_t)from, x->in);
            at[1] = clamped(at[0] + 1, x->in);
            w[1] = from - (float)at[0];
            w[0] = 1 - w[1];
        } else {
            float from = r->align_corners ? edge : half, whole = floorf(from);
            cubic_weights(from - whole, w);
            for (int k = 0; k < 4; k++) at[k] = clamped((int64_t)whole - 1 + k, x->in);
        }
    }
}

/* in / out of one axis, or what the scale says. */
static float step_of(const vision_resize *r, int axis, int64_t in, int64_t out)
{
    int64_t count = 0;
    if (out <= 1) return 0;
    if (r->align_corners) return (float)(in - 1) / (float)(out - 1);
    if (proa__ints_count(r->who, "size", r->size, &count) || count) return (float)in / (float)out;
    return 1.0f / (float)r->scale->at[r->scale->count == 1 ? 0 : axis];
}

static void job_end(resize_job *j)
{
    for (int k = 0; k < 3; k++) {
        proa_scratch_free(j->axis[k].at);
        proa_scratch_free(j->axis[k].weight);
    }
}

static proa_status job_begin(resize_job *j, const vision_resize *r, int ndim, const int64_t *in,
                             const int64_t *out)
{
    int spatial = ndim - 2, last = proa__channels_last(r->format), first = last ? 1 : 2;
    int taps = r->mode == PROA_INTERP_METHOD_NEAREST ? 1 : r->mode == PROA_INTERP_METHOD_BICUBIC ? 4 : 2;
    memset(j, 0, sizeof *j);
    j->outer = last ? in[0] : in[0] * in[1];
    j->inner = last ? in[ndim - 1] : 1;
    for (int k = 0; k < 3; k++) {
        int axis = k - (3 - spatial);
        axis_taps *x = &j->axis[k];
        x->in = axis < 0 ? 1 : in[first + axis];
        x->out = axis < 0 ? 1 : out[first + axis];
        x->n = axis < 0 ? 1 : taps;
        x->at = proa_scratch((size_t)x->out * (size_t)x->n * sizeof *x->at);
        x->weight = proa_scratch((size_t)x->out * (size_t)x->n * sizeof *x->weight);
        if (!x->at || !x->weight) {
            job_end(j);
            return proa_error();
        }
        if (axis < 0) x->at[0] = 0, x->weight[0] = 1;
        else fill_taps(x, r, step_of(r, axis, x->in, x->out));
    }
    return PROA_OK;
}

static proa_status resize(const vision_resize *r, proa_tensor *to, const proa_tensor *from, bool back)
{
    const proa_tensor *small = back ? to : from, *large = back ? from : to;
    proa_wide w[2] = {0};
    resize_job j;
    if (to->numel == 0) return PROA_OK;
    if (from->numel == 0) {
        memset(to->data, 0, (size_t)to->numel * proa_dtype_size((proa_dtype)to->dtype));
        return PROA_OK;
    }
    PROA_TRY(job_begin(&j, r, to->ndim, small->shape, large->shape));
    proa_dtype as = proa__wide_dtype(to);
    proa_status s = proa__wide_read(&w[0], from, as);
    if (!s) s = proa__wide_write(&w[1], to, as);
    if (!s) {
        j.from = w[0].data, j.to = w[1].data;
        int64_t rows = j.axis[0].out * j.axis[1].out, row = j.axis[2].out * j.inner;
        if (back)
            proa__parallel(j.outer, rows_grain(rows * row),
                           as == PROA_F64 ? resize_images_back_double : resize_images_back_float, &j);
        else
            proa__parallel(j.outer * rows, rows_grain(row),
                           as == PROA_F64 ? resize_rows_double : resize_rows_float, &j);
    }
    proa__wide_end(w, 2, s == PROA_OK);
    job_end(&j);
    return s;
}

PROA_KERNEL(interpolate_cpu, interpolate)
{
    return resize(&VISION_RESIZE("interpolate", a), a->out, a->x, false);
}

PROA_KERNEL(interpolate_grad_cpu, interpolate_grad)
{
    return resize(&VISION_RESIZE("interpolate_grad", a), a->d_x, a->d_out, true);
}
