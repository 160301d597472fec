/* Shapes and rules of embedding and its gradient, and the reader of the op's older form. May use core,
 * kernels and public ops. */
#include "core/error.h"
#include "impl/elementwise.h"
#include "impl/embedding.h"
#include "impl/shape.h"

#include <proa/wire.h>

#include "kernels/rowwise.h"

static proa_status check(const char *op, const proa_tensor *x, const proa_tensor *weight, int64_t padding_idx)
{
    proa_status code = rows_is_floating(weight->dtype) ? PROA_ERR_INVALID_ARGUMENT : PROA_ERR_WRONG_TYPE;
    if (weight->ndim != 2 || code == PROA_ERR_WRONG_TYPE)
        return proa__op_fail(code, proa_find_op(op), "weight",
                             "is %s; expected a floating table [rows, length]", proa__tensor_text(weight));
    if (!rows_is_integer(x->dtype))
        return proa__operand_dtype_fail(proa_find_op(op), "x", "is %s; expected integers",
                                        proa__tensor_text(x));
    if (x->ndim + 1 > PROA_MAX_DIMS)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x",
                             "is %s; expected at most %d dims", proa__tensor_text(x), PROA_MAX_DIMS - 1);
    if (padding_idx < -1 || (weight->shape[0] >= 0 && padding_idx >= weight->shape[0] && padding_idx != -1))
        return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "padding_idx",
                             "is %lld; expected a row of weight %s, or -1 for none", (long long)padding_idx,
                             proa__tensor_text(weight));
    return PROA_OK;
}

proa_status embedding_infer(const proa_embedding_args *a, proa_embedding_metas *m)
{
    PROA_TRY(check("embedding", a->x, a->weight, a->padding_idx));
    m->out = proa_meta_of(a->x);
    m->out.dtype = (proa_dtype)a->weight->dtype;
    m->out.shape[m->out.ndim++] = a->weight->shape[1];
    return PROA_OK;
}

proa_status embedding_grad_infer(const proa_embedding_grad_args *a, proa_embedding_grad_metas *m)
{
    PROA_TRY(check("embedding_grad", a->x, a->weight, a->padding_idx));
    bool fits = a->d_out->ndim == a->x->ndim + 1 && a->d_out->dtype == a->weight->dtype &&
                rows_dims_agree(a->d_out->shape[a->x->ndim], a->weight->shape[1]);
    for (int i = 0; fits && i < a->x->ndim; i++) fits = rows_dims_agree(a->d_out->shape[i], a->x->shape[i]);
    if (!fits)
        return ROWS_FAIL(embedding_grad, INVALID_ARGUMENT, "d_out",
                         "is %s; expected a row of weight %s an entry of x %s", proa__tensor_text(a->d_out),
                         proa__tensor_text(a->weight), proa__tensor_text(a->x));
    m->d_weight = proa_meta_of(a->weight);
    return PROA_OK;
}

/* The gradient as SelectedRows with one entry per element of x. */
static proa_tensor *rows_gradient(const proa_embedding_args *a, proa_tensor *d_out)
{
    int64_t n = a->x->numel, length = a->weight->shape[1];
    proa_tensor *index = proa_reshape(a->x, PROA_INTS(n));
    if (a->x->dtype != PROA_I32 && a->x->dtype != PROA_I64) index = proa_cast(index, PROA_I64);
    proa_tensor *values = proa_reshape(d_out, PROA_INTS(n, length));
    return proa_rows_new(index, values, a->weight->shape[0]);
}

/* True if the gradient is SelectedRows. It is dense where it is itself recorded or captured: SelectedRows
 * have no gradient and cannot be in a program. */
static bool is_sparse(const proa_embedding_args *a)
{
    return a->sparse && !proa_door_is_open(PROA_DOOR_RECORD) && !proa_door_is_open(PROA_DOOR_CAPTURE);
}

/* Paddle's sparse gradient keeps the rows at padding_idx: training moves that row, though the lookup never
 * shows it. The same table must train alike where the gradient has to be dense. */
static int64_t padding_of_grad(const proa_embedding_args *a) { return a->sparse ? -1 : a->padding_idx; }

proa_status embedding_vjp(const proa_embedding_args *a, proa_embedding_grads *g)
{
    if (g->want_weight && is_sparse(a)) g->d_weight = rows_gradient(a, g->d_out);
    else if (g->want_weight)
        g->d_weight =
            proa_embedding_grad(a->x, a->weight, g->d_out, .padding_idx = rows_option(padding_of_grad(a)));
    return proa_error();
}

/* The gradient's gradient by d_out: the lookup itself. */
proa_status embedding_grad_vjp(const proa_embedding_grad_args *a, proa_embedding_grad_grads *g)
{
    if (g->want_d_out)
        g->d_d_out = proa_embedding(a->x, g->d_d_weight, .padding_idx = rows_option(a->padding_idx));
    return proa_error();
}

/* lookup_table: ids end in a dim of length 1, which the result does not have. */
proa_status embedding_read_v1(proa_wire_reader *r)
{
    proa_tensor *ids = proa_wire_input(r, "Ids"), *weight = proa_wire_input(r, "W");
    if (!ids || !weight) return proa_error();
    proa_tensor *flat = proa_squeeze(ids, .axis = PROA_INTS(-1));
    proa_tensor *out =
        proa_embedding(flat, weight, .padding_idx = rows_option(proa_wire_int(r, "padding_idx", -1)));
    return proa_wire_result(r, "Out", out);
}
