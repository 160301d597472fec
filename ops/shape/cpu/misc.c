/* Kernels of shape, size, tile and its gradient, flip, roll, one_hot and meshgrid. May use core and ops
 * headers. */
#include "core/copy.h"
#include "core/device.h"
#include "ops/shape/accumulate.h"
#include "ops/shape/tile.h"
#include "impl/shape.h"

PROA_KERNEL_ANYWHERE(shape_cpu, shape)
{
    int32_t dims[PROA_MAX_DIMS];
    for (int i = 0; i < a->input->ndim; i++) {
        if (a->input->shape[i] > INT32_MAX)
            return OP_FAIL("shape", OVERFLOW, "input", "is %s; its dims do not fit int32",
                           proa__tensor_text(a->input));
        dims[i] = (int32_t)a->input->shape[i];
    }
    return proa__put(a->out, dims, (size_t)a->input->ndim * sizeof *dims);
}

PROA_KERNEL_ANYWHERE(size_cpu, size) { return proa__put(a->out, &a->x->numel, sizeof a->x->numel); }

/* ---- tile ------------------------------------------------------------------------------- */

/* Copies x to the first corner of out, then doubles the filled part along each axis, from the last axis
 * on. */
PROA_KERNEL_ANYWHERE(tile_cpu, tile)
{
    proa_tile t;
    PROA_TRY(proa__tile_plan("tile", a->x->ndim, a->x->shape, &a->repeat_times, &t));
    if (a->out->numel == 0) return PROA_OK;
    proa_tensor corner = proa__window(a->out), src = proa__window(a->x);
    for (int i = 0; i < t.ndim; i++) corner.shape[i] = t.size[i];
    for (int i = t.ndim - 1, lead = t.ndim - a->x->ndim; i >= 0; i--) {
        src.shape[i] = t.size[i];
        src.strides[i] = i < lead ? 0 : a->x->strides[i - lead];
    }
    src.ndim = (int8_t)t.ndim;
    PROA_TRY(proa__copy_window(&corner, &src));
    for (int axis = t.ndim - 1; axis >= 0; axis--) {
        int64_t all = t.size[axis] * t.times[axis], done = t.size[axis];
        while (done < all) {
            int64_t n = all - done < done ? all - done : done;
            proa_tensor from = corner, to = corner;
            from.shape[axis] = to.shape[axis] = n;
            to.data += done * to.strides[axis];
            PROA_TRY(proa__copy_window(&to, &from));
            done += n;
        }
        corner.shape[axis] = all;
    }
    return PROA_OK;
}

PROA_KERNEL(tile_grad_cpu, tile_grad)
{
    proa_tile t;
    accumulator acc;
    PROA_TRY(proa__tile_plan("tile_grad", a->d_x->ndim, a->d_x->shape, &a->repeat_times, &t));
    PROA_TRY(accumulate_begin(&acc, a->d_x, NULL));
    int64_t shape[2 * PROA_MAX_DIMS], ss[2 * PROA_MAX_DIMS], ds[2 * PROA_MAX_DIMS], step = acc.item;
    for (int i = t.ndim - 1; i >= 0; i--) {
        shape[2 * i] = t.times[i], shape[2 * i + 1] = t.size[i];
        ss[2 * i + 1] = a->d_out->strides[i], ss[2 * i] = ss[2 * i + 1] * t.size[i];
        ds[2 * i] = 0, ds[2 * i + 1] = step;
        step *= t.size[i];
    }
    if (a->d_out->numel) accumulate_strided(&acc, acc.data, ds, a->d_out->data, ss, shape, 2 * t.ndim);
    return accumulate_end(&acc);
}

/* ---- flip, roll ------------------------------------------------------------------------- */

PROA_KERNEL_ANYWHERE(flip_cpu, flip)
{
    int axes[PROA_MAX_DIMS], n;
    proa_tensor src = proa__window(a->x), dst = proa__window(a->out);
    PROA_TRY(proa__axes("flip", "axis", &a->axis, a->x->ndim, axes, &n));
    if (src.numel == 0) return PROA_OK;
    for (int i = 0; i < n; i++) {
        src.data += (src.shape[axes[i]] - 1) * src.strides[axes[i]];
        src.strides[axes[i]] = -src.strides[axes[i]];
    }
    return proa__copy_window(&dst, &src);
}

/* Copies src into dst rolled by shift[axis] ∈ [0, dim), axis after axis: two pieces each. */
static proa_status roll_from(const proa_tensor *dst, const proa_tensor *src, const int64_t *shift, int axis)
{
    while (axis < dst->ndim && shift[axis] == 0) axis++;
    proa_tensor to = proa__shallow_copy(dst), from = proa__shallow_copy(src);
    if (axis == dst->ndim) return proa__copy_window(&to, &from);
    int64_t n = dst->shape[axis], k = shift[axis];
    proa__narrow(&to, axis, k, n - k, 1);
    proa__narrow(&from, axis, 0, n - k, 1);
    PROA_TRY(roll_from(&to, &from, shift, axis + 1));
    to = proa__shallow_copy(dst), from = proa__shallow_copy(src);
    proa__narrow(&to, axis, 0, k, 1);
    proa__narrow(&from, axis, n - k, k, 1);
    return roll_from(&to, &from, shift, axis + 1);
}

static int64_t wrapped(int64_t shift, int64_t n) { return (shift % n + n) % n; }

PROA_KERNEL_ANYWHERE(roll_cpu, roll)
{
    int64_t shift[PROA_MAX_DIMS] = {0};
    if (a->x->numel == 0) return PROA_OK;
    if (a->axis.count) {
        proa_tensor src = proa__window(a->x), dst = proa__window(a->out);
        for (int64_t i = 0; i < a->axis.count; i++) {
            int axis;
            PROA_TRY(proa__axis("roll", "axis", a->axis.at[i], a->x->ndim, &axis));
            if (!a->x->ndim) continue;
            shift[axis] = wrapped(shift[axis] + wrapped(proa__ints_at(&a->shifts, i), a->x->shape[axis]),
                                  a->x->shape[axis]);
        }
        return roll_from(&dst, &src, shift, 0);
    }
    proa_tensor *flat = proa__contiguous(a->x);
    if (!flat) return proa_error();
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)flat->dtype);
    proa_tensor src = proa__window(flat);
    src.ndim = 1, src.shape[0] = flat->numel, src.strides[0] = item;
    proa_tensor dst = src;
    dst.data = a->out->data, dst.storage = a->out->storage;
    shift[0] = wrapped(proa__ints_at(&a->shifts, 0), flat->numel);
    PROA_TRY(roll_from(&dst, &src, shift, 0));
    if (flat != a->x) proa_drop(flat);
    return PROA_OK;
}

/* ---- one_hot ---------------------------------------------------------------------------- */

static const char *one_of(proa_dtype dtype)
{
    static const uint8_t b = 1;
    static const int16_t s = 1;
    static const int32_t i = 1;
    static const int64_t l = 1;
    static const uint16_t f16 = 0x3c00, bf16 = 0x3f80;
    static const float f[2] = {1, 0};
    static const double d[2] = {1, 0};
    switch (dtype) {
    case PROA_I16: return (const char *)&s;
    case PROA_I32: return (const char *)&i;
    case PROA_I64: return (const char *)&l;
    case PROA_F16: return (const char *)&f16;
    case PROA_BF16: return (const char *)&bf16;
    case PROA_F32:
    case PROA_C64: return (const char *)f;
    case PROA_F64:
    case PROA_C128: return (const char *)d;
    default: return (const char *)&b;
    }
}

PROA_KERNEL(one_hot_cpu, one_hot)
{
    proa_tensor all = proa__window(a->out);
    int64_t depth = a->out->shape[a->out->ndim - 1],
            item = (int64_t)proa_dtype_size((proa_dtype)a->out->dtype);
    const char *one = one_of((proa_dtype)a->out->dtype);
    PROA_TRY(proa__fill_window(&all, NULL));
    for (int64_t i = 0; i < a->x->numel; i++) {
        int64_t v = a->x->dtype == PROA_I32 ? ((const int32_t *)(const void *)a->x->data)[i]
                                            : ((const int64_t *)(const void *)a->x->data)[i];
        if (v >= 0 && v < depth) memcpy(a->out->data + (i * depth + v) * item, one, (size_t)item);
        else if (!a->allow_out_of_range)
            return OP_FAIL("one_hot", OUT_OF_RANGE, "x", "entry %lld is %lld; expected 0 to %lld",
                           (long long)i, (long long)v, (long long)depth - 1);
    }
    return PROA_OK;
}

PROA_KERNEL_ANYWHERE(meshgrid_cpu, meshgrid)
{
    for (int64_t k = 0; k < a->out.count; k++) {
        const proa_tensor *x = a->inputs.at[k];
        proa_tensor dst = proa__window(a->out.at[k]), src = dst;
        src.data = x->data, src.storage = x->storage;
        for (int i = 0; i < src.ndim; i++) src.strides[i] = i == k && x->ndim ? x->strides[0] : 0;
        PROA_TRY(proa__copy_window(&dst, &src));
    }
    return PROA_OK;
}
