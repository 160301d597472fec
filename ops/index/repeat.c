/* Shape inference, rules and wire forms of repeat_interleave, unique_consecutive, multiplex and shard_index.
 * May use core, kernels, ops and proa/wire.h. */
#include "ops/index/index.h"
#include "kernels/rowwise.h"
#include "ops/shape/slice.h"
#include "ops/wire_like.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/index.h"
#include "impl/shape.h"

/* ---- repeat_interleave ------------------------------------------------------------------- */

/* The length that `length` slices have repeated; −1 when only running tells. */
static proa_status repeated(const char *who, const proa_tensor *each, int64_t repeats, int64_t length,
                            int64_t *to)
{
    *to = -1;
    if (proa__is_given(each)) {
        PROA_TRY(proa__check_index_dtype(who, "repeats_tensor", each));
        if (each->ndim <= 1 && (each->numel < 0 || each->numel == 1 || rows_dims_agree(each->numel, length)))
            return PROA_OK;
        return OP_FAIL(who, INVALID_ARGUMENT, "repeats_tensor", "is %s; expected 1 entry or %lld",
                       proa__tensor_text(each), (long long)length);
    }
    if (repeats < 0)
        return OP_FAIL(who, INVALID_ARGUMENT, "repeats", "is %lld; expected 0 or more", (long long)repeats);
    if (length >= 0 && __builtin_mul_overflow(length, repeats, to))
        return OP_FAIL(who, OVERFLOW, "repeats", "is %lld", (long long)repeats);
    return PROA_OK;
}

proa_status repeat_interleave_infer(const proa_repeat_interleave_args *a, proa_repeat_interleave_metas *m)
{
    static const char who[] = "repeat_interleave";
    int axis;
    m->out = proa_meta_of(a->x);
    if (a->x->ndim == 0) return OP_FAIL(who, INVALID_ARGUMENT, "x", "is 0-D and has no axis to repeat along");
    PROA_TRY(proa__axis(who, "axis", a->axis, a->x->ndim, &axis));
    return repeated(who, a->repeats_tensor, a->repeats, a->x->shape[axis], &m->out.shape[axis]);
}

proa_status repeat_interleave_vjp(const proa_repeat_interleave_args *a, proa_repeat_interleave_grads *g)
{
    g->d_x = proa_repeat_interleave_grad(g->d_out, a->repeats_tensor, proa__shape_like(a->x),
                                         .repeats = rows_option(a->repeats), .axis = rows_option(a->axis));
    return proa_error();
}

proa_status repeat_interleave_grad_infer(const proa_repeat_interleave_grad_args *a,
                                         proa_repeat_interleave_grad_metas *m)
{
    static const char who[] = "repeat_interleave_grad";
    int axis;
    int64_t length;
    PROA_TRY(proa__dims_meta(who, "shape", &a->shape, a->d_out->dtype, &m->d_x));
    PROA_TRY(proa__axis(who, "axis", a->axis, m->d_x.ndim, &axis));
    PROA_TRY(repeated(who, a->repeats_tensor, a->repeats, m->d_x.shape[axis], &length));
    bool fits = a->d_out->ndim == m->d_x.ndim;
    for (int i = 0; fits && i < m->d_x.ndim; i++)
        fits = rows_dims_agree(a->d_out->shape[i], i == axis ? length : m->d_x.shape[i]);
    if (fits) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, "d_out", "is %s; expected %s repeated along axis %d",
                   proa__tensor_text(a->d_out), proa__shape_text(m->d_x.shape, m->d_x.ndim), axis);
}

proa_status repeat_interleave_grad_vjp(const proa_repeat_interleave_grad_args *a,
                                       proa_repeat_interleave_grad_grads *g)
{
    g->d_d_out = proa_repeat_interleave(g->d_d_x, a->repeats_tensor, .repeats = rows_option(a->repeats),
                                        .axis = rows_option(a->axis));
    return proa_error();
}

/* Paddle looks for RepeatsTensor even where it is empty. */
proa_status repeat_interleave_write(const void *args, proa_wire_writer *w)
{
    const proa_repeat_interleave_args *a = args;
    PROA_TRY(proa_wire_op(w, "repeat_interleave"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_input(w, "RepeatsTensor", a->repeats_tensor));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa_wire_put_int(w, "Repeats", PROA_WIRE_INT, a->repeats));
    return proa_wire_put_int(w, "dim", PROA_WIRE_INT, a->axis < 0 ? a->axis + a->x->ndim : a->axis);
}

proa_status repeat_interleave_grad_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *d_out = proa_wire_input(r, "Out@GRAD");
    if (!x || !d_out) return proa_error();
    int64_t repeats = proa_wire_int(r, "Repeats", 0), axis = proa_wire_int(r, "dim", 0);
    proa_tensor *d_x =
        proa_repeat_interleave_grad(d_out, proa_wire_input(r, "RepeatsTensor"), proa__shape_like(x),
                                    .repeats = rows_option(repeats), .axis = rows_option(axis));
    return proa_wire_result(r, "X@GRAD", d_x);
}

proa_status repeat_interleave_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_repeat_interleave_grad_args *a = args;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x);
    if (!x) return proa_error();
    PROA_TRY(proa_wire_op(w, "repeat_interleave_grad"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_input(w, "RepeatsTensor", a->repeats_tensor));
    PROA_TRY(proa_wire_put_input(w, "Out@GRAD", a->d_out));
    PROA_TRY(proa_wire_put_output(w, "X@GRAD", a->d_x));
    PROA_TRY(proa_wire_put_int(w, "Repeats", PROA_WIRE_INT, a->repeats));
    return proa_wire_put_int(w, "dim", PROA_WIRE_INT, a->axis < 0 ? a->axis + a->d_x->ndim : a->axis);
}

/* Paddle's kernel reads int32 only. */
proa_status multiplex_write(const void *args, proa_wire_writer *w)
{
    const proa_multiplex_args *a = args;
    proa_tensor *index = a->index;
    if (index->dtype != PROA_I32) {
        proa_meta m = proa_meta_of(index);
        m.dtype = PROA_I32;
        if (!(index = proa_wire_temporary(w, &m))) return proa_error();
        PROA_TRY(proa__wire_put_cast(w, a->index, index));
    }
    PROA_TRY(proa_wire_op(w, "multiplex"));
    for (int64_t i = 0; i < a->inputs.count; i++) PROA_TRY(proa_wire_put_input(w, "X", a->inputs.at[i]));
    PROA_TRY(proa_wire_put_input(w, "Ids", index));
    return proa_wire_put_output(w, "Out", a->out);
}

/* ---- unique_consecutive ------------------------------------------------------------------ */

proa_status unique_consecutive_infer(const proa_unique_consecutive_args *a, proa_unique_consecutive_metas *m)
{
    static const char who[] = "unique_consecutive";
    int axis = 0;
    if (a->axis.count > 1)
        return OP_FAIL(who, INVALID_ARGUMENT, "axis", "has %lld entries; expected none or one",
                       (long long)a->axis.count);
    if (a->dtype != PROA_I32 && a->dtype != PROA_I64)
        return OP_FAIL(who, INVALID_ARGUMENT, "dtype", "is %s; expected int32 or int64",
                       proa_dtype_name(a->dtype));
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 1, .shape = {-1}};
    proa_meta list = {.dtype = a->dtype, .ndim = 1, .shape = {-1}};
    if (a->return_counts) m->counts = list;
    list.shape[0] = a->x->numel;
    if (a->axis.count) {
        PROA_TRY(proa__axis(who, "axis", a->axis.at[0], a->x->ndim, &axis));
        if (a->x->ndim) {
            m->out = proa_meta_of(a->x);
            m->out.shape[axis] = -1;
            list.shape[0] = a->x->shape[axis];
        }
    }
    if (a->return_inverse) m->inverse = list;
    return PROA_OK;
}

/* Paddle wants both lists, asked for or not. */
proa_status unique_consecutive_write(const void *args, proa_wire_writer *w)
{
    const proa_unique_consecutive_args *a = args;
    proa_meta list = {.dtype = a->dtype, .ndim = 1, .shape = {-1}};
    proa_tensor *inverse = proa__is_given(a->inverse) ? a->inverse : proa_wire_temporary(w, &list);
    proa_tensor *counts = proa__is_given(a->counts) ? a->counts : proa_wire_temporary(w, &list);
    if (!inverse || !counts) return proa_error();
    PROA_TRY(proa_wire_op(w, "unique_consecutive"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa_wire_put_output(w, "Index", inverse));
    PROA_TRY(proa_wire_put_output(w, "Counts", counts));
    PROA_TRY(proa_wire_put_int(w, "return_inverse", PROA_WIRE_BOOLEAN, a->return_inverse));
    PROA_TRY(proa_wire_put_int(w, "return_counts", PROA_WIRE_BOOLEAN, a->return_counts));
    PROA_TRY(proa_wire_put_ints(w, "axis", PROA_WIRE_INTS, a->axis));
    return proa__wire_put_dtype(w, "dtype", a->dtype);
}

/* ---- multiplex, shard_index -------------------------------------------------------------- */

proa_status multiplex_infer(const proa_multiplex_args *a, proa_multiplex_metas *m)
{
    const proa_tensor *first = a->inputs.count ? a->inputs.at[0] : NULL, *index = a->index;
    if (!first || first->ndim < 1)
        return OP_FAIL("multiplex", INVALID_ARGUMENT, "inputs", "must hold tensors with one axis or more");
    for (int64_t k = 1; k < a->inputs.count; k++)
        if (!rows_same_shape(first, a->inputs.at[k]) || first->dtype != a->inputs.at[k]->dtype)
            return OP_FAIL("multiplex", INVALID_ARGUMENT, "inputs",
                           "entry %lld is %s; expected %s, as entry 0", (long long)k,
                           proa__tensor_text(a->inputs.at[k]), proa__tensor_text(first));
    PROA_TRY(proa__check_index_dtype("multiplex", "index", index));
    m->out = proa_meta_of(first);
    if (!rows_dims_agree(index->numel, first->shape[0]))
        return OP_FAIL("multiplex", INVALID_ARGUMENT, "index", "is %s; expected %lld entries, one a row",
                       proa__tensor_text(index), (long long)first->shape[0]);
    return PROA_OK;
}

/* Input k gets the rows of d_out that were its own. */
proa_status multiplex_vjp(const proa_multiplex_args *a, proa_multiplex_grads *g)
{
    int64_t n = a->inputs.count, to[PROA_MAX_DIMS] = {-1};
    for (int i = 1; i < a->inputs.at[0]->ndim; i++) to[i] = 1;
    proa_tensor *chosen = proa_reshape(a->index, ((proa_ints){a->inputs.at[0]->ndim, to, NULL, NULL}));
    g->d_inputs.at = proa_scope_alloc((size_t)n * sizeof *g->d_inputs.at);
    if (!g->d_inputs.at) return proa_error();
    g->d_inputs.count = n;
    for (int64_t k = 0; k < n; k++) {
        proa_tensor *mine = proa_equal(chosen, proa_full_like(chosen, proa_scalar_int(k)));
        g->d_inputs.at[k] = proa_where(mine, g->d_out, proa__zero_of(g->d_out));
    }
    return proa_error();
}

proa_status shard_index_infer(const proa_shard_index_args *a, proa_shard_index_metas *m)
{
    m->out = proa_meta_of(a->input);
    if (a->index_num < 1 || a->nshards < 1)
        return OP_FAIL("shard_index", INVALID_ARGUMENT, a->index_num < 1 ? "index_num" : "nshards",
                       "is %lld; expected 1 or more",
                       (long long)(a->index_num < 1 ? a->index_num : a->nshards));
    if (a->shard_id >= 0 && a->shard_id < a->nshards) return PROA_OK;
    return OP_FAIL("shard_index", INVALID_ARGUMENT, "shard_id", "is %lld; expected 0 to %lld",
                   (long long)a->shard_id, (long long)a->nshards - 1);
}
