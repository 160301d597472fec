/* CPU kernels of batch, layer, group and instance normalization and their gradients, over rows of elements
 * that share statistics (norm.h), in float or double; half types are converted. A chunk is summed in vector
 * lanes and chunks are added in double, in an order that does not depend on the threads. May use core and
 * kernels only. */
#include "ops/norm/norm.h"

#include "core/blocked.h"
#include "core/half.h"
#include "kernels/nontemporal.h"
#include "kernels/rowwise.h"
#include "kernels/vector.h"

#include <math.h>
#include <string.h>

/* One call; pointers are to the accumulator's type. */
typedef struct norm_job {
    norm_rows n;
    double epsilon;
    bool fixed;                            /* mean and deviation are inputs, constants for gradients */
    bool nontemporal;                      /* the result is written by non-temporal stores */
    bool own_weights;                      /* backward: row i alone has weight i */
    const void *x, *d_out, *weight, *bias; /* weight, bias: NULL if absent */
    void *mean, *inverse;                  /* of each row; 1 / deviation */
    void *result, *d_weight, *d_bias;
    double *partial; /* partial sums of parameter gradients, one set per slice of rows */
    int64_t slices;
} norm_job;

enum { NORM_PIECE = 1024, NORM_COLUMNS = 64 };
/* NORM_SLICES: most slices. NORM_SLICE: elements that make one worthwhile, as the slices' sums are read from
 * other cores' caches. NORM_FEW: rows summed in float before they are added in double. NORM_LONGEST: longest
 * row with slices. */
enum { NORM_SLICES = 32, NORM_SLICE = 1 << 15, NORM_FEW = 16, NORM_LONGEST = 1 << 14 };

#define T float
#include "ops/norm/cpu/body.inc"
#undef T
#define T double
#include "ops/norm/cpu/body.inc"
#undef T

#include "ops/norm/cpu/blocked.inc"

/* ---- operands in the accumulator's type ---- */

/* Memory of one call: freed together. */
typedef struct norm_memory {
    void *blocks[12];
    int n;
    bool failed;
} norm_memory;

static void *take(norm_memory *m, size_t bytes)
{
    void *p = proa_scratch(bytes);
    if (!p) m->failed = true;
    m->blocks[m->n++] = p;
    return p;
}

static void give(norm_memory *m)
{
    for (int i = 0; i < m->n; i++) proa_scratch_free(m->blocks[i]);
}

static bool is_half(const proa_tensor *t) { return t->dtype == PROA_F16 || t->dtype == PROA_BF16; }

/* t as the accumulator's type; NULL for an absent one. */
static const void *operand(norm_memory *m, const proa_tensor *t)
{
    if (!t || proa__absent(t)) return NULL;
    if (!is_half(t)) return t->data;
    float *to = take(m, (size_t)t->numel * sizeof(float));
    if (to) rows_load_float((proa_dtype)t->dtype, t->data, 0, t->numel, to);
    return to;
}

/* Destination of t: its own memory, or a float32 block that `put` narrows afterwards. */
static void *place(norm_memory *m, const proa_tensor *t)
{
    return is_half(t) ? take(m, (size_t)t->numel * sizeof(float)) : t->data;
}

static void put(const proa_tensor *t, const void *from)
{
    if (is_half(t)) rows_store_float((proa_dtype)t->dtype, t->data, 0, t->numel, from);
}

static bool is_nontemporal(const norm_rows *n, const proa_tensor *t)
{
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)t->dtype);
    return !is_half(t) && nontemporal_pays(t->numel * item, n->length * item);
}

static proa_status forward(norm_job *job, const proa_tensor *x, const proa_tensor *weight,
                           const proa_tensor *bias, const proa_tensor *out)
{
    norm_memory m = {.n = 0};
    job->x = operand(&m, x), job->weight = operand(&m, weight), job->bias = operand(&m, bias);
    job->result = place(&m, out);
    job->nontemporal = is_nontemporal(&job->n, out) && out->data != x->data;
    if (!m.failed) {
        if (x->dtype == PROA_F64) forward_double(job);
        else forward_float(job);
        put(out, job->result);
    }
    give(&m);
    return proa_error();
}

static proa_status backward(norm_job *job, const proa_tensor *x, const proa_tensor *weight,
                            const proa_tensor *d_out, const proa_tensor *d_x, const proa_tensor *d_weight,
                            const proa_tensor *d_bias)
{
    norm_memory m = {.n = 0};
    job->x = operand(&m, x), job->weight = operand(&m, weight), job->d_out = operand(&m, d_out);
    job->nontemporal = is_nontemporal(&job->n, d_x) && d_x->data != x->data && d_x->data != d_out->data;
    job->result = place(&m, d_x), job->d_weight = place(&m, d_weight), job->d_bias = place(&m, d_bias);
    if (!m.failed) {
        if (x->dtype == PROA_F64) backward_double(job);
        else backward_float(job);
        put(d_x, job->result), put(d_weight, job->d_weight), put(d_bias, job->d_bias);
    }
    give(&m);
    return proa_error();
}

/* ---- batch_norm ---- */

/* Address of element i of a 1-D tensor with any stride, for rows_get and rows_set. */
static char *element(const proa_tensor *t, int64_t i)
{
    return t->data + (t->ndim ? i * t->strides[t->ndim - 1] : 0);
}

/* running = momentum · running + (1 − momentum) · this batch's; `batch` holds 1 / deviation for variances. */
static void update_running(const proa_tensor *from, const proa_tensor *to, const proa_tensor *batch,
                           double momentum, double epsilon, bool variance)
{
    for (int64_t i = 0; i < batch->numel; i++) {
        double v = rows_get((proa_dtype)batch->dtype, batch->data, i);
        if (variance) v = 1 / (v * v) - epsilon;
        double old = rows_get((proa_dtype)from->dtype, element(from, i), 0);
        rows_set((proa_dtype)to->dtype, element(to, i), 0, momentum * old + (1 - momentum) * v);
    }
}

static const float *floats(const proa_tensor *t)
{
    return !t || proa__absent(t) ? NULL : (const float *)(const void *)t->data;
}

static bool is_float(const proa_tensor *t) { return proa__absent(t) || t->dtype == PROA_F32; }

static size_t bytes_of(const proa_tensor *t)
{
    return (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
}

static void clear(const proa_tensor *t) { memset(t->data, 0, bytes_of(t)); }

/* Each channel has one value: out is x, running statistics are unchanged, and the batch's statistics are
 * zeros. */
static proa_status batch_norm_pass(const proa_batch_norm_args *a)
{
    PROA_TRY(proa__plain(a->x));
    memcpy(a->out->data, a->x->data, bytes_of(a->x));
    clear(a->saved_mean), clear(a->saved_variance);
    for (int64_t i = 0; i < a->x->numel; i++) {
        rows_set((proa_dtype)a->mean_out->dtype, element(a->mean_out, i), 0,
                 rows_get((proa_dtype)a->running_mean->dtype, element(a->running_mean, i), 0));
        rows_set((proa_dtype)a->variance_out->dtype, element(a->variance_out, i), 0,
                 rows_get((proa_dtype)a->running_var->dtype, element(a->running_var, i), 0));
    }
    return PROA_OK;
}

static proa_status batch_norm_grad_pass(const proa_batch_norm_grad_args *a)
{
    PROA_TRY(proa__plain(a->d_out));
    memcpy(a->d_x->data, a->d_out->data, bytes_of(a->d_out));
    clear(a->d_weight), clear(a->d_bias);
    return PROA_OK;
}

/* The result takes x's layout where the kernel supports it. */
static int batch_norm_format(const void *args, const void *state)
{
    const proa_batch_norm_args *a = args;
    bool can = a->x->numel && !BATCH_NORM_PASSES(a) && lane_count(a->x) &&
               a->data_format == PROA_DATA_FORMAT_NCHW && is_float(a->weight) && is_float(a->bias) &&
               is_float(a->saved_mean);
    (void)state;
    return can ? proa__format(a->x) : 0;
}

static proa_status batch_norm_blocked(const proa_batch_norm_args *a, const proa_run *run, bool *done)
{
    lane_job j = lane_job_of(a->x);
    *done = run->fresh && batch_norm_format(a, NULL);
    if (!*done) return proa__plain(a->x);
    PROA_TRY(proa__block_output(a->out, proa__format(a->x)));
    j.epsilon = a->epsilon, j.fixed = BATCH_NORM_FIXED(a);
    j.weight = floats(a->weight), j.bias = floats(a->bias);
    j.mean = (float *)(void *)a->saved_mean->data, j.inverse = (float *)(void *)a->saved_variance->data;
    j.result = (float *)(void *)proa__blocked_data(a->out);
    lane_run(&j);
    return PROA_OK;
}

PROA_KERNEL_BLOCKED(batch_norm_cpu, batch_norm, NULL, NULL, batch_norm_format)
{
    if (BATCH_NORM_PASSES(a)) return batch_norm_pass(a);
    bool done = false;
    norm_job job = {.n = proa__batch_rows(a->x, a->data_format),
                    .epsilon = a->epsilon,
                    .fixed = BATCH_NORM_FIXED(a),
                    .mean = a->saved_mean->data,
                    .inverse = a->saved_variance->data};
    proa_dtype dtype = (proa_dtype)a->saved_mean->dtype;
    if (job.fixed || a->x->numel == 0) /* without elements the running statistics stay unchanged */
        for (int64_t i = 0; i < job.n.rows; i++) {
            rows_set(dtype, job.mean, i,
                     rows_get((proa_dtype)a->running_mean->dtype, element(a->running_mean, i), 0));
            double v = rows_get((proa_dtype)a->running_var->dtype, element(a->running_var, i), 0);
            rows_set(dtype, job.inverse, i, 1 / sqrt(v + a->epsilon));
        }
    if (a->x->numel == 0) return PROA_OK;
    PROA_TRY(batch_norm_blocked(a, run, &done));
    if (!done) PROA_TRY(forward(&job, a->x, a->weight, a->bias, a->out));
    if (job.fixed) return PROA_OK;
    update_running(a->running_mean, a->mean_out, a->saved_mean, a->momentum, a->epsilon, false);
    update_running(a->running_var, a->variance_out, a->saved_variance, a->momentum, a->epsilon, true);
    return PROA_OK;
}

static int batch_norm_grad_format(const void *args, const void *state)
{
    const proa_batch_norm_grad_args *a = args;
    bool can = a->x->numel && !BATCH_NORM_PASSES(a) && lane_count(a->x) &&
               a->data_format == PROA_DATA_FORMAT_NCHW && is_float(a->weight) && is_float(a->saved_mean) &&
               a->d_out->dtype == PROA_F32;
    (void)state;
    return can ? proa__format(a->x) : 0;
}

static proa_status batch_norm_grad_blocked(const proa_batch_norm_grad_args *a, const proa_run *run,
                                           bool *done)
{
    lane_job j = lane_job_of(a->x);
    int format = proa__format(a->x);
    *done = run->fresh && batch_norm_grad_format(a, NULL);
    if (!*done) return proa__plain(a->x) == PROA_OK ? proa__plain(a->d_out) : proa_error();
    void *scratch = NULL;
    if (proa__format(a->d_out) != format) {
        scratch = proa_scratch(proa__blocked_bytes(a->x));
        if (!scratch) return proa_error();
    }
    proa_status status = proa__block_output(a->d_x, format);
    if (status == PROA_OK && scratch)
        status =
            proa__convert_blocked(a->d_out, proa__format(a->d_out), proa__memory(a->d_out), format, scratch);
    j.epsilon = a->epsilon, j.fixed = BATCH_NORM_FIXED(a);
    j.weight = floats(a->weight);
    j.mean = (float *)(void *)a->saved_mean->data, j.inverse = (float *)(void *)a->saved_variance->data;
    j.d_out = scratch ? scratch : (const float *)(const void *)proa__memory(a->d_out);
    j.d_weight = (float *)(void *)a->d_weight->data, j.d_bias = (float *)(void *)a->d_bias->data;
    j.result = (float *)(void *)proa__memory(a->d_x);
    if (status == PROA_OK) lane_run(&j);
    proa_scratch_free(scratch);
    return status;
}

PROA_KERNEL_BLOCKED(batch_norm_grad_cpu, batch_norm_grad, NULL, NULL, batch_norm_grad_format)
{
    if (BATCH_NORM_PASSES(a)) return batch_norm_grad_pass(a);
    bool done = false;
    if (a->x->numel) PROA_TRY(batch_norm_grad_blocked(a, run, &done));
    if (done) return PROA_OK;
    norm_memory m = {.n = 0};
    norm_job job = {.n = proa__batch_rows(a->x, a->data_format),
                    .epsilon = a->epsilon,
                    .fixed = BATCH_NORM_FIXED(a),
                    .mean = (void *)(uintptr_t)operand(&m, a->saved_mean),
                    .inverse = (void *)(uintptr_t)operand(&m, a->saved_variance)};
    proa_status status =
        m.failed ? proa_error() : backward(&job, a->x, a->weight, a->d_out, a->d_x, a->d_weight, a->d_bias);
    give(&m);
    return status;
}

/* ---- layer, group and instance norm: variances in Paddle's outputs of the first two ---- */

/* Replaces inverse deviations, which the kernel writes to `variance`, by variances. */
static void to_variances(const proa_tensor *variance, double epsilon)
{
    proa_dtype dtype = (proa_dtype)variance->dtype;
    for (int64_t i = 0; i < variance->numel; i++) {
        double r = rows_get(dtype, variance->data, i);
        rows_set(dtype, variance->data, i, 1 / (r * r) - epsilon);
    }
}

/* Inverse deviations of the variances, in new memory of the call (float64 if `wide`, else float32). */
static void *inverses(norm_memory *m, const proa_tensor *variance, double epsilon, bool wide)
{
    void *to = take(m, (size_t)variance->numel * (wide ? sizeof(double) : sizeof(float)));
    for (int64_t i = 0; to && i < variance->numel; i++)
        rows_set(wide ? PROA_F64 : PROA_F32, to, i,
                 1 / sqrt(rows_get((proa_dtype)variance->dtype, variance->data, i) + epsilon));
    return to;
}

#define VARIANCE_KERNELS(op, make_rows)                                                                  \
    PROA_KERNEL(op##_cpu, op)                                                                            \
    {                                                                                                    \
        norm_job job = {                                                                                 \
            .n = make_rows, .epsilon = a->epsilon, .mean = a->mean->data, .inverse = a->variance->data}; \
        if (a->x->numel == 0) return PROA_OK;                                                            \
        PROA_TRY(forward(&job, a->x, a->weight, a->bias, a->out));                                       \
        to_variances(a->variance, a->epsilon);                                                           \
        return PROA_OK;                                                                                  \
    }                                                                                                    \
    PROA_KERNEL(op##_grad_cpu, op##_grad)                                                                \
    {                                                                                                    \
        norm_memory m = {.n = 0};                                                                        \
        norm_job job = {.n = make_rows,                                                                  \
                        .epsilon = a->epsilon,                                                           \
                        .mean = (void *)(uintptr_t)operand(&m, a->mean),                                 \
                        .inverse = inverses(&m, a->variance, a->epsilon, a->x->dtype == PROA_F64)};      \
        proa_status status =                                                                             \
            m.failed ? proa_error()                                                                      \
                     : backward(&job, a->x, a->weight, a->d_out, a->d_x, a->d_weight, a->d_bias);        \
        give(&m);                                                                                        \
        return status;                                                                                   \
    }

VARIANCE_KERNELS(layer_norm, proa__layer_rows(a->x, a->begin_norm_axis))
VARIANCE_KERNELS(group_norm, proa__group_rows(a->x, a->num_groups, a->data_format))

PROA_KERNEL(instance_norm_cpu, instance_norm)
{
    norm_job job = {.n = proa__group_rows(a->x, a->x->shape[1] ? a->x->shape[1] : 1, PROA_DATA_FORMAT_NCHW),
                    .epsilon = a->epsilon,
                    .mean = a->saved_mean->data,
                    .inverse = a->saved_variance->data};
    return a->x->numel == 0 ? PROA_OK : forward(&job, a->x, a->weight, a->bias, a->out);
}

PROA_KERNEL(instance_norm_grad_cpu, instance_norm_grad)
{
    norm_memory m = {.n = 0};
    norm_job job = {.n = proa__group_rows(a->x, a->x->shape[1] ? a->x->shape[1] : 1, PROA_DATA_FORMAT_NCHW),
                    .epsilon = a->epsilon,
                    .mean = (void *)(uintptr_t)operand(&m, a->saved_mean),
                    .inverse = (void *)(uintptr_t)operand(&m, a->saved_variance)};
    proa_status status =
        m.failed ? proa_error() : backward(&job, a->x, a->weight, a->d_out, a->d_x, a->d_weight, a->d_bias);
    give(&m);
    return status;
}
