/* gather_tree and sequence_mask on the CPU. May use core, kernels and ops. */
#include "kernels/iterator.h"
#include "ops/scalar.h"
#include "impl/sequence.h"

#include "kernels/rowwise.h"

PROA_KERNEL(gather_tree_cpu, gather_tree)
{
    int64_t times = a->ids->shape[0], batch = a->ids->shape[1], beams = a->ids->shape[2];
    proa_dtype dtype = (proa_dtype)a->ids->dtype;
    size_t item = proa_dtype_size(dtype);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t k = 0; k < beams; k++)
            for (int64_t t = times - 1, beam = k; t >= 0; t--) {
                int64_t at = (t * batch + b) * beams;
                memcpy(a->out->data + (size_t)(at + k) * item, a->ids->data + (size_t)(at + beam) * item,
                       item);
                int64_t parent = rows_get_int(dtype, a->parents->data, at + beam);
                if (parent < 0 || parent >= beams)
                    return ROWS_FAIL(gather_tree, OUT_OF_RANGE, "parents",
                                     "entry [%lld, %lld, %lld] is %lld; expected 0 to %lld, a beam",
                                     (long long)t, (long long)b, (long long)beam, (long long)parent,
                                     (long long)beams - 1);
                beam = parent;
            }
    return PROA_OK;
}

PROA_KERNEL(sequence_mask_cpu, sequence_mask)
{
    int64_t length = -1, n = a->x->numel;
    proa__scalar_to(&a->maxlen, PROA_I64, -1, &length);
    proa_dtype dtype = (proa_dtype)a->x->dtype;
    if (length < 0) {
        length = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t v = rows_get_int(dtype, a->x->data, i);
            if (v > length) length = v;
        }
    }
    proa_meta meta = proa_meta_of(a->x);
    meta.dtype = a->dtype;
    meta.shape[meta.ndim++] = length;
    proa_sequence_mask_args *args = (proa_sequence_mask_args *)(uintptr_t)a;
    proa_tensor *out = proa_output_resize(args, proa_find_op("sequence_mask"), 0, &meta);
    if (!out) return proa_error();
    for (int64_t i = 0; i < n; i++) {
        int64_t v = rows_get_int(dtype, a->x->data, i);
        uint8_t row[ROWS_PIECE];
        for (int64_t k = 0, w; k < length; k += w) {
            w = length - k < ROWS_PIECE ? length - k : ROWS_PIECE;
            for (int64_t j = 0; j < w; j++) row[j] = k + j < v;
            proa__convert(a->dtype, out->data + (size_t)(i * length + k) * proa_dtype_size(a->dtype), PROA_U8,
                          row, w);
        }
    }
    return PROA_OK;
}
