/* Paddle's unpool and unpool3d, read as a scatter of the values into zeros at the argmax indices. May use
 * core and the ops. */
#include "ops/wire_util.h"

#include <proa/ops.h>
#include <proa/wire.h>

/* Sets the spatial lengths of the result, `shape` from dim 2 on: `output_size`, numbers or variables, or the
 * input length of a pooling with these windows. */
static proa_status lengths_of(proa_wire_reader *r, const char *type, const proa_tensor *x, int dims,
                              int64_t *shape, proa_tensor **supplied)
{
    proa_ints given = proa_wire_list(r, "output_size", NULL, NULL), kernel = proa_wire_ints(r, "ksize"),
              stride = proa_wire_ints(r, "strides"), pads = proa_wire_ints(r, "paddings");
    PROA_TRY(proa_error());
    int64_t skipped = given.count - dims;
    if (given.tensor)
        return OP_FAIL(type, UNSUPPORTED, "output_size", "comes from one variable; expected one a length");
    for (int i = 0; i < dims; i++) {
        if (skipped >= 0 && given.tensors) supplied[i + 2] = given.tensors[skipped + i];
        if (skipped >= 0 && given.at[skipped + i] > 0) shape[i + 2] = given.at[skipped + i];
        if (supplied[i + 2] || shape[i + 2] > 0) continue;
        if (kernel.count != dims || stride.count != dims || pads.count != dims)
            return OP_FAIL(type, INVALID_ARGUMENT, "ksize", "strides and paddings must be %d numbers each",
                           dims);
        if (x->shape[i + 2] < 0)
            return OP_FAIL(type, UNSUPPORTED, "output_size",
                           "must be given where the spatial lengths of X are unknown (%s)",
                           proa__tensor_text(x));
        shape[i + 2] = (x->shape[i + 2] - 1) * stride.at[i] + kernel.at[i] - 2 * pads.at[i];
        if (shape[i + 2] <= 0 || shape[i + 2] > INT32_MAX)
            return OP_FAIL(type, INVALID_ARGUMENT, "ksize", "makes axis %d of the result %lld long", i + 2,
                           (long long)shape[i + 2]);
    }
    return PROA_OK;
}

/* Zeros of the result's size, [batch, channels, volume]. Batch and channels are x's, where they are unknown
 * by a `shape` op. */
static proa_tensor *blank(proa_tensor *x, proa_ints result)
{
    int64_t shape[5] = {0};
    proa_tensor *supplied[5] = {NULL};
    proa_ints all = {result.count, shape, NULL, supplied};
    for (int i = 0; i < (int)result.count; i++) {
        shape[i] = i < 2 ? x->shape[i] : result.at[i];
        supplied[i] = result.tensors[i];
        if (shape[i] >= 0) continue;
        supplied[i] = proa_slice(proa_shape(x), PROA_INTS(0), PROA_INTS(i), PROA_INTS(i + 1));
        if (!supplied[i]) return NULL;
        shape[i] = 0;
    }
    return proa_reshape(proa_full(all, proa_scalar_float(0), .dtype = proa_dtype_of(x)), PROA_INTS(0, 0, -1));
}

static proa_status read_unpool(proa_wire_reader *r, const char *type, int dims)
{
    proa_tensor *x = proa_wire_input(r, "X"), *indices = proa_wire_input(r, "Indices");
    int64_t shape[5] = {0}, volume = 1; /* 0: x's dim */
    proa_tensor *supplied[5] = {NULL};
    if (!proa__is_given(x) || !proa__is_given(indices))
        return proa_error() ? proa_error() : OP_FAIL(type, CORRUPT, "X", "and Indices must be given");
    if (x->ndim != dims + 2)
        return OP_FAIL(type, INVALID_ARGUMENT, "X", "must have %d axes, got %s", dims + 2,
                       proa__tensor_text(x));
    PROA_TRY(lengths_of(r, type, x, dims, shape, supplied));
    for (int i = 2; i < dims + 2; i++)
        if (!supplied[i] && __builtin_mul_overflow(volume, shape[i], &volume))
            return OP_FAIL(type, OVERFLOW, "output_size", "makes a result of more than 2^63 elements");
    proa_ints result = {dims + 2, shape, NULL, supplied};
    proa_tensor *flat = proa_reshape(x, PROA_INTS(0, 0, -1));
    proa_tensor *at = proa_cast(proa_reshape(indices, PROA_INTS(0, 0, -1)), PROA_I64);
    proa_tensor *out = proa_put_along_axis(blank(x, result), at, flat, 2, .no_broadcast = true);
    return proa_wire_result(r, "Out", proa_reshape(out, result));
}

proa_status unpool_read(proa_wire_reader *r) { return read_unpool(r, "unpool", 2); }

proa_status unpool3d_read(proa_wire_reader *r) { return read_unpool(r, "unpool3d", 3); }
