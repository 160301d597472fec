/* Paddle's unpool and unpool3d, read as a scatter of the values into zeros at the argmax indices. May use
 * core and the ops. */
#include "ops/wire_util.h"

#include <proa/ops.h>
#include <proa/wire.h>

/* Sets the spatial lengths of the result: `output_size`, or the input length of a pooling with these
 * windows. */
static proa_status sizes_of(proa_wire_reader *r, const char *type, const proa_tensor *x, int dims,
                            int64_t *sizes)
{
    proa_ints given = proa_wire_ints(r, "output_size"), kernel = proa_wire_ints(r, "ksize"),
              stride = proa_wire_ints(r, "strides"), pads = proa_wire_ints(r, "paddings");
    PROA_TRY(proa_error());
    if (x->ndim != dims + 2)
        return OP_FAIL(type, INVALID_ARGUMENT, "X", "must have %d axes, got %s", dims + 2,
                       proa__tensor_text(x));
    const int64_t *end = given.count >= dims ? given.at + given.count - dims : NULL;
    for (int i = 0; i < dims; i++) {
        if (end && end[i] > 0) {
            sizes[i] = end[i];
            continue;
        }
        if (kernel.count != dims || stride.count != dims || pads.count != dims)
            return OP_FAIL(type, INVALID_ARGUMENT, "ksize", "strides and paddings must be %d numbers each",
                           dims);
        if (x->shape[i + 2] < 0)
            return OP_FAIL(type, UNSUPPORTED, "output_size",
                           "must be given where the spatial lengths of X are unknown (%s)",
                           proa__tensor_text(x));
        sizes[i] = (x->shape[i + 2] - 1) * stride.at[i] + kernel.at[i] - 2 * pads.at[i];
        if (sizes[i] <= 0 || sizes[i] > INT32_MAX)
            return OP_FAIL(type, INVALID_ARGUMENT, "ksize", "makes axis %d of the result %lld long", i + 2,
                           (long long)sizes[i]);
    }
    return PROA_OK;
}

/* Zeros [batch, channels, volume]; batch and channels that are unknown come from a `shape` op on x. */
static proa_tensor *blank(proa_tensor *x, int64_t volume)
{
    int64_t shape[3] = {x->shape[0], x->shape[1], volume};
    proa_tensor *supplied[3] = {NULL};
    proa_ints all = {3, shape, NULL, NULL};
    for (int i = 0; i < 2; i++) {
        if (shape[i] >= 0) continue;
        supplied[i] = proa_slice(proa_shape(x), PROA_INTS(0), PROA_INTS(i), PROA_INTS(i + 1));
        if (!supplied[i]) return NULL;
        shape[i] = 0;
        all.tensors = supplied;
    }
    return proa_full(all, proa_scalar_float(0), .dtype = proa_dtype_of(x));
}

static proa_status read_unpool(proa_wire_reader *r, const char *type, int dims)
{
    proa_tensor *x = proa_wire_input(r, "X"), *indices = proa_wire_input(r, "Indices");
    int64_t sizes[3] = {0}, volume = 1, shape[5] = {0, 0};
    if (!proa__is_given(x) || !proa__is_given(indices))
        return proa_error() ? proa_error() : OP_FAIL(type, CORRUPT, "X", "and Indices must be given");
    PROA_TRY(sizes_of(r, type, x, dims, sizes));
    for (int i = 0; i < dims; i++) {
        if (__builtin_mul_overflow(volume, sizes[i], &volume))
            return OP_FAIL(type, OVERFLOW, "output_size", "makes a result of more than 2^63 elements");
        shape[i + 2] = sizes[i];
    }
    proa_tensor *flat = proa_reshape(x, PROA_INTS(0, 0, -1));
    proa_tensor *at = proa_cast(proa_reshape(indices, PROA_INTS(0, 0, -1)), PROA_I64);
    proa_tensor *out = proa_put_along_axis(blank(x, volume), at, flat, 2, .no_broadcast = true);
    return proa_wire_result(r, "Out", proa_reshape(out, ((proa_ints){dims + 2, shape, NULL, NULL})));
}

proa_status unpool_read(proa_wire_reader *r) { return read_unpool(r, "unpool", 2); }

proa_status unpool3d_read(proa_wire_reader *r) { return read_unpool(r, "unpool3d", 3); }
