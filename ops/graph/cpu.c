/* CPU kernels of message passing along edges and of segment reductions. Threads divide the rows of the
 * result; each row adds its messages in the order of the edges. Compiled once per CPU level; static functions
 * and the kernels only. */
#include "kernels/iterator.h"
#include "kernels/upcast.h"
#include "impl/graph.h"

extern const proa_op proa__op_segment_pool;

typedef struct graph_job {
    const char *x, *y; /* x, y: rows of nodes and of edges; y NULL: messages are rows of x */
    char *out;
    const int64_t *src, *dst; /* row of x and of out for edge e; src NULL: row e */
    int64_t edges, rows, length, x_length, y_length;
    const int64_t *x_at, *y_at; /* element of an x or y row for each of a message; NULL: same shape */
    int64_t *count;
    int reduce;
    bool product;
} graph_job;

#define GRAPH_ROW(VALUE)                                                                    \
    if (first) {                                                                            \
        for (int64_t i = 0; i < j->length; i++) to[i] = (VALUE);                            \
    } else if (j->reduce == PROA_GRAPH_REDUCE_SUM || j->reduce == PROA_GRAPH_REDUCE_MEAN) { \
        for (int64_t i = 0; i < j->length; i++) to[i] += (VALUE);                           \
    } else if (j->reduce == PROA_GRAPH_REDUCE_MAX) {                                        \
        for (int64_t i = 0; i < j->length; i++) to[i] = (VALUE) > to[i] ? (VALUE) : to[i];  \
    } else {                                                                                \
        for (int64_t i = 0; i < j->length; i++) to[i] = (VALUE) < to[i] ? (VALUE) : to[i];  \
    }

#define T int32_t
#include "range.inc"
#undef T
#define T int64_t
#include "range.inc"
#undef T
#define T float
#include "range.inc"
#undef T
#define T double
#include "range.inc"
#undef T

static proa_status graph_run(graph_job *j, proa_dtype dtype)
{
    proa_range_fn body = dtype == PROA_I32   ? graph_range_int32_t
                         : dtype == PROA_I64 ? graph_range_int64_t
                         : dtype == PROA_F32 ? graph_range_float
                                             : graph_range_double;
    double work = (double)j->edges * (double)(j->length + 8) + (double)j->rows * (double)j->length;
    int64_t grain = (int64_t)((double)j->rows * PROA_GRAIN / (work + 1)) + 1;
    j->count = proa_scratch((size_t)(j->rows + 1) * sizeof *j->count);
    if (!j->count) return proa_error();
    memset(j->count, 0, (size_t)(j->rows + 1) * sizeof *j->count);
    proa__parallel_scans(j->rows, grain, body, j);
    return PROA_OK;
}

static int64_t row_length(const proa_tensor *t)
{
    int64_t n = 1;
    for (int i = 1; i < t->ndim; i++) n *= t->shape[i];
    return n;
}

static proa_status check_range(const char *op, const char *name, const int64_t *at, int64_t n, int64_t rows)
{
    for (int64_t i = 0; i < n; i++)
        if (at[i] < 0 || at[i] >= rows)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), name,
                                 "holds %lld at %lld; expected 0 to %lld", (long long)at[i], (long long)i,
                                 (long long)rows - 1);
    return PROA_OK;
}

/* Edges as int64, checked, then the messages. */
static proa_status send(const char *op, graph_job *j, const proa_tensor *x, const proa_tensor *src,
                        const proa_tensor *dst, proa_tensor *out, proa_tensor *dst_count)
{
    proa_upcast w[2] = {0};
    j->rows = out->shape[0], j->length = row_length(out), j->x_length = row_length(x);
    j->x = x->data, j->out = out->data, j->edges = dst->numel;
    proa_status s = proa__upcast_read(&w[0], src, PROA_I64);
    if (!s) s = proa__upcast_read(&w[1], dst, PROA_I64);
    if (!s) {
        j->src = (const int64_t *)(const void *)w[0].data, j->dst = (const int64_t *)(const void *)w[1].data;
        s = check_range(op, "src_index", j->src, j->edges, x->shape[0]);
        if (!s) s = check_range(op, "dst_index", j->dst, j->edges, j->rows);
    }
    if (!s) s = graph_run(j, (proa_dtype)x->dtype);
    for (int64_t d = 0; !s && dst_count && d < j->rows; d++)
        ((int32_t *)(void *)dst_count->data)[d] = (int32_t)j->count[d];
    proa_scratch_free(j->count);
    proa__upcast_end(w, 2, false);
    return s;
}

static proa_tensor *given(proa_tensor *t) { return t && !proa__absent(t) ? t : NULL; }

PROA_KERNEL(graph_send_recv_cpu, graph_send_recv)
{
    graph_job j = {.reduce = (int)a->reduce_op};
    return send("graph_send_recv", &j, a->x, a->src_index, a->dst_index, a->out, given(a->dst_count));
}

/* Index in a row of t for each element of a row of out; the dims of t behind the first broadcast to those of
 * out. */
static void broadcast_map(const proa_tensor *t, const proa_tensor *out, int64_t length, int64_t *at)
{
    int lead = out->ndim - t->ndim;
    for (int64_t i = 0; i < length; i++) {
        int64_t rest = i, step = 1, index = 0;
        for (int d = out->ndim - 1; d > lead; d--) {
            int64_t dim = t->shape[d - lead];
            if (dim != 1) index += rest % out->shape[d] * step;
            rest /= out->shape[d], step *= dim;
        }
        at[i] = index;
    }
}

PROA_KERNEL(graph_send_ue_recv_cpu, graph_send_ue_recv)
{
    graph_job j = {.reduce = (int)a->reduce_op, .product = a->message_op == PROA_GRAPH_MESSAGE_MUL};
    int64_t length = row_length(a->out), *map = NULL;
    j.y = a->y->data, j.y_length = row_length(a->y);
    if (j.y_length != length || row_length(a->x) != length) {
        map = proa_scratch((size_t)(2 * length + 1) * sizeof *map);
        if (!map) return proa_error();
        broadcast_map(a->x, a->out, length, map);
        broadcast_map(a->y, a->out, length, map + length);
        j.x_at = map, j.y_at = map + length;
    }
    proa_status s =
        send("graph_send_ue_recv", &j, a->x, a->src_index, a->dst_index, a->out, given(a->dst_count));
    proa_scratch_free(map);
    return s;
}

PROA_KERNEL(segment_pool_cpu, segment_pool)
{
    proa_upcast w[3] = {0}; /* segment_ids, x, out */
    proa_dtype dtype = (proa_dtype)a->x->dtype, as = dtype == PROA_F16 ? PROA_F32 : dtype;
    graph_job j = {.reduce = (int)a->pooltype, .edges = a->x->shape[0]};
    proa_status s = proa__upcast_read(&w[0], a->segment_ids, PROA_I64);
    if (!s) s = proa__upcast_read(&w[1], a->x, as);
    j.dst = (const int64_t *)(const void *)w[0].data, j.x = w[1].data;
    j.rows = !s && j.edges ? j.dst[j.edges - 1] + 1 : 0;
    proa_meta m = proa_meta_of(a->x), counts = {.dtype = dtype, .ndim = 2, .shape = {j.rows, 1}};
    m.shape[0] = j.rows > 0 ? j.rows : 0;
    if (!s) s = check_range("segment_pool", "segment_ids", j.dst, j.edges, j.rows);
    void *args = (void *)(uintptr_t)a;
    proa_tensor *out = s ? NULL : proa_output_resize(args, &proa__op_segment_pool, 0, &m), *summed = NULL;
    if (out && j.reduce == PROA_GRAPH_REDUCE_MEAN)
        if (!(summed = proa_output_resize(args, &proa__op_segment_pool, 1, &counts))) out = NULL;
    if (!s) s = out ? proa__upcast_write(&w[2], out, as) : proa_error();
    if (!s) {
        j.out = w[2].data, j.length = j.x_length = row_length(a->x);
        s = graph_run(&j, as);
    }
    if (!s && summed) proa__convert(dtype, summed->data, PROA_I64, j.count, j.rows);
    proa_scratch_free(j.count);
    proa__upcast_end(w, 3, s == PROA_OK);
    return s;
}
