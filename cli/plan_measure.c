/* Speeds that `proa plan --measure` finds on this machine: products, memory, and the link between the ranks
 * of the job that runs it. Uses plan.h. */
#define _GNU_SOURCE
#include "plan.h"

#include <math.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The median of some calls' seconds; negative after an error. */
static double median_of(bool (*call)(void *context), void *context)
{
    enum { CALLS = 7 };
    double took[CALLS];
    if (!call(context)) return -1; /* warms up */
    for (int i = 0; i < CALLS; i++) {
        double began = now();
        if (!call(context)) return -1;
        double t = now() - began;
        int at = i;
        for (; at > 0 && took[at - 1] > t; at--) took[at] = took[at - 1];
        took[at] = t;
    }
    return took[CALLS / 2];
}

typedef struct operands {
    proa_tensor *x, *y;
} operands;

static bool multiply(void *context)
{
    PROA_SCOPED;
    const operands *o = context;
    return proa_matmul(o->x, o->y) != NULL;
}

/* FLOP/s of a product of about the sizes of a GPT's feed-forward layer: tokens of a micro-batch × hidden by
 * hidden × 4 hidden, each at most 4096. For other models all three are 1024. */
static proa_status measure_products(plan_request *q)
{
    PROA_SCOPED;
    enum { ROWS = 1024, SIDE = 4096 };
    const proa_plan_model *m = &q->model;
    int64_t rows =
        m->chain || !m->sequence ? ROWS : m->sequence * (q->job.micro_batch ? q->job.micro_batch : 1);
    const bool layered = !m->chain && m->hidden;
    int64_t inner = layered ? m->hidden : ROWS, outer = layered ? 4 * m->hidden : ROWS;
    if (rows > SIDE) rows = SIDE;
    if (inner > SIDE) inner = SIDE;
    if (outer > SIDE) outer = SIDE;
    operands o = {proa_randn(PROA_SHAPE(rows, inner), PROA_F32),
                  proa_randn(PROA_SHAPE(inner, outer), PROA_F32)};
    double seconds = o.x && o.y ? median_of(multiply, &o) : -1;
    if (seconds > 0) q->machine.flops = 2 * (double)rows * (double)inner * (double)outer / seconds;
    return proa_error();
}

static bool reduce_all(void *context)
{
    operands *o = context;
    return proa_communicate(&(proa_message){PROA_MESSAGE_ALL_REDUCE, .out = o->x}) == PROA_OK;
}

static double all_reduce_time(int64_t elements)
{
    PROA_SCOPED;
    operands o = {.x = proa_zeros(PROA_SHAPE(elements), PROA_F32)};
    return o.x ? median_of(reduce_all, &o) : -1;
}

/* Bandwidth and latency of a ring from all-reduces of two sizes: 2 (n − 1) (latency + bytes / n /
 * bandwidth). */
static proa_status measure_link(plan_request *q)
{
    enum { SMALL = 1 << 8, LARGE = 1 << 20 };
    const double n = proa_dist_size(), rounds = 2 * (n - 1);
    double small = all_reduce_time(SMALL), large = all_reduce_time(LARGE);
    PROA_TRY(proa_error());
    if (large <= small)
        return proa_fail(
            PROA_ERR_UNAVAILABLE,
            "--measure: an all-reduce of 4 MiB took no longer than one of 1 KiB; measure on a quiet machine");
    q->machine.link = rounds * 4 * (LARGE - SMALL) / n / (large - small);
    q->machine.latency = fmax(0, small / rounds - 4 * SMALL / n / q->machine.link);
    return PROA_OK;
}

static proa_status measure_kernels(plan_request *q)
{
    double gflops = 0, gbs = 0;
    if (!(q->machine.flops > 0)) PROA_TRY(measure_products(q));
    if (q->machine.memory_bandwidth > 0) return PROA_OK;
    PROA_TRY(proa_profile_roofline(&gflops, &gbs));
    q->machine.memory_bandwidth = gbs * 1e9;
    return PROA_OK;
}

proa_status plan_measure(plan_request *q, bool *prints)
{
    PROA_TRY(proa_dist_start());
    *prints = proa_dist_rank() == 0;
    proa_status status = measure_kernels(q);
    if (status == PROA_OK && proa_dist_size() > 1 && !(q->machine.link > 0)) status = measure_link(q);
    proa_dist_stop();
    return status;
}
