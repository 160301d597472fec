/* Kernels of interpolate and its gradient. May use core, kernels and ops headers. */
#include "core/copy.h"
#include "kernels/rowwise.h"
#include "ops/vision/interpolate.h"

/* Scratch of one task: a sum of source rows; two source rows and a row of results, for half types only. */
typedef struct resize_work {
    void *sum, *row[2], *result;
} resize_work;

#define T float
#define WEIGHTS weight
#include "interpolate.inc"
#undef T
#undef WEIGHTS
#define T double
#define WEIGHTS exact
#include "interpolate.inc"
#undef T
#undef WEIGHTS

/* ---- weighted modes, and all gradients ---------------------------------------------------- */

/* TASKS: tasks per thread, so that a thread that is late leaves work to others. */
enum { TASKS = 4 };

typedef struct resize_tasks {
    const resize_job *of;
    int64_t tasks, rows, each; /* bytes of one task's scratch */
    char *scratch;
} resize_tasks;

static void resize_range(int64_t begin, int64_t end, void *context)
{
    const resize_tasks *k = context;
    const resize_job *j = k->of;
    const int64_t row = j->axis[2].in * j->inner;
    for (int64_t t = begin; t < end; t++) {
        int64_t first = t * k->rows / k->tasks, last = (t + 1) * k->rows / k->tasks;
        char *own = k->scratch + t * k->each;
        float *half = (float *)(void *)own + row;
        resize_work work = {own, {half, half + row}, half + 2 * row};
        if (j->dtype == PROA_F64) resize_rows_double(j, &work, first, last);
        else resize_rows_float(j, &work, first, last);
    }
}

static proa_status resize_weighted(const resize_job *j)
{
    const int64_t row = j->axis[2].in * j->inner, width = j->axis[2].out * j->inner;
    resize_tasks k = {.of = j, .rows = j->outer * j->axis[0].out * j->axis[1].out};
    size_t bytes;
    int64_t grain = rows_grain(row + width);
    k.tasks = (k.rows + grain - 1) / grain;
    if (k.tasks > TASKS * proa_threads()) k.tasks = TASKS * proa_threads();
    k.each = j->dtype == PROA_F64   ? row * (int64_t)sizeof(double)
             : j->dtype == PROA_F32 ? row * (int64_t)sizeof(float)
                                    : (3 * row + width) * (int64_t)sizeof(float);
    k.each = (k.each + 63) / 64 * 64 + 64; /* tasks share no cache line */
    if (!proa__mul_size((size_t)k.each, (size_t)k.tasks, &bytes)) return proa_error();
    k.scratch = proa_scratch(bytes);
    if (!k.scratch) return proa_error();
    proa__parallel(k.tasks, 1, resize_range, &k);
    proa_scratch_free(k.scratch);
    return PROA_OK;
}

/* ---- nearest: copies ---------------------------------------------------------------------- */

#define COPY_POINTS(N)                                                                       \
    case N:                                                                                  \
        for (int64_t i = 0; i < x->out; i++) memcpy(to + i * (N), from + x->at[i] * (N), N); \
        break

/* Row `from` at the taps of its axis; a point has `size` bytes. */
static void copy_points(const axis_taps *x, char *restrict to, const char *restrict from, int64_t size)
{
    switch (size) {
        COPY_POINTS(1);
        COPY_POINTS(2);
        COPY_POINTS(3);
        COPY_POINTS(4);
        COPY_POINTS(8);
        COPY_POINTS(12);
        COPY_POINTS(16);
    default:
        for (int64_t i = 0; i < x->out; i++) memcpy(to + i * size, from + x->at[i] * size, (size_t)size);
    }
}

/* A row equal to the one before it is copied from there. */
static void nearest_rows(int64_t begin, int64_t end, void *context)
{
    const resize_job *j = context;
    const axis_taps *x = &j->axis[0], *y = &j->axis[1], *z = &j->axis[2];
    const int64_t size = j->inner * (int64_t)proa_dtype_size(j->dtype), rows = x->out * y->out;
    const char *last = NULL;
    for (int64_t r = begin; r < end; r++) {
        int64_t n = r / rows, row = (n * x->in + x->at[r % rows / y->out]) * y->in + y->at[r % y->out];
        const char *from = (const char *)j->from + row * z->in * size;
        char *to = (char *)j->to + r * z->out * size;
        if (from == last) memcpy(to, to - z->out * size, (size_t)(z->out * size));
        else copy_points(z, to, from, size);
        last = from;
    }
}

static proa_status resize(const vision_resize *r, proa_tensor *to, const proa_tensor *from, bool back)
{
    const proa_tensor *small = back ? to : from, *large = back ? from : to;
    resize_job j;
    if (to->numel == 0) return PROA_OK;
    if (from->numel == 0) {
        memset(to->data, 0, (size_t)to->numel * proa_dtype_size((proa_dtype)to->dtype));
        return PROA_OK;
    }
    PROA_TRY(proa__resize_begin(&j, r, to->dtype == PROA_F64, back, to->ndim, small->shape, large->shape));
    proa_status s = PROA_OK;
    j.from = from->data, j.to = to->data, j.dtype = (proa_dtype)to->dtype;
    if (j.axis[2].n == 1)
        proa__parallel(j.outer * j.axis[0].out * j.axis[1].out, rows_grain(j.axis[2].out * j.inner),
                       nearest_rows, &j);
    else if (rows_is_integer(to->dtype)) proa__resize_bytes(&j);
    else s = resize_weighted(&j);
    proa__resize_end(&j);
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
