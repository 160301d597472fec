/* Kernels of the diagonal ops (strided copies, fills, and the sums of trace) and of view_dtype. May use core,
 * kernels and ops headers. */
#include "core/copy.h"
#include "kernels/iterator.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/slice.h"
#include "impl/shape.h"

PROA_KERNEL_ANYWHERE(diag_cpu, diag)
{
    shape_diagonal d;
    proa_tensor src = proa__window(a->x), dst = proa__window(a->out);
    if (a->x->ndim == 2) {
        PROA_TRY(proa__diagonal("diag", 2, a->x->shape, a->offset, 0, 1, &d));
        src = proa__diagonal_window(a->x, &d);
        return proa__copy_window(&dst, &src);
    }
    _Alignas(16) char padding[16];
    proa__convert((proa_dtype)a->out->dtype, padding, PROA_F64, &a->padding_value, 1);
    PROA_TRY(proa__fill_window(&dst, padding));
    PROA_TRY(proa__diagonal("diag", 2, a->out->shape, a->offset, 0, 1, &d));
    dst = proa__diagonal_window(a->out, &d);
    if (src.ndim == 0) src.ndim = 1, src.shape[0] = 1, src.strides[0] = 0;
    return proa__copy_window(&dst, &src);
}

PROA_KERNEL_ANYWHERE(diagonal_cpu, diagonal)
{
    shape_diagonal d;
    PROA_TRY(proa__diagonal("diagonal", a->x->ndim, a->x->shape, a->offset, a->axis1, a->axis2, &d));
    proa_tensor src = proa__diagonal_window(a->x, &d), dst = proa__window(a->out);
    return proa__copy_window(&dst, &src);
}

/* Writes zeros to out, and `from` to its diagonal. */
static proa_status put_diagonal(const char *who, proa_tensor *out, const proa_tensor *from, int64_t offset,
                                int64_t axis1, int64_t axis2)
{
    shape_diagonal d;
    proa_tensor all = proa__window(out), src = proa__window(from);
    PROA_TRY(proa__fill_window(&all, NULL));
    PROA_TRY(proa__diagonal(who, out->ndim, out->shape, offset, axis1, axis2, &d));
    proa_tensor dst = proa__diagonal_window(out, &d);
    proa__expand_window(&src, dst.ndim, dst.shape);
    return proa__copy_window(&dst, &src);
}

PROA_KERNEL_ANYWHERE(diagonal_grad_cpu, diagonal_grad)
{
    return put_diagonal("diagonal_grad", a->d_x, a->d_out, a->offset, a->axis1, a->axis2);
}

PROA_KERNEL_ANYWHERE(diag_embed_cpu, diag_embed)
{
    return put_diagonal("diag_embed", a->out, a->input, a->offset, a->dim1, a->dim2);
}

PROA_KERNEL_ANYWHERE(fill_diagonal_tensor_cpu, fill_diagonal_tensor)
{
    shape_diagonal d;
    PROA_TRY(proa__copy(a->out, a->x));
    PROA_TRY(
        proa__diagonal("fill_diagonal_tensor", a->x->ndim, a->x->shape, a->offset, a->dim1, a->dim2, &d));
    proa_tensor dst = proa__diagonal_window(a->out, &d), src = proa__window(a->y);
    return proa__copy_window(&dst, &src);
}

/* Elements that are gathered and added at a time. */
enum { PIECE = 256 };

/* The sum of n elements `stride` bytes apart: integers wrap, the rest is summed in double. */
static void sum_line(proa_dtype dtype, char *out, const char *from, int64_t n, int64_t stride)
{
    bool whole = dtype <= PROA_I64;
    int64_t item = (int64_t)proa_dtype_size(dtype);
    _Alignas(64) char piece[PIECE * 16], wide[PIECE * 16];
    uint64_t integers = 0;
    double _Complex numbers = 0;
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t m = n - i < PIECE ? n - i : PIECE;
        proa__gather(piece, from + i * stride, m, stride, item);
        proa__convert(whole ? PROA_I64 : PROA_C128, wide, dtype, piece, m);
        for (int64_t k = 0; k < m && whole; k++) integers += ((const uint64_t *)(const void *)wide)[k];
        for (int64_t k = 0; k < m && !whole; k++) numbers += ((const double _Complex *)(const void *)wide)[k];
    }
    if (whole) proa__convert(dtype, out, PROA_I64, &integers, 1);
    else proa__convert(dtype, out, PROA_C128, &numbers, 1);
}

PROA_KERNEL(trace_cpu, trace)
{
    shape_diagonal d;
    proa_dtype dtype = (proa_dtype)a->x->dtype;
    PROA_TRY(proa__diagonal("trace", a->x->ndim, a->x->shape, a->offset, a->axis1, a->axis2, &d));
    proa_tensor w = proa__diagonal_window(a->x, &d);
    for (int64_t i = 0; i < a->out->numel; i++) {
        const char *from = w.data;
        int64_t rest = i;
        for (int k = w.ndim - 2; k >= 0; k--) {
            from += rest % w.shape[k] * w.strides[k];
            rest /= w.shape[k];
        }
        char *to = a->out->data + i * (int64_t)proa_dtype_size(dtype);
        sum_line(dtype, to, from, d.length, w.strides[w.ndim - 1]);
    }
    return PROA_OK;
}

PROA_KERNEL(fill_diagonal_cpu, fill_diagonal)
{
    const proa_tensor *x = a->x;
    int64_t step = 1, stride = 1, columns = x->shape[x->ndim - 1], end = x->numel;
    _Alignas(16) char one[16];
    proa__convert((proa_dtype)x->dtype, one, PROA_F64, &a->value, 1);
    PROA_TRY(proa__copy(a->out, a->x));
    if (x->numel == 0) return PROA_OK;
    for (int i = x->ndim - 1; i > 0; i--) step += stride *= x->shape[i];
    if (x->ndim == 2 && !a->wrap && end > columns * columns) end = columns * columns;
    size_t item = proa_dtype_size((proa_dtype)x->dtype);
    for (int64_t i = 0; i < end; i += step) {
        int64_t to = x->ndim == 2 ? i % columns + a->offset : 0, at = x->ndim == 2 ? i + a->offset : i;
        if (to >= 0 && to < columns && at >= 0 && at < x->numel)
            memcpy(a->out->data + (size_t)at * item, one, item);
    }
    return PROA_OK;
}

PROA_KERNEL_ANYWHERE(view_dtype_cpu, view_dtype)
{
    proa_tensor dst = proa__window(a->out), src = proa__window(a->x); /* both contiguous: bytes */
    dst.dtype = src.dtype = PROA_U8;
    dst.ndim = src.ndim = 1;
    dst.shape[0] = src.shape[0] = a->out->numel * (int64_t)proa_dtype_size((proa_dtype)a->out->dtype);
    dst.strides[0] = src.strides[0] = 1;
    return proa__copy_window(&dst, &src);
}
