/* Shapes and gradients of message passing and of segment reductions. May use core, kernels and public ops. */
#include "ops/ints.h"
#include "ops/index/index.h"
#include "kernels/rowwise.h"
#include "ops/wire_util.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/graph.h"
#include "impl/index.h"
#include "impl/reduce.h"
#include "impl/shape.h"

static proa_status check_index(const char *op, const char *name, const proa_tensor *t, int64_t count)
{
    bool whole = t->dtype == PROA_I32 || t->dtype == PROA_I64;
    if (whole && t->ndim == 1 && (count < 0 || rows_dims_agree(t->shape[0], count))) return PROA_OK;
    if (!whole) return proa__check_index_dtype(op, name, t);
    if (count < 0)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                             "is %s; expected int32 or int64 of one dim", proa__tensor_text(t));
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                         "is %s; expected int32 or int64[%lld]", proa__tensor_text(t), (long long)count);
}

static proa_status check_rows(const char *op, const char *name, const proa_tensor *x)
{
    if (x->ndim >= 1) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                         "is 0-D; expected rows along its first dim");
}

/* Number of rows of the result: out_size if it is given, or as many as x has. */
static proa_status out_rows(const char *op, const proa_ints *size, const proa_tensor *x, int64_t *rows)
{
    *rows = x->shape[0];
    if (size->tensor || size->tensors) {
        *rows = -1;
        return PROA_OK;
    }
    if (size->count > 1)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "out_size",
                             "has %lld entries; expected one", (long long)size->count);
    if (size->count && size->at[0] > 0) *rows = size->at[0];
    return PROA_OK;
}

static void count_meta(proa_meta *m, int reduce, int64_t rows, proa_dtype dtype)
{
    if (reduce == PROA_GRAPH_REDUCE_MEAN) *m = (proa_meta){.dtype = dtype, .ndim = 1, .shape = {rows}};
}

proa_status graph_send_recv_infer(const proa_graph_send_recv_args *a, proa_graph_send_recv_metas *m)
{
    static const char op[] = "graph_send_recv";
    PROA_TRY(check_rows(op, "x", a->x));
    PROA_TRY(check_index(op, "src_index", a->src_index, -1));
    PROA_TRY(check_index(op, "dst_index", a->dst_index, a->src_index->shape[0]));
    m->out = proa_meta_of(a->x);
    PROA_TRY(out_rows(op, &a->out_size, a->x, &m->out.shape[0]));
    count_meta(&m->dst_count, a->reduce_op, m->out.shape[0], PROA_I32);
    return PROA_OK;
}

/* The broadcast shape of rows of x and y, behind `rows` of them. */
static proa_status rows_meta(const char *op, const proa_tensor *x, const proa_tensor *y, int64_t rows,
                             proa_meta *m)
{
    int dx = x->ndim - 1, dy = y->ndim - 1, d = dx > dy ? dx : dy;
    *m = (proa_meta){.dtype = (proa_dtype)x->dtype, .ndim = (int8_t)(d + 1), .shape = {rows}};
    for (int i = 0; i < d; i++) {
        int64_t p = i < d - dx ? 1 : x->shape[i - (d - dx) + 1],
                q = i < d - dy ? 1 : y->shape[i - (d - dy) + 1];
        if (p != 1 && q != 1 && !rows_dims_agree(p, q))
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "y",
                                 "is %s, whose rows do not broadcast against those of x, %s",
                                 proa__tensor_text(y), proa__tensor_text(x));
        m->shape[i + 1] = p == 1 ? q : q == 1 || p >= 0 ? p : q;
    }
    return PROA_OK;
}

proa_status graph_send_ue_recv_infer(const proa_graph_send_ue_recv_args *a, proa_graph_send_ue_recv_metas *m)
{
    static const char op[] = "graph_send_ue_recv";
    int64_t rows;
    PROA_TRY(check_rows(op, "x", a->x));
    PROA_TRY(check_rows(op, "y", a->y));
    if (a->y->dtype != a->x->dtype)
        return ROWS_FAIL(graph_send_ue_recv, INVALID_ARGUMENT, "y", "is %s; expected the dtype of x, %s",
                         proa__tensor_text(a->y), proa_dtype_name((proa_dtype)a->x->dtype));
    PROA_TRY(check_index(op, "src_index", a->src_index, -1));
    PROA_TRY(check_index(op, "dst_index", a->dst_index, a->src_index->shape[0]));
    if (!rows_dims_agree(a->y->shape[0], a->src_index->shape[0]))
        return ROWS_FAIL(graph_send_ue_recv, INVALID_ARGUMENT, "y", "is %s; expected a row an edge, %lld",
                         proa__tensor_text(a->y), (long long)a->src_index->shape[0]);
    PROA_TRY(out_rows(op, &a->out_size, a->x, &rows));
    PROA_TRY(rows_meta(op, a->x, a->y, rows, &m->out));
    count_meta(&m->dst_count, a->reduce_op, rows, PROA_I32);
    return PROA_OK;
}

proa_status segment_pool_infer(const proa_segment_pool_args *a, proa_segment_pool_metas *m)
{
    PROA_TRY(check_rows("segment_pool", "x", a->x));
    PROA_TRY(check_index("segment_pool", "segment_ids", a->segment_ids, a->x->shape[0]));
    m->out = proa_meta_of(a->x);
    m->out.shape[0] = -1;
    if (a->pooltype == PROA_GRAPH_REDUCE_MEAN)
        m->summed_ids = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 2, .shape = {-1, 1}};
    return PROA_OK;
}

/* ---- gradients ------------------------------------------------------------------------- */

/* max(count, 1), shaped to divide or multiply the rows of t. */
static proa_tensor *per_row(proa_tensor *count, const proa_tensor *t)
{
    int64_t shape[PROA_MAX_DIMS] = {-1};
    for (int i = 1; i < t->ndim; i++) shape[i] = 1;
    proa_tensor *c =
        proa_cast(proa_reshape(count, ((proa_ints){t->ndim, shape, NULL, NULL})), (proa_dtype)t->dtype);
    return proa_maximum(c, proa_full(PROA_SCALAR_SHAPE, PROA_SCALAR(1.0), .dtype = (proa_dtype)t->dtype));
}

/* Gradient of each message: d_out; divided by count for a mean; for an extreme only where the message equals
 * it. */
static proa_tensor *to_messages(proa_tensor *d_out, proa_tensor *out, proa_tensor *count,
                                proa_tensor *message, proa_tensor *index, int reduce)
{
    if (reduce == PROA_GRAPH_REDUCE_MEAN) d_out = proa_divide(d_out, per_row(count, d_out));
    proa_tensor *d = proa_gather(d_out, index);
    if (reduce == PROA_GRAPH_REDUCE_SUM || reduce == PROA_GRAPH_REDUCE_MEAN || !d) return d;
    return proa_multiply(d, proa_cast(proa_equal(message, proa_gather(out, index)), (proa_dtype)d->dtype));
}

/* Sums the messages of each row of `like`; index: the row that each message came from. */
static proa_tensor *to_rows(proa_tensor *message, proa_tensor *index, const proa_tensor *like)
{
    int64_t n = message ? message->shape[0] : 0, rows = like->shape[0];
    if (n < 0 || rows < 0) {
        (void)proa_fail(PROA_ERR_UNSUPPORTED,
                        "graph_send_recv: the gradient needs the numbers of rows and edges; give the "
                        "program's inputs fixed sizes");
        return NULL;
    }
    proa_tensor *all =
        proa_arange(PROA_SCALAR(0), PROA_SCALAR(n), PROA_SCALAR(1), .dtype = (proa_dtype)index->dtype);
    return proa_graph_send_recv(message, all, index, .out_size = {1, &rows, NULL, NULL}).out;
}

/* Sums d, whose rows have the broadcast shape, to the rows of x. */
static proa_tensor *unbroadcast(proa_tensor *d, const proa_tensor *x)
{
    int64_t axes[PROA_MAX_DIMS], shape[PROA_MAX_DIMS];
    int count = 0, lead = d ? d->ndim - x->ndim : 0;
    for (int i = 1; d && i < d->ndim; i++)
        if (i <= lead || (x->shape[i - lead] == 1 && d->shape[i] != 1)) axes[count++] = i;
    if (!d || count == 0) return d;
    d = proa_sum(d, .axis = {count, axes, NULL, NULL}, .keepdim = true);
    if (!d || lead == 0) return d;
    shape[0] = d->shape[0];
    for (int i = 1; i < x->ndim; i++) shape[i] = x->shape[i];
    return proa_reshape(d, ((proa_ints){x->ndim, shape, NULL, NULL}));
}

/* rows, with dims of length 1 behind the first so that they broadcast as those of the message do. */
static proa_tensor *lift(proa_tensor *rows, int ndim)
{
    int64_t shape[PROA_MAX_DIMS];
    if (!rows || rows->ndim == ndim) return rows;
    for (int i = 0; i < ndim; i++) shape[i] = 1;
    shape[0] = rows->shape[0];
    for (int i = 1; i < rows->ndim; i++) shape[ndim - rows->ndim + i] = rows->shape[i];
    return proa_reshape(rows, ((proa_ints){ndim, shape, NULL, NULL}));
}

proa_status graph_send_recv_vjp(const proa_graph_send_recv_args *a, proa_graph_send_recv_grads *g)
{
    int64_t rows = a->x->shape[0];
    bool extreme = a->reduce_op == PROA_GRAPH_REDUCE_MAX || a->reduce_op == PROA_GRAPH_REDUCE_MIN;
    if (extreme) {
        proa_tensor *message = proa_gather(a->x, a->src_index);
        g->d_x = to_rows(to_messages(g->d_out, a->out, NULL, message, a->dst_index, a->reduce_op),
                         a->src_index, a->x);
        return proa_error();
    }
    if (rows < 0)
        return ROWS_FAIL(graph_send_recv, UNSUPPORTED, "x", "is %s; the gradient needs its number of rows",
                         proa__tensor_text(a->x));
    proa_tensor *d = g->d_out;
    if (a->reduce_op == PROA_GRAPH_REDUCE_MEAN) d = proa_divide(d, per_row(a->dst_count, d));
    g->d_x = proa_graph_send_recv(d, a->dst_index, a->src_index, .out_size = {1, &rows, NULL, NULL}).out;
    return proa_error();
}

proa_status graph_send_ue_recv_vjp(const proa_graph_send_ue_recv_args *a, proa_graph_send_ue_recv_grads *g)
{
    bool extreme = a->reduce_op == PROA_GRAPH_REDUCE_MAX || a->reduce_op == PROA_GRAPH_REDUCE_MIN;
    bool product = a->message_op == PROA_GRAPH_MESSAGE_MUL;
    int ndim = a->x->ndim > a->y->ndim ? a->x->ndim : a->y->ndim;
    proa_tensor *x = product || extreme ? lift(proa_gather(a->x, a->src_index), ndim) : NULL;
    proa_tensor *y = product || extreme ? lift(a->y, ndim) : NULL;
    proa_tensor *message = !extreme ? NULL : product ? proa_multiply(x, y) : proa_add(x, y);
    proa_tensor *d = to_messages(g->d_out, a->out, a->dst_count, message, a->dst_index, a->reduce_op);
    if (g->want_x) g->d_x = to_rows(unbroadcast(product ? proa_multiply(d, y) : d, a->x), a->src_index, a->x);
    if (g->want_y) g->d_y = unbroadcast(product ? proa_multiply(d, x) : d, a->y);
    return proa_error();
}

proa_status segment_pool_vjp(const proa_segment_pool_args *a, proa_segment_pool_grads *g)
{
    g->d_x = to_messages(g->d_out, a->out, a->summed_ids, a->x, a->segment_ids, a->pooltype);
    return proa_error();
}
