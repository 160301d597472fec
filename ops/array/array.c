/* Tensor arrays, stored as one tensor [items, …]: shapes, rules, and their forms in Paddle's programs, where
 * ops update the array variable in place. May use core, kernels and public ops. */
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "impl/array.h"
#include "impl/create.h"
#include "impl/shape.h"

#include <proa/wire.h>

static proa_status check_index(const char *op, const proa_tensor *index)
{
    bool one = index->numel == 1 || index->numel < 0;
    if (one && (index->dtype == PROA_I32 || index->dtype == PROA_I64)) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "index", "is %s; expected one integer", proa__tensor_text(index));
}

static proa_status check_array(const char *op, const proa_tensor *array)
{
    if (array->ndim >= 1) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "array", "is %s; expected [items, …]", proa__tensor_text(array));
}

proa_status array_create_infer(const proa_array_create_args *a, proa_array_create_metas *m)
{
    if (a->item.count > PROA_MAX_DIMS - 1)
        return OP_FAIL("array_create", INVALID_ARGUMENT, "item", "has %lld dims; expected at most %d",
                       (long long)a->item.count, PROA_MAX_DIMS - 1);
    m->array = (proa_meta){.dtype = a->dtype ? a->dtype : PROA_F32, .ndim = (int8_t)(a->item.count + 1)};
    for (int i = 1; i < m->array.ndim; i++) {
        m->array.shape[i] = a->item.at[i - 1];
        if (m->array.shape[i] < 0)
            return OP_FAIL("array_create", OUT_OF_RANGE, "item", "has the length %lld; expected at least 0",
                           (long long)m->array.shape[i]);
    }
    return PROA_OK;
}

/* Checks that x fits the array's items; an empty array takes any x. */
static proa_status check_item(const proa_tensor *array, const proa_tensor *x)
{
    bool same = array->ndim == x->ndim + 1;
    for (int i = 0; same && i < x->ndim; i++) same = rows_dims_agree(array->shape[i + 1], x->shape[i]);
    if (array->dtype == x->dtype && (same || array->shape[0] == 0) && x->ndim < PROA_MAX_DIMS) return PROA_OK;
    return OP_FAIL("array_write", INVALID_ARGUMENT, "x",
                   "is %s, and the array is %s; the items of an array have one shape and dtype: pad them, or "
                   "keep tensors of other shapes in an array of their own",
                   proa__tensor_text(x), proa__tensor_text(array));
}

proa_status array_write_infer(const proa_array_write_args *a, proa_array_write_metas *m)
{
    PROA_TRY(check_array("array_write", a->array));
    PROA_TRY(check_index("array_write", a->index));
    PROA_TRY(check_item(a->array, a->x));
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = (int8_t)(a->x->ndim + 1), .shape = {-1}};
    bool same = a->array->ndim == m->out.ndim && a->array->shape[0] != 0;
    for (int i = 0; i < a->x->ndim; i++) {
        int64_t known = a->x->shape[i] >= 0 || !same ? a->x->shape[i] : a->array->shape[i + 1];
        m->out.shape[i + 1] = known;
    }
    return PROA_OK;
}

proa_status array_write_vjp(const proa_array_write_args *a, proa_array_write_grads *g)
{
    if (g->want_x) g->d_x = proa_array_read(g->d_out, a->index);
    if (g->want_array) g->d_array = proa_array_write_grad(a->array, a->index, g->d_out);
    return proa_error();
}

proa_status array_write_grad_infer(const proa_array_write_grad_args *a, proa_array_write_grad_metas *m)
{
    PROA_TRY(check_array("array_write_grad", a->array));
    PROA_TRY(check_array("array_write_grad", a->d_out));
    PROA_TRY(check_index("array_write_grad", a->index));
    m->d_array = proa_meta_of(a->array);
    return PROA_OK;
}

/* d_out's length; item `index` of d_d_out is zero, all others are d_d_array's. */
proa_status array_write_grad_vjp(const proa_array_write_grad_args *a, proa_array_write_grad_grads *g)
{
    proa_tensor *zero = proa_full(proa__shape_like(a->d_out), 0, .dtype = (proa_dtype)a->d_out->dtype);
    g->d_d_out = proa_array_write(g->d_d_array, proa_array_read(zero, a->index), a->index);
    return proa_error();
}

proa_status array_read_infer(const proa_array_read_args *a, proa_array_read_metas *m)
{
    PROA_TRY(check_array("array_read", a->array));
    PROA_TRY(check_index("array_read", a->index));
    m->out = (proa_meta){.dtype = (proa_dtype)a->array->dtype, .ndim = (int8_t)(a->array->ndim - 1)};
    for (int i = 0; i < m->out.ndim; i++) m->out.shape[i] = a->array->shape[i + 1];
    return PROA_OK;
}

proa_status array_read_vjp(const proa_array_read_args *a, proa_array_read_grads *g)
{
    g->d_array = proa_array_read_grad(a->array, a->index, g->d_out);
    return proa_error();
}

proa_status array_read_grad_infer(const proa_array_read_grad_args *a, proa_array_read_grad_metas *m)
{
    PROA_TRY(check_array("array_read_grad", a->array));
    PROA_TRY(check_index("array_read_grad", a->index));
    m->d_array = proa_meta_of(a->array);
    m->d_array.dtype = (proa_dtype)a->d_out->dtype;
    return PROA_OK;
}

proa_status array_read_grad_vjp(const proa_array_read_grad_args *a, proa_array_read_grad_grads *g)
{
    g->d_d_out = proa_array_read(g->d_d_array, a->index);
    return proa_error();
}

proa_status array_length_infer(const proa_array_length_args *a, proa_array_length_metas *m)
{
    PROA_TRY(check_array("array_length", a->array));
    m->out = (proa_meta){.dtype = PROA_I64, .ndim = 1, .shape = {1}};
    return PROA_OK;
}

/* ---- as one tensor ---- */

static proa_status axis_of(const proa_array_to_tensor_args *a, int *axis)
{
    PROA_TRY(check_array("array_to_tensor", a->array));
    int dims = a->array->ndim - (a->use_stack ? 0 : 1);
    if (dims < 1)
        return OP_FAIL("array_to_tensor", INVALID_ARGUMENT, "array",
                       "is %s: numbers without dims can be stacked, not put side by side",
                       proa__tensor_text(a->array));
    return proa__axis("array_to_tensor", "axis", a->axis, dims, axis);
}

proa_status array_to_tensor_infer(const proa_array_to_tensor_args *a, proa_array_to_tensor_metas *m)
{
    int axis;
    PROA_TRY(axis_of(a, &axis));
    const int64_t *from = a->array->shape;
    m->out = (proa_meta){.dtype = (proa_dtype)a->array->dtype};
    for (int i = 1; i < a->array->ndim; i++) {
        if (a->use_stack && i - 1 == axis) m->out.shape[m->out.ndim++] = from[0];
        bool joined = !a->use_stack && i - 1 == axis;
        m->out.shape[m->out.ndim++] = !joined ? from[i] : from[0] < 0 || from[i] < 0 ? -1 : from[0] * from[i];
    }
    if (a->use_stack && axis == a->array->ndim - 1) m->out.shape[m->out.ndim++] = from[0];
    m->out_index = (proa_meta){.dtype = PROA_I32, .ndim = 1, .shape = {from[0]}};
    return PROA_OK;
}

proa_status array_to_tensor_vjp(const proa_array_to_tensor_args *a, proa_array_to_tensor_grads *g)
{
    int axis, n = a->array->ndim;
    PROA_TRY(axis_of(a, &axis));
    proa_tensor *d = g->d_out;
    int64_t shape[PROA_MAX_DIMS], order[PROA_MAX_DIMS];
    if (!a->use_stack) { /* [.., items · rows, ..] → [.., items, rows, ..] */
        proa_ints own = proa__shape_like(a->array), to = {n, shape, NULL, NULL};
        proa_tensor *entries[PROA_MAX_DIMS];
        for (int i = 0; i < n; i++) {
            int from = i < axis ? i + 1 : i == axis ? 0 : i;
            shape[i] = a->array->shape[from];
            entries[i] = NULL;
            if (shape[i] >= 0) continue;
            to.tensors = entries;
            entries[i] = own.tensors
                             ? own.tensors[from] /* where only some dims are unknown */
                             : proa_slice(own.tensor, PROA_INTS(0), PROA_INTS(from), PROA_INTS(from + 1));
        }
        d = proa_reshape(d, to);
    }
    order[0] = axis;
    for (int i = 1; i < n; i++) order[i] = i - 1 < axis ? i - 1 : i;
    proa_ints perm = {n, order, NULL, NULL};
    g->d_array = proa_transpose(d, perm);
    return proa_error();
}

/* ---- in Paddle's files ---- */

/* Paddle creates an array with its variable; no op in a file has this name. */
proa_status array_create_read(proa_wire_reader *r) { return proa_wire_result(r, "Out", proa_array_create()); }

proa_status array_create_write(const void *args, proa_wire_writer *w)
{
    (void)args, (void)w;
    return PROA_OK;
}

proa_status array_write_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    proa_tensor *array = proa_wire_output_now(r, "Out");
    return proa_wire_result(r, "Out", proa_array_write(array, x, proa_wire_input(r, "I")));
}

proa_status array_write_write(const void *args, proa_wire_writer *w)
{
    const proa_array_write_args *a = args;
    PROA_TRY(proa_wire_op(w, "assign"));
    PROA_TRY(proa_wire_put_input(w, "X", a->array));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa_wire_op(w, "write_to_array"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_input(w, "I", a->index));
    return proa_wire_put_output(w, "Out", a->out);
}
