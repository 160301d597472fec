/* cvm on the CPU. Compiled once per CPU level; static functions and the kernel only. */
#include "core/tensor.h"
#include "impl/cvm.h"

#include <math.h>
#include <string.h>

#define CVM_ROWS(T, LOG)                                                            \
    static void cvm_##T(const T *x, T *y, int64_t rows, int64_t width, int64_t cut) \
    {                                                                               \
        for (; rows > 0; rows--, x += width, y += width - cut) {                    \
            memcpy(y, x + cut, (size_t)(width - cut) * sizeof *y);                  \
            if (!cut) y[0] = LOG(x[0] + 1), y[1] = LOG(x[1] + 1) - y[0];            \
        }                                                                           \
    }
CVM_ROWS(float, logf)
CVM_ROWS(double, log)

PROA_KERNEL(cvm_cpu, cvm)
{
    const void *x = a->x->data;
    void *y = a->y->data;
    int64_t rows = a->x->shape[0], width = a->x->shape[1], cut = a->use_cvm ? 0 : 2;
    if (a->x->dtype == PROA_F64) cvm_double(x, y, rows, width, cut);
    else cvm_float(x, y, rows, width, cut);
    return PROA_OK;
}
