/* Kernels that copy elements: views that strides cannot express, joining and splitting. All dtypes share one
 * code path, core's strided copy of bytes; only as_strided_grad adds. May use core and ops headers. */
#include "core/copy.h"
#include "ops/shape/accumulate.h"
#include "ops/shape/slice.h"
#include "impl/shape.h"

/* x's elements, in row-major order of any strides, into out of another shape. Both sides are cut into axes
 * of x: out is contiguous, so it can be seen in x's shape. */
static proa_status reshaped_copy(const proa_tensor *x, const proa_tensor *out)
{
    int64_t strides[PROA_MAX_DIMS], numel;
    proa_tensor src = proa__window(x), dst = proa__window(x);
    if (!proa__row_major(x->shape, x->ndim, proa_dtype_size((proa_dtype)x->dtype), strides, &numel))
        return proa_error();
    dst.data = out->data, dst.storage = out->storage;
    for (int i = 0; i < x->ndim; i++) dst.strides[i] = strides[i];
    return proa__copy_window(&dst, &src);
}

PROA_KERNEL_ANYWHERE(reshape_cpu, reshape) { return reshaped_copy(a->x, a->out); }
PROA_KERNEL_ANYWHERE(share_data_cpu, share_data) { return reshaped_copy(a->x, a->out); }
PROA_KERNEL_ANYWHERE(squeeze_cpu, squeeze) { return reshaped_copy(a->x, a->out); }
PROA_KERNEL_ANYWHERE(unsqueeze_cpu, unsqueeze) { return reshaped_copy(a->x, a->out); }
PROA_KERNEL_ANYWHERE(flatten_cpu, flatten) { return reshaped_copy(a->x, a->out); }

PROA_KERNEL_ANYWHERE(transpose_cpu, transpose)
{
    proa_tensor src = proa__window(a->x), dst = proa__window(a->out);
    for (int i = 0; i < src.ndim; i++) {
        int64_t from = a->perm.at[i] < 0 ? a->perm.at[i] + src.ndim : a->perm.at[i];
        src.shape[i] = a->x->shape[from];
        src.strides[i] = a->x->strides[from];
    }
    return proa__copy_window(&dst, &src);
}

static proa_status expanded_copy(const proa_tensor *x, const proa_tensor *out)
{
    proa_tensor src = proa__window(x), dst = proa__window(out);
    proa__expand_window(&src, out->ndim, out->shape);
    return proa__copy_window(&dst, &src);
}

PROA_KERNEL_ANYWHERE(expand_cpu, expand) { return expanded_copy(a->x, a->out); }
PROA_KERNEL_ANYWHERE(broadcast_to_cpu, broadcast_to) { return expanded_copy(a->x, a->out); }
PROA_KERNEL_ANYWHERE(expand_as_cpu, expand_as) { return expanded_copy(a->x, a->out); }

/* ---- slices ----------------------------------------------------------------------------- */

static proa_status cut_copy(const proa_cut_spec *s, const proa_tensor *x, const proa_tensor *out)
{
    proa_cut c;
    PROA_TRY(proa__cut(s, x->ndim, x->shape, &c));
    proa_tensor src = proa__window(x), dst = proa__window(out);
    proa__cut_window(&c, &src);
    return proa__copy_window(&dst, &src);
}

PROA_KERNEL_ANYWHERE(slice_cpu, slice) { return cut_copy(&SLICE_SPEC(a), a->input, a->out); }
PROA_KERNEL_ANYWHERE(strided_slice_cpu, strided_slice)
{
    return cut_copy(&STRIDED_SLICE_SPEC(a), a->x, a->out);
}

PROA_KERNEL_ANYWHERE(strided_slice_grad_cpu, strided_slice_grad)
{
    proa_cut c;
    proa_tensor all = proa__window(a->d_x), src = proa__window(a->d_out);
    PROA_TRY(proa__cut(&SLICE_GRAD_SPEC(a), all.ndim, all.shape, &c));
    PROA_TRY(proa__fill_window(&all, NULL));
    proa__cut_window(&c, &all);
    return proa__copy_window(&all, &src);
}

/* View of contiguous t through as_strided's shape, strides and offset. */
static proa_tensor places(const proa_tensor *t, const proa_ints *shape, const proa_ints *strides,
                          int64_t offset)
{
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)t->dtype);
    proa_tensor w = proa__window(t);
    w.ndim = (int8_t)shape->count;
    bool empty = t->numel == 0;
    for (int i = 0; i < w.ndim; i++) empty |= shape->at[i] == 0;
    if (!empty) w.data += offset * item;
    for (int i = 0; i < w.ndim; i++) { /* an unused stride is arbitrary */
        w.shape[i] = shape->at[i];
        w.strides[i] = empty || shape->at[i] == 1 ? 0 : strides->at[i] * item;
    }
    return w;
}

PROA_KERNEL_ANYWHERE(as_strided_cpu, as_strided)
{
    proa_tensor src = places(a->x, &a->shape, &a->stride, a->offset), dst = proa__window(a->out);
    return proa__copy_window(&dst, &src);
}

PROA_KERNEL(as_strided_grad_cpu, as_strided_grad)
{
    accumulator acc;
    PROA_TRY(accumulate_begin(&acc, a->d_x, NULL));
    proa_tensor src = proa__window(a->d_out);
    int64_t strides[PROA_MAX_DIMS];
    for (int i = 0; i < src.ndim && src.numel; i++)
        strides[i] = src.shape[i] == 1 ? 0 : a->stride.at[i] * acc.item;
    if (src.numel)
        accumulate_strided(&acc, acc.data + a->offset * acc.item, strides, src.data, src.strides, src.shape,
                           src.ndim);
    return accumulate_end(&acc);
}

PROA_KERNEL_ANYWHERE(set_strided_cpu, set_strided)
{
    PROA_TRY(proa__copy(a->out, a->x));
    proa_tensor dst = places(a->out, &a->shape, &a->strides, a->offset), src = proa__window(a->value);
    proa__expand_window(&src, dst.ndim, dst.shape);
    return proa__copy_window(&dst, &src);
}

/* ---- joining and parting ---------------------------------------------------------------- */

PROA_KERNEL_ANYWHERE(concat_cpu, concat)
{
    int axis;
    int64_t at = 0, value;
    PROA_TRY(proa__int_or("concat", "axis", a->axis, &a->axis_tensor, &value));
    PROA_TRY(proa__axis("concat", "axis", value, a->out->ndim, &axis));
    for (int64_t k = 0; k < a->x.count; k++) {
        proa_tensor src = proa__window(a->x.at[k]), dst = proa__window(a->out);
        proa__narrow(&dst, axis, at, src.shape[axis], 1);
        PROA_TRY(proa__copy_window(&dst, &src));
        at += src.shape[axis];
    }
    return PROA_OK;
}

PROA_KERNEL_ANYWHERE(split_cpu, split)
{
    int axis;
    int64_t at = 0, value;
    PROA_TRY(proa__int_or("split", "axis", a->axis, &a->axis_tensor, &value));
    PROA_TRY(proa__axis("split", "axis", value, a->x->ndim, &axis));
    for (int64_t k = 0; k < a->out.count; k++) {
        proa_tensor src = proa__window(a->x), dst = proa__window(a->out.at[k]);
        proa__narrow(&src, axis, at, dst.shape[axis], 1);
        PROA_TRY(proa__copy_window(&dst, &src));
        at += dst.shape[axis];
    }
    return PROA_OK;
}

PROA_KERNEL_ANYWHERE(stack_cpu, stack)
{
    int axis;
    PROA_TRY(proa__axis("stack", "axis", a->axis, a->out->ndim, &axis));
    for (int64_t k = 0; k < a->x.count; k++) {
        proa_tensor src = proa__window(a->x.at[k]), dst = proa__entry(a->out, axis, k);
        PROA_TRY(proa__copy_window(&dst, &src));
    }
    return PROA_OK;
}

static proa_status part(const char *who, const proa_tensor *x, int64_t axis, const proa_tensors *out)
{
    int at;
    PROA_TRY(proa__axis(who, "axis", axis, x->ndim, &at));
    for (int64_t k = 0; k < out->count; k++) {
        proa_tensor src = proa__entry(x, at, k), dst = proa__window(out->at[k]);
        PROA_TRY(proa__copy_window(&dst, &src));
    }
    return PROA_OK;
}

PROA_KERNEL_ANYWHERE(unstack_cpu, unstack) { return part("unstack", a->x, a->axis, &a->out); }
PROA_KERNEL_ANYWHERE(unbind_cpu, unbind) { return part("unbind", a->input, a->axis, &a->out); }
