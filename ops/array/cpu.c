/* Kernels of tensor arrays for any device: whole items are copied by core. May use core, kernels and ops. */
#include "core/copy.h"
#include "core/device.h"
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "impl/array.h"

/* Items [from, from + n) of an array. */
static proa_tensor items(const proa_tensor *array, int64_t from, int64_t n)
{
    proa_tensor w = proa__window(array);
    proa__narrow(&w, 0, from, n, 1);
    return w;
}

static bool is_item(const proa_tensor *array, const proa_tensor *x)
{
    bool same = array->ndim == x->ndim + 1;
    for (int i = 0; same && i < x->ndim; i++) same = array->shape[i + 1] == x->shape[i];
    return same;
}

static proa_status place_of(const proa_tensor *index, int64_t *at)
{
    *at = proa_item_int(index); /* waits if the index is on a device */
    return proa_error();
}

PROA_KERNEL_ANYWHERE(array_create_cpu, array_create)
{
    (void)a;
    return PROA_OK;
}

PROA_KERNEL_ANYWHERE(array_write_cpu, array_write)
{
    int64_t at, had = a->array->shape[0];
    PROA_TRY(place_of(a->index, &at));
    proa_meta meta = proa_meta_of(a->x);
    if (at < 0 || at >= INT64_C(1) << 32)
        return ROWS_FAIL(array_write, OUT_OF_RANGE, "index", "is %lld; expected a number from 0 to 2^32 − 1",
                         (long long)at);
    if (had > 0 && !is_item(a->array, a->x))
        return ROWS_FAIL(array_write, INVALID_ARGUMENT, "x",
                         "is %s, and the array is %s; the items of an array have one shape",
                         proa__tensor_text(a->x), proa__tensor_text(a->array));
    for (int i = meta.ndim++; i > 0; i--) meta.shape[i] = meta.shape[i - 1];
    meta.shape[0] = at + 1 > had ? at + 1 : had;
    proa_array_write_args *args = (proa_array_write_args *)(uintptr_t)a;
    proa_tensor *out = proa_output_resize(args, proa_find_op("array_write"), 0, &meta);
    if (!out) return proa_error();
    proa_tensor old = items(out, 0, had), gap = items(out, had, at > had ? at - had : 0),
                one = proa__entry(out, 0, at);
    proa_tensor array = proa__window(a->array), x = proa__window(a->x);
    if (had > 0) PROA_TRY(proa__copy_window(&old, &array));
    if (at > had) PROA_TRY(proa__fill_window(&gap, NULL));
    return proa__copy_window(&one, &x);
}

PROA_KERNEL_ANYWHERE(array_write_grad_cpu, array_write_grad)
{
    int64_t at, n = a->array->shape[0];
    PROA_TRY(place_of(a->index, &at));
    bool same = a->d_out->shape[0] >= n && a->d_out->ndim == a->d_array->ndim;
    for (int i = 1; same && i < a->d_out->ndim; i++) same = a->d_out->shape[i] == a->d_array->shape[i];
    if (!same && (n > 0 || a->d_out->shape[0] < n))
        return ROWS_FAIL(array_write_grad, INVALID_ARGUMENT, "d_out", "is %s; the array was %s",
                         proa__tensor_text(a->d_out), proa__tensor_text(a->array));
    if (n == 0) return PROA_OK;
    proa_tensor all = proa__window(a->d_array), from = items(a->d_out, 0, n);
    PROA_TRY(proa__copy_window(&all, &from));
    if (at < 0 || at >= n) return PROA_OK;
    proa_tensor one = items(a->d_array, at, 1);
    return proa__fill_window(&one, NULL);
}

static proa_status check_place(const char *op, int64_t at, const proa_tensor *array)
{
    if (at >= 0 && at < array->shape[0]) return PROA_OK;
    return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "index",
                         "is %lld; the array has %lld items", (long long)at, (long long)array->shape[0]);
}

PROA_KERNEL_ANYWHERE(array_read_cpu, array_read)
{
    int64_t at;
    PROA_TRY(place_of(a->index, &at));
    PROA_TRY(check_place("array_read", at, a->array));
    proa_tensor from = proa__entry(a->array, 0, at), to = proa__window(a->out);
    return proa__copy_window(&to, &from);
}

PROA_KERNEL_ANYWHERE(array_read_grad_cpu, array_read_grad)
{
    int64_t at;
    PROA_TRY(place_of(a->index, &at));
    PROA_TRY(check_place("array_read_grad", at, a->array));
    if (!is_item(a->d_array, a->d_out))
        return ROWS_FAIL(array_read_grad, INVALID_ARGUMENT, "d_out", "is %s; an item of %s was expected",
                         proa__tensor_text(a->d_out), proa__tensor_text(a->array));
    proa_tensor all = proa__window(a->d_array), to = proa__entry(a->d_array, 0, at),
                from = proa__window(a->d_out);
    PROA_TRY(proa__fill_window(&all, NULL));
    return proa__copy_window(&to, &from);
}

PROA_KERNEL_ANYWHERE(array_length_cpu, array_length)
{
    return proa__put(a->out, &a->array->shape[0], sizeof a->array->shape[0]);
}

PROA_KERNEL_ANYWHERE(array_to_tensor_cpu, array_to_tensor)
{
    const proa_tensor *x = a->array;
    int64_t n = x->shape[0];
    int axis = (int)(a->axis + (a->axis < 0 ? x->ndim - (a->use_stack ? 0 : 1) : 0));
    int64_t length = a->use_stack ? 1 : x->shape[axis + 1];
    for (int64_t i = 0; i < n; i++) {
        proa_tensor from = proa__entry(x, 0, i),
                    to = a->use_stack ? proa__entry(a->out, axis, i) : proa__window(a->out);
        if (!a->use_stack) proa__narrow(&to, axis, i * length, length, 1);
        PROA_TRY(proa__copy_window(&to, &from));
    }
    size_t bytes = (size_t)n * sizeof(int32_t);
    int32_t *lengths = proa_scratch(bytes + 1);
    if (!lengths) return proa_error();
    for (int64_t i = 0; i < n; i++) lengths[i] = (int32_t)length;
    proa_status s = proa__put(a->out_index, lengths, bytes);
    proa_scratch_free(lengths);
    return s;
}
