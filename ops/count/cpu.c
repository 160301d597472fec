/* Kernels of histogram and bincount. May use core, kernels and ops headers. */
#include "ops/ints.h"
#include "kernels/iterator.h"
#include "kernels/rowwise.h"
#include "impl/count.h"

#include <math.h>

extern const proa_op proa__op_bincount;

enum { PIECE = 256 };

/* Minimum and maximum of x, without NaN; false if there is no number. */
static bool range_of(const proa_tensor *x, double *low, double *high)
{
    double v[PIECE];
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)x->dtype);
    *low = INFINITY, *high = -INFINITY;
    for (int64_t i = 0; i < x->numel; i += PIECE) {
        int64_t n = x->numel - i < PIECE ? x->numel - i : PIECE;
        proa__convert(PROA_F64, v, (proa_dtype)x->dtype, x->data + i * item, n);
        for (int64_t k = 0; k < n; k++) {
            if (v[k] < *low) *low = v[k];
            if (v[k] > *high) *high = v[k];
        }
    }
    return *low <= *high;
}

PROA_KERNEL(histogram_cpu, histogram)
{
    const proa_tensor *x = a->input;
    int64_t *count = (int64_t *)(void *)a->out->data, item = (int64_t)proa_dtype_size((proa_dtype)x->dtype);
    double low = (double)a->min, high = (double)a->max, v[PIECE];
    bool single = x->dtype >= PROA_F16 && x->dtype <= PROA_F32; /* bin edges in float32, as Paddle's */
    memset(count, 0, (size_t)a->bins * sizeof *count);
    if (a->min == a->max && !range_of(x, &low, &high)) return PROA_OK;
    if (!isfinite(low) || !isfinite(high))
        return OP_FAIL("histogram", INVALID_ARGUMENT, "input",
                       "reaches from %g to %g; give min and max, or finite numbers", low, high);
    if (low == high) low -= 1, high += 1;
    for (int64_t i = 0; i < x->numel; i += PIECE) {
        int64_t n = x->numel - i < PIECE ? x->numel - i : PIECE;
        proa__convert(PROA_F64, v, (proa_dtype)x->dtype, x->data + i * item, n);
        for (int64_t k = 0; k < n; k++) {
            if (!(v[k] >= low && v[k] <= high)) continue;
            int64_t bin = single
                              ? (int64_t)(((float)v[k] - (float)low) * (float)a->bins / (float)(high - low))
                              : (int64_t)((v[k] - low) * (double)a->bins / (high - low));
            count[bin < a->bins ? bin : a->bins - 1]++;
        }
    }
    return PROA_OK;
}

PROA_KERNEL(bincount_cpu, bincount)
{
    const proa_tensor *x = a->x, *w = a->weights == proa_none ? NULL : a->weights;
    int64_t length = 0;
    for (int64_t i = 0; i < x->numel; i++) {
        int64_t v = rows_get_int((proa_dtype)x->dtype, x->data, i);
        if (v < 0 || v == INT64_MAX)
            return OP_FAIL("bincount", INVALID_ARGUMENT, "x", "entry %lld is %lld; expected 0 or more",
                           (long long)i, (long long)v);
        if (v >= length) length = v + 1;
    }
    if (x->numel && length < a->minlength) length = a->minlength;
    proa_dtype to = !w ? PROA_I64 : w->dtype == PROA_F32 ? PROA_F32 : PROA_F64;
    proa_meta meta = {.dtype = to, .ndim = 1, .shape = {length}};
    if (!proa_output_resize((void *)(uintptr_t)a, &proa__op_bincount, 0, &meta)) {
        proa_clear_error();
        return OP_FAIL("bincount", OUT_OF_MEMORY, "x",
                       "has numbers up to %lld; there is no memory for so many counts",
                       (long long)length - 1);
    }
    if (length) memset(a->out->data, 0, (size_t)length * proa_dtype_size(to));
    for (int64_t i = 0; i < x->numel; i++) {
        int64_t v = rows_get_int((proa_dtype)x->dtype, x->data, i);
        double weight = 1;
        if (w)
            proa__convert(PROA_F64, &weight, (proa_dtype)w->dtype,
                          w->data + i * (int64_t)proa_dtype_size((proa_dtype)w->dtype), 1);
        if (!w) ((int64_t *)(void *)a->out->data)[v]++;
        else if (to == PROA_F32) ((float *)(void *)a->out->data)[v] += (float)weight;
        else ((double *)(void *)a->out->data)[v] += weight;
    }
    return PROA_OK;
}
