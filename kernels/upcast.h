/* Whole tensors, inputs and outputs, in the dtype that a kernel computes in: the tensor's own memory if it
 * has that dtype, else scratch memory, into which inputs are converted and from which proa__upcast_end
 * converts outputs back. For kernel files, which are compiled once per CPU level, as proa__convert is; may
 * use core. */
#ifndef PROA_KERNELS_UPCAST_H
#define PROA_KERNELS_UPCAST_H

#include "kernels/iterator.h"

typedef struct proa_upcast {
    char *data;    /* numel elements of dtype `as`, contiguous */
    void *scratch; /* to be freed, or NULL */
    proa_tensor *to;
    proa_dtype as;
} proa_upcast;

/* Computing dtype: float64 for float64, float32 for narrower types. */
static inline __attribute__((unused)) proa_dtype proa__upcast_dtype(const proa_tensor *t)
{
    return t->dtype == PROA_F64 ? PROA_F64 : PROA_F32;
}

static inline proa_status proa__upcast_take(proa_upcast *w, const proa_tensor *t, proa_dtype as)
{
    size_t bytes;
    *w = (proa_upcast){.data = t->data, .as = as};
    if ((proa_dtype)t->dtype == as || t->numel == 0) return PROA_OK;
    if (!proa__mul_size((size_t)t->numel, proa_dtype_size(as), &bytes)) return proa_error();
    w->data = w->scratch = proa_scratch(bytes);
    return w->data ? PROA_OK : proa_error();
}

/* t's values as dtype `as`: its own memory, or a converted copy. */
static inline __attribute__((unused)) proa_status proa__upcast_read(proa_upcast *w, const proa_tensor *t,
                                                                    proa_dtype as)
{
    PROA_TRY(proa__upcast_take(w, t, as));
    if (w->scratch) proa__convert(as, w->data, (proa_dtype)t->dtype, t->data, t->numel);
    return PROA_OK;
}

/* Uninitialized memory for t's values as dtype `as`; proa__upcast_end converts them to t. */
static inline __attribute__((unused)) proa_status proa__upcast_write(proa_upcast *w, proa_tensor *t,
                                                                     proa_dtype as)
{
    PROA_TRY(proa__upcast_take(w, t, as));
    w->to = t;
    return PROA_OK;
}

/* Converts the results into their tensors if `well`, and frees the scratch memory. */
static inline __attribute__((unused)) void proa__upcast_end(proa_upcast *w, int n, bool well)
{
    for (int i = 0; i < n; i++) {
        if (w[i].scratch && w[i].to && well)
            proa__convert((proa_dtype)w[i].to->dtype, w[i].to->data, w[i].as, w[i].data, w[i].to->numel);
        proa_scratch_free(w[i].scratch);
    }
}

#endif
