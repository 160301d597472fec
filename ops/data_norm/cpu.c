/* data_norm on the CPU: each row of x is normalized with per-column statistics. May use core, kernels and
 * ops. */
#include "kernels/rowwise.h"
#include "impl/data_norm.h"

#include <math.h>

#define T float
#define ROOT sqrtf
#include "typed.inc"
#undef T
#undef ROOT
#define T double
#define ROOT sqrt
#include "typed.inc"
#undef T
#undef ROOT

PROA_KERNEL(data_norm_cpu, data_norm)
{
    if (a->x->dtype == PROA_F64) norm_double(a);
    else norm_float(a);
    return PROA_OK;
}

PROA_KERNEL(data_norm_grad_cpu, data_norm_grad)
{
    if (a->x->dtype == PROA_F64) norm_grad_double(a);
    else norm_grad_float(a);
    return PROA_OK;
}
