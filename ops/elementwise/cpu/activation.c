/* CPU kernels of activations and their fused gradients, generated from the scalar formulas, and of prelu. May
 * use core only. */
#define PROA_FORMULAS_ACTIVATION 1
#include "core/copy.h"
#include "ops/elementwise/complex.h"
#include "ops/elementwise/inner_loops.h"

#include "formulas.inc"
#include "ops/windows.h"

/* prelu reads alpha through a view of its shape that broadcasts with x. */
#define PRELU_ROW(D)                                                       \
    static void prelu_row_##D(char *const *p, int64_t n, const void *args) \
    {                                                                      \
        (void)args;                                                        \
        proa_c_##D *out = (proa_c_##D *)(void *)p[0];                      \
        const proa_c_##D *x = (const proa_c_##D *)(const void *)p[1];      \
        const proa_c_##D *alpha = (const proa_c_##D *)(const void *)p[2];  \
        PROA_ROW_LOOP out[i] = leaky_relu_##D(x[i], alpha[i]);             \
    }
PRELU_ROW(F32)
PRELU_ROW(F64)

PROA_KERNEL(prelu_cpu, prelu)
{
    const proa_tensor *x = a->x;
    if (x->numel <= 0) return PROA_OK;
    proa_tensor *alpha = proa__contiguous(a->alpha);
    if (!alpha) return proa_error();
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)x->dtype);
    proa_tensor view = {.dtype = x->dtype, .ndim = x->ndim, .numel = alpha->numel, .data = alpha->data};
    for (int i = 0; i < x->ndim; i++) view.shape[i] = 1, view.strides[i] = 0;
    if (a->mode == PROA_PRELU_MODE_CHANNEL) {
        int c = proa__channels_last(a->data_format) ? x->ndim - 1 : 1;
        view.shape[c] = x->shape[c], view.strides[c] = item;
    } else if (a->mode == PROA_PRELU_MODE_ELEMENT) {
        int64_t stride = item;
        for (int i = x->ndim - 1; i > 0; i--) {
            view.shape[i] = x->shape[i], view.strides[i] = stride;
            stride *= x->shape[i];
        }
    }
    proa_dtype d = x->dtype == PROA_F64 ? PROA_F64 : PROA_F32;
    proa_row row = x->dtype == PROA_F64 ? prelu_row_F64 : prelu_row_F32;
    proa_map map = {.row = row, .n = 3, .tensor = {a->out, a->x, &view}, .as = {d, d, d}};
    proa_status status = proa__map_run(&map);
    if (alpha != a->alpha) proa_drop(alpha);
    return status;
}
