/* Shapes and rules of the ops on concatenated sequences (LoD tensors); the rules call backward ops. May use
 * core, kernels and public ops. */
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "impl/elementwise.h"
#include "impl/lod.h"

static proa_status check_offsets(const char *op, const char *name, const proa_tensor *offsets)
{
    if (offsets->dtype == PROA_I64 && offsets->ndim == 1 && offsets->shape[0] != 0) return PROA_OK;
    return OP_FAIL(
        op, INVALID_ARGUMENT, name,
        "is %s; expected int64 [sequences + 1]: where each sequence begins, and where the last ends",
        proa__tensor_text(offsets));
}

static proa_status check_x(const char *op, const proa_tensor *x, int least)
{
    if (x->ndim >= least) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected at least %d dims, the first of them rows",
                   proa__tensor_text(x), least);
}

static proa_status check_like(const char *op, const char *name, const proa_tensor *t, const proa_tensor *like)
{
    if (t->dtype == like->dtype && rows_same_shape(t, like)) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected %s", proa__tensor_text(t),
                   proa__tensor_text(like));
}

static int64_t sequences(const proa_tensor *offsets)
{
    return offsets->shape[0] < 0 ? -1 : offsets->shape[0] - 1;
}

/* t's meta with another number of rows. */
static proa_meta with_rows(const proa_tensor *t, int64_t rows)
{
    proa_meta m = proa_meta_of(t);
    m.shape[0] = rows;
    return m;
}

static proa_meta offsets_meta(int64_t n)
{
    return (proa_meta){.dtype = PROA_I64, .ndim = 1, .shape = {n < 0 ? -1 : n + 1}};
}

/* Shape of the gradient of an op that moves rows. */
static proa_status grad_infer(const char *op, const proa_tensor *x, const proa_tensor *d_out, proa_meta *m)
{
    PROA_TRY(check_x(op, x, 1));
    if (x->dtype != d_out->dtype)
        return OP_FAIL(op, INVALID_ARGUMENT, "d_out", "is %s, and x is %s; expected one dtype",
                       proa__tensor_text(d_out), proa__tensor_text(x));
    *m = proa_meta_of(x);
    return PROA_OK;
}

/* ---- pool ---- */

proa_status sequence_pool_infer(const proa_sequence_pool_args *a, proa_sequence_pool_metas *m)
{
    PROA_TRY(check_x("sequence_pool", a->x, 1));
    PROA_TRY(check_offsets("sequence_pool", "offsets", a->offsets));
    m->out = m->max_index = with_rows(a->x, sequences(a->offsets));
    m->max_index.dtype = PROA_I32;
    if (a->pooltype != PROA_SEQUENCE_POOL_TYPE_MAX || a->is_test) m->max_index.ndim = -1;
    return PROA_OK;
}

proa_status sequence_pool_vjp(const proa_sequence_pool_args *a, proa_sequence_pool_grads *g)
{
    if (a->pooltype == PROA_SEQUENCE_POOL_TYPE_MAX && proa__absent(a->max_index))
        return OP_FAIL(
            "sequence_pool", BAD_STATE, "is_test",
            "is true, so that no index of the largest rows was kept; backward needs is_test = false");
    g->d_x = proa_sequence_pool_grad(a->x, a->offsets, a->max_index, g->d_out, .pooltype = a->pooltype);
    return proa_error();
}

proa_status sequence_pool_grad_infer(const proa_sequence_pool_grad_args *a, proa_sequence_pool_grad_metas *m)
{
    const char *op = "sequence_pool_grad";
    PROA_TRY(check_offsets(op, "offsets", a->offsets));
    if (a->pooltype == PROA_SEQUENCE_POOL_TYPE_MAX &&
        (proa__absent(a->max_index) || a->max_index->dtype != PROA_I32 ||
         !rows_same_shape(a->max_index, a->d_out)))
        return OP_FAIL(op, INVALID_ARGUMENT, "max_index", "is %s; pooltype MAX needs int32 as d_out %s",
                       proa__absent(a->max_index) ? "absent" : proa__tensor_text(a->max_index),
                       proa__tensor_text(a->d_out));
    return grad_infer(op, a->x, a->d_out, &m->d_x);
}

/* ---- softmax ---- */

static proa_status check_column(const char *op, const proa_tensor *x)
{
    if (x->ndim == 1 || (x->ndim == 2 && rows_dims_agree(x->shape[1], 1))) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected [N] or [N, 1]", proa__tensor_text(x));
}

proa_status sequence_softmax_infer(const proa_sequence_softmax_args *a, proa_sequence_softmax_metas *m)
{
    PROA_TRY(check_column("sequence_softmax", a->x));
    PROA_TRY(check_offsets("sequence_softmax", "offsets", a->offsets));
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status sequence_softmax_vjp(const proa_sequence_softmax_args *a, proa_sequence_softmax_grads *g)
{
    g->d_x = proa_sequence_softmax_grad(a->out, a->offsets, g->d_out);
    return proa_error();
}

proa_status sequence_softmax_grad_infer(const proa_sequence_softmax_grad_args *a,
                                        proa_sequence_softmax_grad_metas *m)
{
    const char *op = "sequence_softmax_grad";
    PROA_TRY(check_column(op, a->out));
    PROA_TRY(check_offsets(op, "offsets", a->offsets));
    PROA_TRY(check_like(op, "d_out", a->d_out, a->out));
    m->d_x = proa_meta_of(a->out);
    return PROA_OK;
}

/* ---- conv ---- */

static proa_status check_conv(const char *op, const proa_tensor *x, const proa_tensor *filter, int64_t length)
{
    if (x->ndim != 2)
        return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected [N, D]", proa__tensor_text(x));
    if (length < 1 || length > INT32_MAX)
        return OP_FAIL(op, OUT_OF_RANGE, "length", "is %lld; expected at least 1", (long long)length);
    if (filter->ndim == 2 && filter->dtype == x->dtype &&
        (x->shape[1] < 0 || rows_dims_agree(filter->shape[0], length * x->shape[1])))
        return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "filter", "is %s; expected %s [%lld · D, M], and x is %s",
                   proa__tensor_text(filter), proa_dtype_name((proa_dtype)x->dtype), (long long)length,
                   proa__tensor_text(x));
}

proa_status sequence_conv_infer(const proa_sequence_conv_args *a, proa_sequence_conv_metas *m)
{
    PROA_TRY(check_conv("sequence_conv", a->x, a->filter, a->length));
    PROA_TRY(check_offsets("sequence_conv", "offsets", a->offsets));
    m->out = proa_meta_of(a->x);
    m->out.shape[1] = a->filter->shape[1];
    return PROA_OK;
}

proa_status sequence_conv_vjp(const proa_sequence_conv_args *a, proa_sequence_conv_grads *g)
{
    proa_sequence_conv_grad_result d =
        proa_sequence_conv_grad(a->x, a->filter, a->offsets, g->d_out, .length = rows_option(a->length),
                                .start = rows_option(a->start));
    if (g->want_x) g->d_x = d.d_x;
    if (g->want_filter) g->d_filter = d.d_filter;
    return proa_error();
}

proa_status sequence_conv_grad_infer(const proa_sequence_conv_grad_args *a, proa_sequence_conv_grad_metas *m)
{
    PROA_TRY(check_conv("sequence_conv_grad", a->x, a->filter, a->length));
    PROA_TRY(check_offsets("sequence_conv_grad", "offsets", a->offsets));
    if (a->d_out->dtype != a->x->dtype || a->d_out->ndim != 2 ||
        !rows_dims_agree(a->d_out->shape[0], a->x->shape[0]) ||
        !rows_dims_agree(a->d_out->shape[1], a->filter->shape[1]))
        return OP_FAIL("sequence_conv_grad", INVALID_ARGUMENT, "d_out", "is %s; x is %s and filter %s",
                       proa__tensor_text(a->d_out), proa__tensor_text(a->x), proa__tensor_text(a->filter));
    m->d_x = proa_meta_of(a->x);
    m->d_filter = proa_meta_of(a->filter);
    return PROA_OK;
}

/* ---- expand ---- */

proa_status sequence_expand_infer(const proa_sequence_expand_args *a, proa_sequence_expand_metas *m)
{
    const char *op = "sequence_expand";
    PROA_TRY(check_x(op, a->x, 1));
    PROA_TRY(check_offsets(op, "y_offsets", a->y_offsets));
    m->out = with_rows(a->x, -1);
    m->out_offsets = offsets_meta(-1);
    if (!proa__absent(a->x_offsets)) return check_offsets(op, "x_offsets", a->x_offsets);
    m->out_offsets.ndim = -1;
    return PROA_OK;
}

proa_status sequence_expand_vjp(const proa_sequence_expand_args *a, proa_sequence_expand_grads *g)
{
    g->d_x = proa_sequence_expand_grad(a->x, a->y, a->x_offsets, a->y_offsets, g->d_out,
                                       .ref_level = rows_option(a->ref_level));
    return proa_error();
}

proa_status sequence_expand_grad_infer(const proa_sequence_expand_grad_args *a,
                                       proa_sequence_expand_grad_metas *m)
{
    const char *op = "sequence_expand_grad";
    PROA_TRY(check_offsets(op, "y_offsets", a->y_offsets));
    if (!proa__absent(a->x_offsets)) PROA_TRY(check_offsets(op, "x_offsets", a->x_offsets));
    return grad_infer(op, a->x, a->d_out, &m->d_x);
}

static proa_status check_counts(const char *op, const proa_tensor *x, const proa_tensor *y_offsets)
{
    PROA_TRY(check_x(op, x, 1));
    PROA_TRY(check_offsets(op, "y_offsets", y_offsets));
    if (rows_dims_agree(x->shape[0], sequences(y_offsets))) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected a row for each of y's %lld sequences",
                   proa__tensor_text(x), (long long)sequences(y_offsets));
}

proa_status sequence_expand_as_infer(const proa_sequence_expand_as_args *a, proa_sequence_expand_as_metas *m)
{
    PROA_TRY(check_counts("sequence_expand_as", a->x, a->y_offsets));
    PROA_TRY(check_x("sequence_expand_as", a->y, 1));
    m->out = with_rows(a->x, a->y->shape[0]);
    return PROA_OK;
}

proa_status sequence_expand_as_vjp(const proa_sequence_expand_as_args *a, proa_sequence_expand_as_grads *g)
{
    g->d_x = proa_sequence_expand_as_grad(a->x, a->y, a->y_offsets, g->d_out);
    return proa_error();
}

proa_status sequence_expand_as_grad_infer(const proa_sequence_expand_as_grad_args *a,
                                          proa_sequence_expand_as_grad_metas *m)
{
    PROA_TRY(check_counts("sequence_expand_as_grad", a->x, a->y_offsets));
    return grad_infer("sequence_expand_as_grad", a->x, a->d_out, &m->d_x);
}

/* ---- concat ---- */

static proa_status check_parts(const char *op, const proa_tensors *x, const proa_tensors *offsets)
{
    if (x->count < 1 || x->count != offsets->count)
        return OP_FAIL(op, INVALID_ARGUMENT, "x",
                       "has %lld tensors and offsets %lld; expected as many, at least 1", (long long)x->count,
                       (long long)offsets->count);
    for (int64_t i = 0; i < x->count; i++) {
        PROA_TRY(check_x(op, x->at[i], 1));
        PROA_TRY(check_offsets(op, "offsets", offsets->at[i]));
        bool same = x->at[i]->ndim == x->at[0]->ndim && x->at[i]->dtype == x->at[0]->dtype;
        for (int d = 1; same && d < x->at[0]->ndim; d++)
            same = rows_dims_agree(x->at[i]->shape[d], x->at[0]->shape[d]);
        if (!same)
            return OP_FAIL(op, INVALID_ARGUMENT, "x", "(entry %lld) is %s, and the first is %s", (long long)i,
                           proa__tensor_text(x->at[i]), proa__tensor_text(x->at[0]));
        if (!rows_dims_agree(offsets->at[i]->shape[0], offsets->at[0]->shape[0]))
            return OP_FAIL(op, INVALID_ARGUMENT, "offsets", "(entry %lld) has %lld sequences, the first %lld",
                           (long long)i, (long long)sequences(offsets->at[i]),
                           (long long)sequences(offsets->at[0]));
    }
    return PROA_OK;
}

proa_status sequence_concat_infer(const proa_sequence_concat_args *a, proa_sequence_concat_metas *m)
{
    PROA_TRY(check_parts("sequence_concat", &a->x, &a->offsets));
    int64_t rows = 0;
    for (int64_t i = 0; i < a->x.count && rows >= 0; i++)
        rows = a->x.at[i]->shape[0] < 0 ? -1 : rows + a->x.at[i]->shape[0];
    m->out = with_rows(a->x.at[0], rows);
    m->out_offsets = offsets_meta(sequences(a->offsets.at[0]));
    return PROA_OK;
}

proa_status sequence_concat_vjp(const proa_sequence_concat_args *a, proa_sequence_concat_grads *g)
{
    g->d_x = proa_sequence_concat_grad(a->x, a->offsets, g->d_out);
    return proa_error();
}

proa_status sequence_concat_grad_infer(const proa_sequence_concat_grad_args *a,
                                       proa_sequence_concat_grad_metas *m)
{
    PROA_TRY(check_parts("sequence_concat_grad", &a->x, &a->offsets));
    PROA_TRY(proa_metas_resize(&m->d_x, a->x.count));
    for (int64_t i = 0; i < a->x.count; i++)
        PROA_TRY(grad_infer("sequence_concat_grad", a->x.at[i], a->d_out, &m->d_x.at[i]));
    return PROA_OK;
}

/* ---- pad and unpad ---- */

proa_status sequence_pad_infer(const proa_sequence_pad_args *a, proa_sequence_pad_metas *m)
{
    const char *op = "sequence_pad";
    PROA_TRY(check_x(op, a->x, 1));
    PROA_TRY(check_offsets(op, "offsets", a->offsets));
    if (a->x->ndim == PROA_MAX_DIMS || (a->padded_length < 1 && a->padded_length != -1))
        return OP_FAIL(op, INVALID_ARGUMENT, "padded_length",
                       "is %lld and x %s; expected -1 or at least 1, and fewer than %d dims",
                       (long long)a->padded_length, proa__tensor_text(a->x), PROA_MAX_DIMS);
    if (a->pad_value->dtype != a->x->dtype)
        return OP_FAIL(op, INVALID_ARGUMENT, "pad_value", "is %s, and x is %s; expected one dtype",
                       proa__tensor_text(a->pad_value), proa__tensor_text(a->x));
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype,
                         .ndim = (int8_t)(a->x->ndim + 1),
                         .shape = {sequences(a->offsets), a->padded_length}};
    for (int i = 1; i < a->x->ndim; i++) m->out.shape[i + 1] = a->x->shape[i];
    m->length = (proa_meta){.dtype = PROA_I64, .ndim = 1, .shape = {sequences(a->offsets)}};
    return PROA_OK;
}

proa_status sequence_pad_vjp(const proa_sequence_pad_args *a, proa_sequence_pad_grads *g)
{
    g->d_x = proa_sequence_pad_grad(a->x, a->offsets, g->d_out);
    return proa_error();
}

proa_status sequence_pad_grad_infer(const proa_sequence_pad_grad_args *a, proa_sequence_pad_grad_metas *m)
{
    PROA_TRY(check_offsets("sequence_pad_grad", "offsets", a->offsets));
    if (a->d_out->ndim != a->x->ndim + 1)
        return OP_FAIL("sequence_pad_grad", INVALID_ARGUMENT, "d_out", "is %s; x is %s",
                       proa__tensor_text(a->d_out), proa__tensor_text(a->x));
    return grad_infer("sequence_pad_grad", a->x, a->d_out, &m->d_x);
}

static proa_status check_unpad(const char *op, const proa_tensor *x, const proa_tensor *length)
{
    PROA_TRY(check_x(op, x, 2));
    if (length->dtype == PROA_I64 && length->ndim == 1 && rows_dims_agree(length->shape[0], x->shape[0]))
        return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "length", "is %s; expected int64 [sequences], and x is %s",
                   proa__tensor_text(length), proa__tensor_text(x));
}

proa_status sequence_unpad_infer(const proa_sequence_unpad_args *a, proa_sequence_unpad_metas *m)
{
    PROA_TRY(check_unpad("sequence_unpad", a->x, a->length));
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 2, .shape = {-1, 1}};
    for (int i = 2; i < a->x->ndim; i++) m->out.shape[i - 1] = a->x->shape[i];
    if (a->x->ndim > 2) m->out.ndim = (int8_t)(a->x->ndim - 1);
    m->out_offsets = offsets_meta(a->x->shape[0]);
    return PROA_OK;
}

proa_status sequence_unpad_vjp(const proa_sequence_unpad_args *a, proa_sequence_unpad_grads *g)
{
    g->d_x = proa_sequence_unpad_grad(a->x, a->length, g->d_out);
    return proa_error();
}

proa_status sequence_unpad_grad_infer(const proa_sequence_unpad_grad_args *a,
                                      proa_sequence_unpad_grad_metas *m)
{
    PROA_TRY(check_unpad("sequence_unpad_grad", a->x, a->length));
    return grad_infer("sequence_unpad_grad", a->x, a->d_out, &m->d_x);
}

/* ---- reverse, slice, reshape ---- */

proa_status sequence_reverse_infer(const proa_sequence_reverse_args *a, proa_sequence_reverse_metas *m)
{
    PROA_TRY(check_x("sequence_reverse", a->x, 1));
    PROA_TRY(check_offsets("sequence_reverse", "offsets", a->offsets));
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status sequence_reverse_vjp(const proa_sequence_reverse_args *a, proa_sequence_reverse_grads *g)
{
    g->d_x = proa_sequence_reverse(g->d_out, a->offsets);
    return proa_error();
}

static proa_status check_slices(const char *op, const char *name, const proa_tensor *t,
                                const proa_tensor *offsets)
{
    bool fits = t->dtype == PROA_I64 || t->dtype == PROA_I32;
    if (fits && rows_dims_agree(t->numel, sequences(offsets))) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected an integer for each of %lld sequences",
                   proa__tensor_text(t), (long long)sequences(offsets));
}

proa_status sequence_slice_infer(const proa_sequence_slice_args *a, proa_sequence_slice_metas *m)
{
    const char *op = "sequence_slice";
    PROA_TRY(check_x(op, a->x, 1));
    PROA_TRY(check_offsets(op, "offsets", a->offsets));
    PROA_TRY(check_slices(op, "offset", a->offset, a->offsets));
    PROA_TRY(check_slices(op, "length", a->length, a->offsets));
    m->out = with_rows(a->x, -1);
    m->out_offsets = offsets_meta(sequences(a->offsets));
    return PROA_OK;
}

proa_status sequence_slice_vjp(const proa_sequence_slice_args *a, proa_sequence_slice_grads *g)
{
    g->d_x = proa_sequence_slice_grad(a->x, a->offset, a->length, a->offsets, g->d_out);
    return proa_error();
}

proa_status sequence_slice_grad_infer(const proa_sequence_slice_grad_args *a,
                                      proa_sequence_slice_grad_metas *m)
{
    const char *op = "sequence_slice_grad";
    PROA_TRY(check_offsets(op, "offsets", a->offsets));
    PROA_TRY(check_slices(op, "offset", a->offset, a->offsets));
    PROA_TRY(check_slices(op, "length", a->length, a->offsets));
    return grad_infer(op, a->x, a->d_out, &m->d_x);
}

proa_status sequence_reshape_infer(const proa_sequence_reshape_args *a, proa_sequence_reshape_metas *m)
{
    const char *op = "sequence_reshape";
    PROA_TRY(check_offsets(op, "offsets", a->offsets));
    if (a->x->ndim != 2 || a->new_dim < 1)
        return OP_FAIL(op, INVALID_ARGUMENT, "new_dim", "is %lld and x %s; expected at least 1, and [N, D]",
                       (long long)a->new_dim, proa__tensor_text(a->x));
    if (a->x->numel >= 0 && a->x->numel % a->new_dim)
        return OP_FAIL(op, INVALID_ARGUMENT, "new_dim", "is %lld, which does not divide the elements of x %s",
                       (long long)a->new_dim, proa__tensor_text(a->x));
    m->out = with_rows(a->x, a->x->numel < 0 ? -1 : a->x->numel / a->new_dim);
    m->out.shape[1] = a->new_dim;
    m->out_offsets = offsets_meta(sequences(a->offsets));
    return PROA_OK;
}

proa_status sequence_reshape_vjp(const proa_sequence_reshape_args *a, proa_sequence_reshape_grads *g)
{
    g->d_x = proa_sequence_reshape_grad(a->x, g->d_out);
    return proa_error();
}

proa_status sequence_reshape_grad_infer(const proa_sequence_reshape_grad_args *a,
                                        proa_sequence_reshape_grad_metas *m)
{
    if (!rows_dims_agree(a->x->numel, a->d_out->numel))
        return OP_FAIL("sequence_reshape_grad", INVALID_ARGUMENT, "d_out",
                       "is %s; expected as many elements as x %s", proa__tensor_text(a->d_out),
                       proa__tensor_text(a->x));
    return grad_infer("sequence_reshape_grad", a->x, a->d_out, &m->d_x);
}

proa_status lod_reset_infer(const proa_lod_reset_args *a, proa_lod_reset_metas *m)
{
    const char *op = "lod_reset";
    PROA_TRY(check_x(op, a->x, 1));
    m->out = proa_meta_of(a->x);
    int64_t count = a->target_lod.count;
    if (!proa__absent(a->y_offsets)) {
        PROA_TRY(check_offsets(op, "y_offsets", a->y_offsets));
        count = a->y_offsets->shape[0];
    } else if (!proa__absent(a->y)) {
        if (a->y->dtype != PROA_I32 && a->y->dtype != PROA_I64)
            return OP_FAIL(op, INVALID_ARGUMENT, "y",
                           "is %s without sequences (LoD); expected sequences, or offsets in int32",
                           proa__tensor_text(a->y));
        count = a->y->numel;
    }
    if (count == 0 || count == 1)
        return OP_FAIL(op, INVALID_ARGUMENT, "target_lod",
                       "has %lld offsets; expected y, or where each sequence begins and the last ends",
                       (long long)count);
    m->out_offsets = (proa_meta){.dtype = PROA_I64, .ndim = 1, .shape = {count}};
    return PROA_OK;
}

proa_status lod_reset_vjp(const proa_lod_reset_args *a, proa_lod_reset_grads *g)
{
    (void)a;
    g->d_x = proa_assign(g->d_out);
    return proa_error();
}

/* ---- enumerate and scatter ---- */

proa_status sequence_enumerate_infer(const proa_sequence_enumerate_args *a, proa_sequence_enumerate_metas *m)
{
    PROA_TRY(check_column("sequence_enumerate", a->x));
    PROA_TRY(check_offsets("sequence_enumerate", "offsets", a->offsets));
    if (a->win_size < 1)
        return OP_FAIL("sequence_enumerate", OUT_OF_RANGE, "win_size", "is %lld; expected at least 1",
                       (long long)a->win_size);
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 2, .shape = {a->x->shape[0], a->win_size}};
    return PROA_OK;
}

static proa_status check_updates(const char *op, const proa_tensor *table, const proa_tensor *ids,
                                 const proa_tensor *updates, const proa_tensor *offsets)
{
    PROA_TRY(check_offsets(op, "offsets", offsets));
    if (table->ndim != 2 || !rows_dims_agree(table->shape[0], sequences(offsets)))
        return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected [%lld sequences, D]",
                       proa__tensor_text(table), (long long)sequences(offsets));
    if (ids->dtype != PROA_I64 && ids->dtype != PROA_I32)
        return OP_FAIL(op, INVALID_ARGUMENT, "ids", "is %s; expected int64 or int32", proa__tensor_text(ids));
    if (updates->dtype == table->dtype && rows_dims_agree(updates->numel, ids->numel)) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "updates",
                   "is %s; expected one number an id of %s, of the dtype of %s", proa__tensor_text(updates),
                   proa__tensor_text(ids), proa__tensor_text(table));
}

proa_status sequence_scatter_infer(const proa_sequence_scatter_args *a, proa_sequence_scatter_metas *m)
{
    PROA_TRY(check_updates("sequence_scatter", a->x, a->ids, a->updates, a->offsets));
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status sequence_scatter_vjp(const proa_sequence_scatter_args *a, proa_sequence_scatter_grads *g)
{
    proa_sequence_scatter_grad_result d =
        proa_sequence_scatter_grad(g->d_out, a->ids, a->updates, a->offsets);
    if (g->want_x) g->d_x = d.d_x;
    if (g->want_updates) g->d_updates = d.d_updates;
    return proa_error();
}

proa_status sequence_scatter_grad_infer(const proa_sequence_scatter_grad_args *a,
                                        proa_sequence_scatter_grad_metas *m)
{
    PROA_TRY(check_updates("sequence_scatter_grad", a->d_out, a->ids, a->updates, a->offsets));
    m->d_x = proa_meta_of(a->d_out);
    m->d_updates = proa_meta_of(a->updates);
    return PROA_OK;
}
