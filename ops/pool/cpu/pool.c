/* CPU kernels of pooling, forward, backward and argmax indices, in float or double; compiled once per CPU
 * level. They run over rows, groups of channels or several windows where the layout allows it, and otherwise
 * over one plane (image, channel) at a time. May use core and kernels only. */
#include "core/blocked.h"
#include "ops/pool/geometry.h"
#include "kernels/rowwise.h"
#include "kernels/vector.h"

/* Tasks that run over every plane. */
typedef enum pool_task { POOL_FORWARD, POOL_BACKWARD, POOL_PICK, POOL_SCATTER } pool_task;

typedef struct pool_job {
    pool_geometry g;
    pool_task task;
    proa_dtype dtype;
    const void *x;     /* input-sized: the values that are pooled */
    const void *other; /* POOL_BACKWARD, POOL_SCATTER: d_out; POOL_PICK: what to pick, like x */
    int32_t *mask;     /* written forwards (may be NULL), read by POOL_SCATTER */
    void *result;
    int64_t block; /* channels per block of a blocked layout; 0: x is row-major */
    char *work;
    size_t work_each;
    int64_t slots;
} pool_job;

static inline int64_t pixels(const int64_t *size) { return size[0] * size[1] * size[2]; }

/* Outputs [*from, *to) of a row for which tap `tap` of the window is inside the input. */
static inline void pool_reach(const pool_geometry *g, int64_t tap, int64_t *from, int64_t *to)
{
    int64_t s = g->stride[2], lead = g->before[2] - tap, last = g->in[2] - 1 + lead;
    *from = lead > 0 ? (lead + s - 1) / s : 0;
    *to = last < 0 ? 0 : (s == 2 ? last >> 1 : last / s) + 1; /* short rows: a division shows */
    if (*to > g->out[2]) *to = g->out[2];
}

enum {
    POOL_ROW = 512,   /* longest row of outputs whose argmax indices are on the stack */
    POOL_LANES = 16,  /* channels that are pooled together */
    SMALL_WINDOW = 16 /* pixels of a window that is read twice rather than channel by channel */
};

/* The windows of a row of outputs along it (pool_window), equal for all rows: `known` if there are at most
 * POOL_ROW. */
typedef struct pool_columns {
    bool known;
    int32_t from[POOL_ROW], to[POOL_ROW], length[POOL_ROW];
} pool_columns;

static void find_columns(const pool_geometry *g, pool_columns *c)
{
    c->known = g->out[2] <= POOL_ROW && g->in[2] + g->before[2] + g->after[2] <= INT32_MAX / 2;
    for (int64_t w = 0; c->known && w < g->out[2]; w++) {
        int64_t from, to;
        c->length[w] = (int32_t)pool_window(g, 2, w, &from, &to);
        c->from[w] = (int32_t)from, c->to[w] = (int32_t)to;
    }
}

/* Argmax indices in vectors, as wide as the values that they are compared beside. */
typedef int32_t pool_places_float __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int64_t pool_places_double __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

#define T float
#include "ops/pool/cpu/body.inc"
#include "ops/pool/cpu/forward.inc"
#undef T
#define T double
#include "ops/pool/cpu/body.inc"
#include "ops/pool/cpu/forward.inc"
#undef T

#include "ops/pool/side_by_side.h"

/* Whether pooling runs row by row. Adaptive windows (of many sizes) and NCHW rows of at most three outputs
 * are faster plane by plane. */
static bool goes_by_rows(const pool_job *job)
{
    const pool_geometry *g = &job->g;
    if (job->task != POOL_FORWARD) return false;
    if (job->mask && (g->channels_last || pixels(g->in) > INT32_MAX)) return false;
    return g->channels_last || (rows_in_place(job->dtype) && !g->adaptive && g->out[2] > 3);
}

static bool goes_by_lanes(const pool_job *job)
{
    return job->task == POOL_BACKWARD && job->g.channels_last && rows_in_place(job->dtype) &&
           pixels(job->g.in) <= INT32_MAX;
}

static proa_status pool_run(const pool_params *p, pool_job *job)
{
    PROA_TRY(proa__pool_geometry(p, &job->g));
    const pool_geometry *g = &job->g;
    job->dtype = (proa_dtype)p->x->dtype;
    if (job->block) { /* as if each block of channels were an image, channels last */
        job->g.batch *= (g->channels + job->block - 1) / job->block;
        job->g.channels = job->block;
        job->g.channels_last = true;
    }
    int64_t planes = g->batch * g->channels;
    if (planes == 0) return PROA_OK;
    if (is_2x2_max(job)) {
        proa__parallel(planes, rows_grain(pixels(g->in)), side_planes, job);
        return PROA_OK;
    }
    if (goes_by_lanes(job)) {
        int64_t items = g->batch * ((g->channels + POOL_LANES - 1) / POOL_LANES);
        proa__parallel(items, rows_grain(pixels(g->in) * POOL_LANES),
                       job->dtype == PROA_F64 ? backward_lanes_double : backward_lanes_float, job);
        return PROA_OK;
    }
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

/* The result of a blocked float32 x is blocked, too. */
static int pool_format(const proa_tensor *x, proa_data_format f)
{
    bool can = !proa__channels_last(f) && x->dtype == PROA_F32 && proa__channel_block(x);
    return can ? proa__format(x) : 0;
}

/* Sets *block to the channels per block of x's layout, or converts x to row-major and sets 0. */
static proa_status pool_block(const proa_tensor *x, proa_data_format f, const proa_run *run, int64_t *block)
{
    *block = run->fresh && pool_format(x, f) ? proa__channel_block(x) : 0;
    return *block ? PROA_OK : proa__plain(x);
}

/* Pools x in its own layout, which out takes. */
static proa_status pool_forward(const pool_params *p, const proa_tensor *x, proa_tensor *out,
                                const proa_run *run)
{
    pool_job job = {.task = POOL_FORWARD};
    PROA_TRY(pool_block(x, p->format, run, &job.block));
    if (job.block) PROA_TRY(proa__block_output(out, proa__format(x)));
    job.x = job.block ? proa__blocked_data(x) : x->data;
    job.result = proa__memory(out);
    return pool_run(p, &job);
}

/* d_out in x's layout: itself, or a converted copy in memory of its own. */
static proa_status pool_alike(const proa_tensor *d_out, int format, void **scratch)
{
    *scratch = NULL;
    if (proa__format(d_out) == format) return PROA_OK;
    *scratch = proa_scratch(proa__format_bytes(d_out, format));
    if (!*scratch) return proa_error();
    proa_status status =
        proa__convert_blocked(d_out, proa__format(d_out), proa__memory(d_out), format, *scratch);
    if (status != PROA_OK) proa_scratch_free(*scratch);
    return status;
}

static proa_status pool_backward(const pool_params *p, const proa_tensor *x, const proa_tensor *d_out,
                                 proa_tensor *d_x, const proa_run *run)
{
    pool_job job = {.task = POOL_BACKWARD};
    void *scratch = NULL;
    PROA_TRY(pool_block(x, p->format, run, &job.block));
    if (job.block) {
        PROA_TRY(proa__block_output(d_x, proa__format(x)));
        PROA_TRY(pool_alike(d_out, proa__format(x), &scratch));
    } else {
        PROA_TRY(proa__plain(d_out));
    }
    job.x = job.block ? proa__blocked_data(x) : x->data;
    job.other = scratch ? scratch : job.block ? proa__blocked_data(d_out) : d_out->data;
    job.result = proa__memory(d_x);
    proa_status status = pool_run(p, &job);
    proa_scratch_free(scratch);
    return status;
}

#define POOL_FORMAT(name, op)                                     \
    static int name##_format(const void *args, const void *state) \
    {                                                             \
        const proa_##op##_args *a = args;                         \
        (void)state;                                              \
        return pool_format(a->x, a->data_format);                 \
    }

#define POOL_KERNEL(name, op, params)                              \
    POOL_FORMAT(name, op)                                          \
    PROA_KERNEL_BLOCKED(name##_cpu, op, NULL, NULL, name##_format) \
    {                                                              \
        const pool_params p = params(a, proa__spatial_rank(a->x)); \
        return pool_forward(&p, a->x, a->out, run);                \
    }

POOL_KERNEL(max_pool, max_pool1d, MAX_PARAMS)
POOL_KERNEL(avg_pool, avg_pool1d, AVG_PARAMS)
POOL_KERNEL(adaptive_max_pool, adaptive_max_pool1d, ADAPTIVE_MAX_PARAMS)
POOL_KERNEL(adaptive_avg_pool, adaptive_avg_pool1d, ADAPTIVE_AVG_PARAMS)

POOL_FORMAT(pool_grad, pool2d_grad)
PROA_KERNEL_BLOCKED(pool_grad_cpu, pool2d_grad, NULL, NULL, pool_grad_format)
{
    const pool_params p = GRAD_PARAMS(a, proa__spatial_rank(a->x), "_grad");
    return pool_backward(&p, a->x, a->d_out, a->d_x, run);
}

PROA_KERNEL(pool_double_grad_cpu, pool2d_double_grad)
{
    const pool_params p = GRAD_PARAMS(a, proa__spatial_rank(a->x), "_double_grad");
    pool_job job = {.task = POOL_PICK, .x = a->x->data, .other = a->v->data, .result = a->out->data};
    return pool_run(&p, &job);
}

PROA_KERNEL(max_pool_with_index_cpu, max_pool2d_with_index)
{
    const pool_params p = INDEX_PARAMS(a, proa__spatial_rank(a->x), "_with_index");
    pool_job job = {.task = POOL_FORWARD,
                    .x = a->x->data,
                    .result = a->out->data,
                    .mask = (int32_t *)(void *)a->mask->data};
    if (a->x->numel / (a->x->shape[0] * a->x->shape[1] + 1) > INT32_MAX)
        return proa__op_fail(PROA_ERR_OVERFLOW, proa_find_op(p.op), "x",
                             "has planes of more than 2^31 elements, too many for an int32 mask");
    return pool_run(&p, &job);
}

PROA_KERNEL(max_pool_with_index_grad_cpu, max_pool2d_with_index_grad)
{
    const pool_params p = INDEX_PARAMS(a, proa__spatial_rank(a->x), "_with_index_grad");
    pool_job job = {.task = POOL_SCATTER,
                    .other = a->d_out->data,
                    .result = a->d_x->data,
                    .mask = (int32_t *)(void *)a->mask->data};
    return pool_run(&p, &job);
}
