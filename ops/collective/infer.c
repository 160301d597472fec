/* Shape inference of the collectives. Where a shape depends on the number of ranks, the attribute `nranks`
 * gives it; 0 means the size of the group. May use core. */
#include "impl/collective.h"

#include "ops/collective/group.h"

static proa_status check_root(const char *op, const char *argument, int64_t group, int64_t root)
{
    const proa_group *g = proa__group(op, group);
    if (!g) return proa_error();
    if (root >= 0 && root < g->size) return PROA_OK;
    return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), argument,
                         "is %lld; expected a rank below %d", (long long)root, g->size);
}

/* True for variables of programs, whose ranks are checked when they run: a loaded program may name ranks that
 * this job lacks. */
static bool symbolic(const proa_tensor *x) { return x->flags & PROA_T_SYMBOLIC; }

proa_status collective_broadcast_infer(const proa_broadcast_args *a, proa_broadcast_metas *m)
{
    if (!symbolic(a->x)) PROA_TRY(check_root("broadcast", "src", a->group, a->src));
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status reduce_to_infer(const proa_reduce_to_args *a, proa_reduce_to_metas *m)
{
    if (!symbolic(a->x)) PROA_TRY(check_root("reduce_to", "dst", a->group, a->dst));
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

/* Multiplies one dim of m by the number of ranks. */
static proa_status join(const char *op, const proa_tensor *x, int dim, int64_t group, int64_t nranks,
                        proa_meta *m)
{
    *m = proa_meta_of(x);
    if (m->ndim == 0)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x",
                             "is 0-D; expected an axis to join along");
    if (dim < 0) dim += m->ndim;
    int64_t ranks = ranks_of(op, group, nranks);
    if (ranks < 0) return proa_error();
    size_t joined = 0;
    if (m->shape[dim] > 0) {
        if (!proa__mul_size((size_t)m->shape[dim], (size_t)ranks, &joined)) return proa_error();
        m->shape[dim] = (int64_t)joined;
    }
    return PROA_OK;
}

/* Divides one dim of m by the number of ranks. */
static proa_status divide(const char *op, const proa_tensor *x, int dim, int64_t group, int64_t nranks,
                          proa_meta *m)
{
    *m = proa_meta_of(x);
    int64_t ranks = ranks_of(op, group, nranks);
    if (ranks < 0) return proa_error();
    if (dim < 0) dim += m->ndim;
    if (m->ndim == 0 || (m->shape[dim] > 0 && m->shape[dim] % ranks))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x",
                             "is %s; axis %d must split into %lld equal parts", proa__tensor_text(x), dim,
                             (long long)ranks);
    if (m->shape[dim] > 0) m->shape[dim] /= ranks;
    return PROA_OK;
}

proa_status all_gather_infer(const proa_all_gather_args *a, proa_all_gather_metas *m)
{
    return join("all_gather", a->x, 0, a->group, a->nranks, &m->out);
}

proa_status reduce_scatter_infer(const proa_reduce_scatter_args *a, proa_reduce_scatter_metas *m)
{
    return divide("reduce_scatter", a->x, 0, a->group, a->nranks, &m->out);
}

proa_status scatter_from_infer(const proa_scatter_from_args *a, proa_scatter_from_metas *m)
{
    if (!symbolic(a->x)) PROA_TRY(check_root("scatter_from", "src", a->group, a->src));
    return divide("scatter_from", a->x, 0, a->group, a->nranks, &m->out);
}

proa_status all_to_all_infer(const proa_all_to_all_args *a, proa_all_to_all_metas *m)
{
    m->out = proa_meta_of(a->x);
    if (m->out.ndim == 0)
        return ROWS_FAIL(all_to_all, INVALID_ARGUMENT, "x", "is 0-D; expected an axis 0 to divide");
    return PROA_OK;
}

static proa_status expert_rows(const char *op, const proa_tensor *x, proa_meta *m)
{
    *m = proa_meta_of(x);
    if (m->ndim == 0)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x", "is 0-D; expected rows");
    m->shape[0] = -1;
    return PROA_OK;
}

proa_status global_scatter_infer(const proa_global_scatter_args *a, proa_global_scatter_metas *m)
{
    return expert_rows("global_scatter", a->x, &m->out);
}

proa_status global_gather_infer(const proa_global_gather_args *a, proa_global_gather_metas *m)
{
    return expert_rows("global_gather", a->x, &m->out);
}

static proa_meta bytes(int64_t n) { return (proa_meta){.dtype = PROA_U8, .ndim = 1, .shape = {n}}; }

proa_status p2p_send_infer(const proa_p2p_send_args *a, proa_p2p_send_metas *m)
{
    (void)a;
    m->sent = bytes(0);
    return PROA_OK;
}

proa_status p2p_recv_infer(const proa_p2p_recv_args *a, proa_p2p_recv_metas *m)
{
    if (a->shape.count > PROA_MAX_DIMS)
        return ROWS_FAIL(p2p_recv, INVALID_ARGUMENT, "shape", "has %lld dims; at most %d are possible",
                         (long long)a->shape.count, PROA_MAX_DIMS);
    m->out = (proa_meta){.dtype = a->dtype, .ndim = (int8_t)a->shape.count};
    for (int i = 0; i < m->out.ndim; i++) {
        m->out.shape[i] = a->shape.at[i];
        if (a->shape.at[i] < 0)
            return ROWS_FAIL(p2p_recv, INVALID_ARGUMENT, "shape",
                             "has %lld as dim %d; expected what the other rank sends",
                             (long long)a->shape.at[i], i);
    }
    return PROA_OK;
}

proa_status gen_ring_id_infer(const proa_gen_ring_id_args *a, proa_gen_ring_id_metas *m)
{
    size_t others = strlen(a->other_endpoints);
    m->id = bytes((int64_t)(strlen(a->endpoint) + others + (others > 0)));
    return PROA_OK;
}

proa_status init_ring_infer(const proa_init_ring_args *a, proa_init_ring_metas *m)
{
    if (a->nranks < 0 || (a->nranks > 0 && (a->rank < 0 || a->rank >= a->nranks)))
        return ROWS_FAIL(init_ring, OUT_OF_RANGE, "rank",
                         "is %lld of %lld; expected one below the number of ranks", (long long)a->rank,
                         (long long)a->nranks);
    m->done = bytes(0);
    return PROA_OK;
}

/* ---- tensor parallel layers ------------------------------------------------------------ */

proa_status mp_concat_infer(const proa_mp_concat_args *a, proa_mp_concat_metas *m)
{
    return join("mp_concat", a->x, -1, a->group, a->nranks, &m->out);
}

proa_status mp_split_infer(const proa_mp_split_args *a, proa_mp_split_metas *m)
{
    return divide("mp_split", a->x, -1, a->group, a->nranks, &m->out);
}

static proa_status check_lookup(const char *op, const proa_tensor *weight, const proa_tensor *x)
{
    if (weight->ndim != 2)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "weight",
                             "is %s; expected a table [rows, length]", proa__tensor_text(weight));
    if (!rows_is_integer(x->dtype) || x->ndim >= PROA_MAX_DIMS)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x",
                             "is %s; expected integers: numbers of rows", proa__tensor_text(x));
    return PROA_OK;
}

proa_status mp_embedding_infer(const proa_mp_embedding_args *a, proa_mp_embedding_metas *m)
{
    PROA_TRY(check_lookup("mp_embedding", a->weight, a->x));
    m->out = proa_meta_of(a->x);
    m->out.dtype = (proa_dtype)a->weight->dtype;
    m->out.shape[m->out.ndim++] = a->weight->shape[1];
    return PROA_OK;
}

proa_status mp_embedding_grad_infer(const proa_mp_embedding_grad_args *a, proa_mp_embedding_grad_metas *m)
{
    PROA_TRY(check_lookup("mp_embedding_grad", a->weight, a->x));
    bool fits = a->d_out->ndim == a->x->ndim + 1 && a->d_out->dtype == a->weight->dtype &&
                rows_dims_agree(a->d_out->shape[a->x->ndim], a->weight->shape[1]);
    for (int i = 0; fits && i < a->x->ndim; i++) fits = rows_dims_agree(a->d_out->shape[i], a->x->shape[i]);
    if (!fits)
        return ROWS_FAIL(mp_embedding_grad, INVALID_ARGUMENT, "d_out",
                         "is %s; expected a row of weight %s an entry of x %s", proa__tensor_text(a->d_out),
                         proa__tensor_text(a->weight), proa__tensor_text(a->x));
    m->d_weight = proa_meta_of(a->weight);
    return PROA_OK;
}

/* Shape of the losses: logits' with a last dim of 1, which label has, too, or leaves out. */
static proa_status loss_shape(const char *op, const proa_tensor *logits, const proa_tensor *label,
                              proa_meta *loss)
{
    *loss = proa_meta_of(logits);
    bool fits = loss->ndim > 0 && rows_is_integer(label->dtype) &&
                (label->ndim == loss->ndim - 1 ||
                 (label->ndim == loss->ndim && rows_dims_agree(label->shape[loss->ndim - 1], 1)));
    for (int i = 0; fits && i < loss->ndim - 1; i++) fits = rows_dims_agree(label->shape[i], loss->shape[i]);
    if (!fits)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "label",
                             "is %s; expected an integer for each row of logits %s", proa__tensor_text(label),
                             proa__tensor_text(logits));
    loss->shape[loss->ndim - 1] = 1;
    return PROA_OK;
}

proa_status mp_cross_entropy_infer(const proa_mp_cross_entropy_args *a, proa_mp_cross_entropy_metas *m)
{
    m->softmax = proa_meta_of(a->logits);
    return loss_shape("mp_cross_entropy", a->logits, a->label, &m->loss);
}

proa_status mp_cross_entropy_grad_infer(const proa_mp_cross_entropy_grad_args *a,
                                        proa_mp_cross_entropy_grad_metas *m)
{
    proa_meta loss;
    PROA_TRY(loss_shape("mp_cross_entropy_grad", a->softmax, a->label, &loss));
    bool fits = a->d_loss->dtype == a->softmax->dtype && a->d_loss->ndim == loss.ndim;
    for (int i = 0; fits && i < loss.ndim; i++) fits = rows_dims_agree(a->d_loss->shape[i], loss.shape[i]);
    if (!fits)
        return ROWS_FAIL(mp_cross_entropy_grad, INVALID_ARGUMENT, "d_loss",
                         "is %s; expected one for each row of softmax %s", proa__tensor_text(a->d_loss),
                         proa__tensor_text(a->softmax));
    m->d_logits = proa_meta_of(a->softmax);
    return PROA_OK;
}
