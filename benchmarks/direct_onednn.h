/* Times oneDNN called directly: primitives, memory objects and scratchpad are made once, and only the
 * execution is timed. In a build without oneDNN the functions report that nothing is ready. */
#ifndef PROA_BENCHMARKS_DIRECT_ONEDNN_H
#define PROA_BENCHMARKS_DIRECT_ONEDNN_H

#include "timing.h"

#if defined(PROA_HAVE_ONEDNN)
#include <dnnl.h>

enum { DIRECT_STEPS = 4, DIRECT_MEMORIES = 6 };

/* Primitives to run one after the other: reorders in, the operation, a reorder out. */
typedef struct direct {
    int ready, n_steps, n_memories;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t step[DIRECT_STEPS];
    dnnl_exec_arg_t args[DIRECT_STEPS][3];
    int n_args[DIRECT_STEPS];
    dnnl_memory_t memory[DIRECT_MEMORIES];
} direct;

static void direct_check(dnnl_status_t status)
{
    if (status == dnnl_success) return;
    fprintf(stderr, "oneDNN called directly fails with status %d\n", (int)status);
    exit(1);
}

static void direct_begin(direct *d)
{
    direct_check(dnnl_engine_create(&d->engine, dnnl_cpu, 0));
    direct_check(dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags));
}

/* data NULL: oneDNN allocates. */
static dnnl_memory_t direct_memory(direct *d, const_dnnl_memory_desc_t md, void *data)
{
    dnnl_memory_t m;
    direct_check(dnnl_memory_create(&m, md, d->engine, data ? data : DNNL_MEMORY_ALLOCATE));
    return d->memory[d->n_memories++] = m;
}

static void direct_step(direct *d, const_dnnl_primitive_desc_t pd, int n, const dnnl_exec_arg_t *args)
{
    direct_check(dnnl_primitive_create(&d->step[d->n_steps], pd));
    for (int i = 0; i < n; i++) d->args[d->n_steps][i] = args[i];
    d->n_args[d->n_steps++] = n;
}

static void direct_reorder(direct *d, dnnl_memory_t from, dnnl_memory_t to)
{
    const_dnnl_memory_desc_t a, b;
    direct_check(dnnl_memory_get_memory_desc(from, &a));
    direct_check(dnnl_memory_get_memory_desc(to, &b));
    dnnl_primitive_desc_t pd;
    direct_check(dnnl_reorder_primitive_desc_create(&pd, a, d->engine, b, d->engine, NULL));
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    direct_step(d, pd, 2, args);
    dnnl_primitive_desc_destroy(pd);
}

static dnnl_memory_desc_t direct_desc(int n, const int64_t *dims, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    direct_check(dnnl_memory_desc_create_with_tag(&md, n, dims, dnnl_f32, tag));
    return md;
}

static void direct_matmul(direct *d, int64_t n, void *x, void *y)
{
    direct_begin(d);
    int64_t dims[] = {n, n};
    dnnl_memory_desc_t md = direct_desc(2, dims, dnnl_ab);
    dnnl_primitive_desc_t pd;
    direct_check(dnnl_matmul_primitive_desc_create(&pd, d->engine, md, md, NULL, md, NULL));
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, direct_memory(d, md, x)},
                              {DNNL_ARG_WEIGHTS, direct_memory(d, md, y)},
                              {DNNL_ARG_DST, direct_memory(d, md, NULL)}};
    direct_step(d, pd, 3, args);
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_desc_destroy(md);
    d->ready = 1;
}

/* x: dims, NCHW; w: as many channels in as out, 3 × 3, padding 1. plain: reorders of all three are part of
 * each run; otherwise x and w are brought into oneDNN's own layouts once. */
static void direct_conv3x3(direct *d, const int64_t *dims, void *x, void *w, int plain)
{
    direct_begin(d);
    const dnnl_dims_t filter = {dims[1], dims[1], 3, 3}, one = {1, 1};
    const dnnl_dims_t none = {0};
    dnnl_memory_desc_t any = direct_desc(4, dims, dnnl_format_tag_any),
                       nchw = direct_desc(4, dims, dnnl_nchw);
    dnnl_memory_desc_t any_w = direct_desc(4, filter, dnnl_format_tag_any),
                       oihw = direct_desc(4, filter, dnnl_oihw);
    dnnl_primitive_desc_t pd;
    direct_check(dnnl_convolution_forward_primitive_desc_create(&pd, d->engine, dnnl_forward_inference,
                                                                dnnl_convolution_direct, any, any_w, NULL,
                                                                any, one, none, one, one, NULL));
    dnnl_memory_t in = direct_memory(d, nchw, x), filters = direct_memory(d, oihw, w);
    dnnl_memory_t out = direct_memory(d, nchw, NULL);
    dnnl_memory_t inner[3];
    dnnl_query_t which[] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md};
    for (int i = 0; i < 3; i++) {
        const_dnnl_memory_desc_t want = dnnl_primitive_desc_query_md(pd, which[i], 0);
        int same = i != 1 && dnnl_memory_desc_equal(want, nchw);
        inner[i] = same ? (i == 0 ? in : out) : direct_memory(d, want, NULL);
    }
    if (inner[0] != in) direct_reorder(d, in, inner[0]);
    direct_reorder(d, filters, inner[1]);
    dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, inner[0]}, {DNNL_ARG_WEIGHTS, inner[1]}, {DNNL_ARG_DST, inner[2]}};
    if (!plain) { /* the reorders so far happen now, and never again */
        for (int i = 0; i < d->n_steps; i++) {
            direct_check(dnnl_primitive_execute(d->step[i], d->stream, d->n_args[i], d->args[i]));
            dnnl_primitive_destroy(d->step[i]);
        }
        d->n_steps = 0;
    }
    direct_step(d, pd, 3, args);
    if (plain && inner[2] != out) direct_reorder(d, inner[2], out);
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_desc_destroy(any);
    dnnl_memory_desc_destroy(nchw);
    dnnl_memory_desc_destroy(any_w);
    dnnl_memory_desc_destroy(oihw);
    d->ready = 1;
}

static double direct_seconds(direct *d)
{
    double start = now();
    for (int i = 0; i < d->n_steps; i++)
        direct_check(dnnl_primitive_execute(d->step[i], d->stream, d->n_args[i], d->args[i]));
    direct_check(dnnl_stream_wait(d->stream));
    return now() - start;
}

static void direct_free(direct *d)
{
    for (int i = 0; i < d->n_steps; i++) dnnl_primitive_destroy(d->step[i]);
    for (int i = 0; i < d->n_memories; i++) dnnl_memory_destroy(d->memory[i]);
    dnnl_stream_destroy(d->stream);
    dnnl_engine_destroy(d->engine);
}

#else
typedef struct direct {
    int ready;
} direct;
static inline void direct_matmul(direct *d, int64_t n, void *x, void *y)
{
    (void)d, (void)n, (void)x, (void)y;
}
static inline void direct_conv3x3(direct *d, const int64_t *dims, void *x, void *w, int plain)
{
    (void)d, (void)dims, (void)x, (void)w, (void)plain;
}
static inline double direct_seconds(direct *d)
{
    (void)d;
    return 0;
}
static inline void direct_free(direct *d) { (void)d; }
#endif

#endif
