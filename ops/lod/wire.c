/* row_conv of Paddle's programs, read as a sum of shifted products or, for LoD sequences, as a sequence_conv.
 * Uses proa/wire.h, proa/ops.h. */
#include "ops/wire_util.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/lod.h"
#include "impl/shape.h"

/* Steps [N, T, D] and those ahead of them, each times its row of the filter [K, D]. */
static proa_tensor *steps_ahead(proa_tensor *x, proa_tensor *filter, int64_t k)
{
    proa_tensor *ahead = proa_pad(x, PROA_INTS(0, 0, 0, k - 1, 0, 0)), *total = NULL;
    for (int64_t i = 0; i < k; i++) { /* an end counted from behind */
        int64_t end = i + 1 < k ? i + 1 - k : INT32_MAX;
        proa_tensor *part = proa_slice(ahead, PROA_INTS(1), PROA_INTS(i), PROA_INTS(end));
        proa_tensor *row =
            proa_slice(filter, PROA_INTS(0), PROA_INTS(i), PROA_INTS(i + 1), .decrease_axis = PROA_INTS(0));
        part = proa_multiply(part, row);
        total = total ? proa_add(total, part) : part;
    }
    return total;
}

/* For LoD sequences: a sequence_conv with a diagonal filter, which keeps columns apart. */
proa_status row_conv_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *filter = proa_wire_input(r, "Filter");
    if (!proa__is_given(x) || !proa__is_given(filter)) return proa_error();
    int64_t k = filter->shape[0], d = filter->shape[1];
    if (x->ndim == 3) return proa_wire_result(r, "Out", steps_ahead(x, filter, k));
    proa_tensor *offsets = proa_wire_input(r, "X@LOD");
    proa_tensor *eye = proa_eye(d, .dtype = (proa_dtype)filter->dtype);
    proa_tensor *apart = proa_multiply(proa_unsqueeze(filter, PROA_INTS(1)), eye);
    apart = proa_reshape(apart, PROA_INTS(k * d, d));
    return proa_wire_result(r, "Out", proa_sequence_conv(x, apart, offsets, .length = k, .start = PROA_ZERO));
}
