/* Source positions and weights of interpolation, and resampling of integer images, in float32 arithmetic
 * equal to Paddle's bit for bit (double for cubic taps of float64 images). Not in cpu/, where the compiler
 * may contract products and sums to fused multiply-adds, which round differently. May use core, kernels and
 * ops. */
#include "ops/vision/interpolate.h"

#include "kernels/rowwise.h"
#include "ops/vision/taps.h"

static void fill_taps(axis_taps *x, const vision_resize *r, int axis)
{
    bool middle = r->align_mode == 0 && !r->align_corners;
    int64_t count = 0;
    bool sized = proa__ints_count(r->who, "size", r->size, &count) || count;
    double factor = sized ? 0 : r->scale->at[r->scale->count == 1 ? 0 : axis];
    float step = taps_step(x->in, x->out, r->align_corners, (float)factor);
    double exact = taps_step_exact(x->in, x->out, r->align_corners, factor);
    for (int64_t i = 0, k = 0; i < x->out; i++, k += x->n)
        if (x->exact)
            taps_of_exact(x->n, i, x->in, step, exact, r->align_corners, middle, x->at + k, x->exact + k);
        else taps_of(x->n, i, x->in, step, r->align_corners, middle, x->at + k, x->weight + k);
}

void proa__resize_end(resize_job *j)
{
    for (int k = 0; k < 3; k++) {
        proa_scratch_free(j->axis[k].at);
        proa_scratch_free(j->axis[k].weight);
        proa_scratch_free(j->axis[k].exact);
    }
}

proa_status proa__resize_begin(resize_job *j, const vision_resize *r, bool exact, int ndim, const int64_t *in,
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
        size_t n_taps = (size_t)x->out * (size_t)x->n;
        x->at = proa_scratch(n_taps * sizeof *x->at);
        if (exact) x->exact = proa_scratch(n_taps * sizeof *x->exact);
        else x->weight = proa_scratch(n_taps * sizeof *x->weight);
        if (!x->at || !(exact ? (void *)x->exact : (void *)x->weight)) {
            proa__resize_end(j);
            return proa_error();
        }
        if (axis >= 0) {
            fill_taps(x, r, axis);
            continue;
        }
        x->at[0] = 0;
        if (exact) x->exact[0] = 1;
        else x->weight[0] = 1;
    }
    return PROA_OK;
}

/* ---- integers ----------------------------------------------------------------------------- */

typedef struct integers_job {
    const resize_job *of;
    size_t size;
} integers_job;

/* Row (n, depth, height) of the source, at its first element. */
static int64_t row_at(const resize_job *j, int64_t n, int64_t d, int64_t h)
{
    return ((n * j->axis[0].in + d) * j->axis[1].in + h) * j->axis[2].in * j->inner;
}

/* One output byte from its taps, added in Paddle's order: in images width is outermost, in volumes depth. */
static uint8_t mix(const resize_job *j, const int64_t at[3], int64_t n, int64_t c)
{
    const axis_taps *x = j->axis;
    const uint8_t *from = j->from;
    bool volume = x[0].n > 1;
    int outer = volume ? 1 : 2, inner = volume ? 2 : 1, tap[3];
    float sum = 0;
    for (tap[0] = 0; tap[0] < x[0].n; tap[0]++)
        for (tap[outer] = 0; tap[outer] < x[outer].n; tap[outer]++)
            for (tap[inner] = 0; tap[inner] < x[inner].n; tap[inner]++) {
                int64_t k[3];
                for (int i = 0; i < 3; i++) k[i] = at[i] * x[i].n + tap[i];
                float v = from[row_at(j, n, x[0].at[k[0]], x[1].at[k[1]]) + x[2].at[k[2]] * j->inner + c];
                for (int i = 0; i < 3; i++) v *= x[i].weight[k[i]];
                sum += v;
            }
    return (uint8_t)sum;
}

static void resize_integer_rows(int64_t begin, int64_t end, void *context)
{
    const integers_job *k = context;
    const resize_job *j = k->of;
    const int64_t width = j->axis[2].out, rows = j->axis[0].out * j->axis[1].out;
    const size_t point = (size_t)j->inner * k->size;
    for (int64_t r = begin; r < end; r++) {
        int64_t n = r / rows, at[3] = {r % rows / j->axis[1].out, r % j->axis[1].out, 0};
        for (; at[2] < width; at[2]++) {
            char *to = (char *)j->to + (size_t)(r * width + at[2]) * point;
            if (j->axis[2].n > 1) {
                for (int64_t c = 0; c < j->inner; c++) ((uint8_t *)to)[c] = mix(j, at, n, c);
                continue;
            }
            int64_t from = row_at(j, n, j->axis[0].at[at[0]], j->axis[1].at[at[1]]);
            from += j->axis[2].at[at[2]] * j->inner;
            memcpy(to, (const char *)j->from + (size_t)from * k->size, point);
        }
    }
}

void proa__resize_integers(const resize_job *j, size_t size)
{
    integers_job k = {j, size};
    int64_t rows = j->outer * j->axis[0].out * j->axis[1].out;
    proa__parallel(rows, rows_grain(j->axis[2].out * j->inner), resize_integer_rows, &k);
}
