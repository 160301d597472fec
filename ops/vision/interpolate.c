/* Source positions and weights of interpolation, and resampling of images of bytes, in float32 arithmetic
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

static void free_taps(axis_taps *x)
{
    proa_scratch_free(x->at);
    proa_scratch_free(x->start);
    proa_scratch_free(x->weight);
    proa_scratch_free(x->exact);
}

/* Memory for `count` taps of x->out outputs; false on failure, when free_taps must follow. */
static bool take_taps(axis_taps *x, size_t count, bool exact)
{
    x->at = proa_scratch(count * sizeof *x->at);
    x->start = proa_scratch((size_t)(x->out + 1) * sizeof *x->start);
    if (exact) x->exact = proa_scratch(count * sizeof *x->exact);
    else x->weight = proa_scratch(count * sizeof *x->weight);
    return x->at && x->start && (x->exact || x->weight);
}

/* Replaces x by its transpose, whose taps are in the order of x's outputs. */
static bool transpose_taps(axis_taps *x)
{
    axis_taps t = {.in = x->out, .out = x->in};
    const int64_t count = x->out * x->n;
    if (!take_taps(&t, (size_t)count, x->exact)) {
        free_taps(&t);
        return false;
    }
    memset(t.start, 0, (size_t)(t.out + 1) * sizeof *t.start);
    for (int64_t k = 0; k < count; k++) t.start[x->at[k] + 1]++;
    for (int64_t i = 0; i < t.out; i++) t.start[i + 1] += t.start[i];
    for (int64_t k = 0; k < count; k++) { /* start[i] moves to the end of i's taps */
        int64_t to = t.start[x->at[k]]++;
        t.at[to] = k / x->n;
        if (x->exact) t.exact[to] = x->exact[k];
        else t.weight[to] = x->weight[k];
    }
    memmove(t.start + 1, t.start, (size_t)t.out * sizeof *t.start);
    t.start[0] = 0;
    free_taps(x);
    *x = t;
    return true;
}

void proa__resize_end(resize_job *j)
{
    for (int k = 0; k < 3; k++) free_taps(&j->axis[k]);
}

proa_status proa__resize_begin(resize_job *j, const vision_resize *r, bool exact, bool back, int ndim,
                               const int64_t *in, const int64_t *out)
{
    int spatial = ndim - 2, last = proa__channels_last(r->format), first = last ? 1 : 2;
    int taps = r->mode == PROA_INTERP_METHOD_NEAREST ? 1 : r->mode == PROA_INTERP_METHOD_BICUBIC ? 4 : 2;
    bool made = true;
    memset(j, 0, sizeof *j);
    j->outer = last ? in[0] : in[0] * in[1];
    j->inner = last ? in[ndim - 1] : 1;
    for (int k = 0; k < 3 && made; k++) {
        int axis = k - (3 - spatial);
        axis_taps *x = &j->axis[k];
        x->in = axis < 0 ? 1 : in[first + axis];
        x->out = axis < 0 ? 1 : out[first + axis];
        x->n = axis < 0 ? 1 : taps;
        made = take_taps(x, (size_t)x->out * (size_t)x->n, exact);
        for (int64_t i = 0; i <= x->out && made; i++) x->start[i] = i * x->n;
        if (made && axis >= 0) {
            fill_taps(x, r, axis);
            made = !back || transpose_taps(x);
        } else if (made) {
            x->at[0] = 0;
            if (exact) x->exact[0] = 1;
            else x->weight[0] = 1;
        }
    }
    if (!made) proa__resize_end(j);
    return made ? PROA_OK : proa_error();
}

/* ---- bytes --------------------------------------------------------------------------------- */

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

static void resize_byte_rows(int64_t begin, int64_t end, void *context)
{
    const resize_job *j = context;
    const int64_t width = j->axis[2].out, rows = j->axis[0].out * j->axis[1].out;
    for (int64_t r = begin; r < end; r++) {
        int64_t n = r / rows, at[3] = {r % rows / j->axis[1].out, r % j->axis[1].out, 0};
        for (; at[2] < width; at[2]++)
            for (int64_t c = 0; c < j->inner; c++)
                ((uint8_t *)j->to)[(r * width + at[2]) * j->inner + c] = mix(j, at, n, c);
    }
}

void proa__resize_bytes(const resize_job *j)
{
    int64_t rows = j->outer * j->axis[0].out * j->axis[1].out;
    proa__parallel(rows, rows_grain(j->axis[2].out * j->inner), resize_byte_rows, (void *)(uintptr_t)j);
}
