/* Tensor arrays on the CPU: items are copied whole. May use core and the helpers of ops/. */
#include "ops/rows.h"
#include "ops_impl.h"

static int64_t item_of(const proa_tensor *index)
{
    return rows_get_int((proa_dtype)index->dtype, index->data, 0);
}

static size_t bytes_of(const proa_tensor *t)
{
    return (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
}

static size_t item_bytes(const proa_tensor *array)
{
    return array->shape[0] > 0 ? bytes_of(array) / (size_t)array->shape[0] : 0;
}

PROA_KERNEL(array_create_cpu, array_create)
{
    (void)a;
    return PROA_OK;
}

PROA_KERNEL(array_write_cpu, array_write)
{
    int64_t at = item_of(a->index), had = a->array->shape[0];
    proa_meta meta = proa_meta_of(a->x);
    if (at < 0 || at >= INT64_C(1) << 32)
        return ROWS_FAIL(array_write, OUT_OF_RANGE, "index", "is %lld; expected a number from 0 to 2^32 − 1",
                         (long long)at);
    bool same = a->array->ndim == a->x->ndim + 1;
    for (int i = 0; same && i < a->x->ndim; i++) same = a->array->shape[i + 1] == a->x->shape[i];
    if (had > 0 && !same)
        return ROWS_FAIL(array_write, INVALID_ARGUMENT, "x",
                         "is %s, and the array is %s; the items of an array have one shape",
                         proa__tensor_text(a->x), proa__tensor_text(a->array));
    for (int i = meta.ndim++; i > 0; i--) meta.shape[i] = meta.shape[i - 1];
    meta.shape[0] = at + 1 > had ? at + 1 : had;
    proa_array_write_args *args = (proa_array_write_args *)(uintptr_t)a;
    proa_tensor *out = proa_output_resize(args, proa_find_op("array_write"), 0, &meta);
    if (!out) return proa_error();
    size_t item = bytes_of(a->x);
    if (had > 0) memcpy(out->data, a->array->data, (size_t)had * item);
    if (at > had) memset(out->data + (size_t)had * item, 0, (size_t)(at - had) * item);
    if (item) memcpy(out->data + (size_t)at * item, a->x->data, item);
    return PROA_OK;
}

PROA_KERNEL(array_write_grad_cpu, array_write_grad)
{
    int64_t at = item_of(a->index), n = a->array->shape[0];
    size_t item = item_bytes(a->d_out);
    if (a->d_out->shape[0] < n || (n > 0 && item * (size_t)n != bytes_of(a->d_array)))
        return ROWS_FAIL(array_write_grad, INVALID_ARGUMENT, "d_out", "is %s; the array was %s",
                         proa__tensor_text(a->d_out), proa__tensor_text(a->array));
    if (n > 0) memcpy(a->d_array->data, a->d_out->data, item * (size_t)n);
    if (at >= 0 && at < n) memset(a->d_array->data + (size_t)at * item, 0, item);
    return PROA_OK;
}

static proa_status check_place(const char *op, int64_t at, const proa_tensor *array)
{
    if (at >= 0 && at < array->shape[0]) return PROA_OK;
    return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "index",
                         "is %lld; the array has %lld items", (long long)at, (long long)array->shape[0]);
}

PROA_KERNEL(array_read_cpu, array_read)
{
    int64_t at = item_of(a->index);
    PROA_TRY(check_place("array_read", at, a->array));
    size_t item = item_bytes(a->array);
    if (item) memcpy(a->out->data, a->array->data + (size_t)at * item, item);
    return PROA_OK;
}

PROA_KERNEL(array_read_grad_cpu, array_read_grad)
{
    int64_t at = item_of(a->index);
    PROA_TRY(check_place("array_read_grad", at, a->array));
    size_t item = item_bytes(a->d_array);
    if (item != bytes_of(a->d_out))
        return ROWS_FAIL(array_read_grad, INVALID_ARGUMENT, "d_out", "is %s; an item of %s was expected",
                         proa__tensor_text(a->d_out), proa__tensor_text(a->array));
    memset(a->d_array->data, 0, bytes_of(a->d_array));
    if (item) memcpy(a->d_array->data + (size_t)at * item, a->d_out->data, item);
    return PROA_OK;
}

PROA_KERNEL(array_length_cpu, array_length)
{
    *(int64_t *)(void *)a->out->data = a->array->shape[0];
    return PROA_OK;
}

PROA_KERNEL(array_to_tensor_cpu, array_to_tensor)
{
    const proa_tensor *x = a->array;
    int64_t n = x->shape[0], axis = a->axis + (a->axis < 0 ? x->ndim - (a->use_stack ? 0 : 1) : 0), outer = 1;
    for (int64_t i = 0; i < axis; i++) outer *= x->shape[i + 1];
    size_t item = item_bytes(x), piece = outer > 0 ? item / (size_t)outer : 0;
    for (int64_t o = 0; piece && o < outer; o++)
        for (int64_t i = 0; i < n; i++)
            memcpy(a->out->data + (size_t)(o * n + i) * piece, x->data + (size_t)i * item + (size_t)o * piece,
                   piece);
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)(void *)a->out_index->data)[i] = a->use_stack ? 1 : (int32_t)x->shape[axis + 1];
    return PROA_OK;
}
