/* Shape inference of a parameter server's worker. May use core. */
#include "impl/ps.h"

#include "core/internal.h"

static proa_meta nothing(void) { return (proa_meta){.dtype = PROA_U8, .ndim = 1, .shape = {0}}; }

proa_status distributed_lookup_table_infer(const proa_distributed_lookup_table_args *a,
                                           proa_distributed_lookup_table_metas *m)
{
    const proa_op *op = proa_find_op("distributed_lookup_table");
    if (a->width < 1)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, "width", "is %lld; expected the length of a row",
                             (long long)a->width);
    PROA_TRY(proa_metas_resize(&m->out, a->ids.count));
    for (int64_t i = 0; i < a->ids.count; i++) {
        proa_meta *out = &m->out.at[i];
        *out = proa_meta_of(a->ids.at[i]);
        if (out->ndim >= PROA_MAX_DIMS)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, "ids", "has rank %d; expected at most %d",
                                 out->ndim, PROA_MAX_DIMS - 1);
        out->shape[out->ndim++] = a->width;
        out->dtype = PROA_F32;
    }
    return PROA_OK;
}

proa_status distributed_push_sparse_infer(const proa_distributed_push_sparse_args *a,
                                          proa_distributed_push_sparse_metas *m)
{
    if (a->ids.count != a->grads.count)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("distributed_push_sparse"), "grads",
                             "are %lld for %lld lists of ids; expected as many", (long long)a->grads.count,
                             (long long)a->ids.count);
    m->sent = nothing();
    return PROA_OK;
}

proa_status ps_send_infer(const proa_ps_send_args *a, proa_ps_send_metas *m)
{
    (void)a;
    m->sent = nothing();
    return PROA_OK;
}

proa_status ps_recv_infer(const proa_ps_recv_args *a, proa_ps_recv_metas *m)
{
    if (a->width < 1)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("ps_recv"), "width",
                             "is %lld; expected the number of values of the table", (long long)a->width);
    m->out = (proa_meta){.dtype = PROA_F32, .ndim = 1, .shape = {a->width}};
    return PROA_OK;
}
