/* Portable pooling: forward, backward and the maximum's places, one plane (image, channel) at a time in
 * float or double. May use core only. */
#include "ops/pool/geometry.h"
#include "ops/rows.h"

/* What runs over every plane. */
typedef enum pool_task { POOL_FORWARD, POOL_BACKWARD, POOL_PICK, POOL_SCATTER } pool_task;

typedef struct pool_job {
    pool_geometry g;
    pool_task task;
    proa_dtype dtype;
    const void *x;     /* input side: values whose maximum is looked for */
    const void *other; /* POOL_BACKWARD, POOL_SCATTER: d_out; POOL_PICK: what to pick, like x */
    int32_t *mask;     /* written forwards (may be NULL), read by POOL_SCATTER */
    void *result;
    char *work;
    size_t work_each;
    int64_t slots;
} pool_job;

static inline int64_t pixels(const int64_t *size) { return size[0] * size[1] * size[2]; }

/* Outputs [*from, *to) of a row whose window has its place `tap` inside the input. */
static inline void pool_reach(const pool_geometry *g, int64_t tap, int64_t *from, int64_t *to)
{
    int64_t s = g->stride[2], lead = g->before[2] - tap, last = g->in[2] - 1 + lead;
    *from = lead > 0 ? (lead + s - 1) / s : 0;
    *to = last < 0 ? 0 : last / s + 1;
    if (*to > g->out[2]) *to = g->out[2];
}

enum { POOL_ROW = 512 }; /* outputs of a row whose places are kept on the stack */

#define T float
#include "ops/pool/cpu_body.inc"
#include "ops/pool/cpu_forward.inc"
#undef T
#define T double
#include "ops/pool/cpu_body.inc"
#include "ops/pool/cpu_forward.inc"
#undef T

/* Windows of many sizes, and rows of one output, are better off plane by plane. */
static bool goes_by_rows(const pool_job *job)
{
    const pool_geometry *g = &job->g;
    if (job->task != POOL_FORWARD || job->mask || !rows_in_place(job->dtype)) return false;
    return g->channels_last || (!g->adaptive && g->out[2] > 3);
}

static proa_status pool_run(const pool_params *p, pool_job *job)
{
    PROA_TRY(proa__pool_geometry(p, &job->g));
    const pool_geometry *g = &job->g;
    int64_t planes = g->batch * g->channels;
    job->dtype = (proa_dtype)p->x->dtype;
    if (planes == 0) return PROA_OK;
    if (goes_by_rows(job)) {
        int64_t rows = g->batch * (g->channels_last ? 1 : g->channels) * g->out[0] * g->out[1];
        int64_t reads = pixels(g->in) * planes / (rows > 0 ? rows : 1) + 1;
        proa__parallel(rows, rows_grain(reads),
                       job->dtype == PROA_F64 ? forward_rows_double : forward_rows_float, job);
        return PROA_OK;
    }
    size_t item = job->dtype == PROA_F64 ? sizeof(double) : sizeof(float);
    job->slots = planes < proa_threads() ? planes : proa_threads();
    if (pixels(g->in) * planes < 16384) job->slots = 1;
    /* Two planes of each side: converted halves, gathered channels-last planes, and what is made of them. */
    job->work_each = ((size_t)(2 * pixels(g->in) + 2 * pixels(g->out)) * item + 63) / 64 * 64;
    job->work = proa_scratch(job->work_each * (size_t)job->slots);
    if (!job->work) return proa_error();
    proa__parallel(job->slots, 1, job->dtype == PROA_F64 ? planes_double : planes_float, job);
    proa_scratch_free(job->work);
    return PROA_OK;
}

#define POOL_KERNEL(name, params)                                                       \
    PROA_KERNEL(name##_cpu, name)                                                       \
    {                                                                                   \
        pool_job job = {.task = POOL_FORWARD, .x = a->x->data, .result = a->out->data}; \
        return pool_run(&params, &job);                                                 \
    }

#define POOL_KERNELS(N)                                                                   \
    POOL_KERNEL(max_pool##N##d, MAX_PARAMS(a, N, "max_pool" #N "d"))                      \
    POOL_KERNEL(avg_pool##N##d, AVG_PARAMS(a, N, "avg_pool" #N "d"))                      \
    POOL_KERNEL(adaptive_max_pool##N##d,                                                  \
                ADAPTIVE_PARAMS(a, N, "adaptive_max_pool" #N "d", PROA_POOLING_TYPE_MAX)) \
    POOL_KERNEL(adaptive_avg_pool##N##d,                                                  \
                ADAPTIVE_PARAMS(a, N, "adaptive_avg_pool" #N "d", PROA_POOLING_TYPE_AVG))

#define POOL_GRAD_KERNELS(N)                                                                              \
    PROA_KERNEL(pool##N##d_grad_cpu, pool##N##d_grad)                                                     \
    {                                                                                                     \
        pool_job job = {                                                                                  \
            .task = POOL_BACKWARD, .x = a->x->data, .other = a->d_out->data, .result = a->d_x->data};     \
        return pool_run(&GRAD_PARAMS(a, N, "pool" #N "d_grad"), &job);                                    \
    }                                                                                                     \
    PROA_KERNEL(pool##N##d_double_grad_cpu, pool##N##d_double_grad)                                       \
    {                                                                                                     \
        pool_job job = {.task = POOL_PICK, .x = a->x->data, .other = a->v->data, .result = a->out->data}; \
        return pool_run(&GRAD_PARAMS(a, N, "pool" #N "d_double_grad"), &job);                             \
    }                                                                                                     \
    PROA_KERNEL(max_pool##N##d_with_index_cpu, max_pool##N##d_with_index)                                 \
    {                                                                                                     \
        pool_job job = {.task = POOL_FORWARD,                                                             \
                        .x = a->x->data,                                                                  \
                        .result = a->out->data,                                                           \
                        .mask = (int32_t *)(void *)a->mask->data};                                        \
        if (a->x->numel / (a->x->shape[0] * a->x->shape[1] + 1) > INT32_MAX)                              \
            return proa__op_fail(PROA_ERR_OVERFLOW, proa_find_op("max_pool" #N "d_with_index"), "x",      \
                                 "has planes of more than 2^31 elements, too many for an int32 mask");    \
        return pool_run(&INDEX_PARAMS(a, N, "max_pool" #N "d_with_index"), &job);                         \
    }                                                                                                     \
    PROA_KERNEL(max_pool##N##d_with_index_grad_cpu, max_pool##N##d_with_index_grad)                       \
    {                                                                                                     \
        pool_job job = {.task = POOL_SCATTER,                                                             \
                        .other = a->d_out->data,                                                          \
                        .result = a->d_x->data,                                                           \
                        .mask = (int32_t *)(void *)a->mask->data};                                        \
        PROA_TRY(pool_run(&INDEX_PARAMS(a, N, "max_pool" #N "d_with_index_grad"), &job));                 \
        return PROA_OK;                                                                                   \
    }

POOL_KERNELS(1)
POOL_KERNELS(2)
POOL_KERNELS(3)
POOL_GRAD_KERNELS(2)
POOL_GRAD_KERNELS(3)
