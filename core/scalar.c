/* Constructors of proa_scalar, a number (bool, integer, float, complex) or a one-element tensor. May use core
 * only. */
#include <proa/core.h>

proa_scalar proa_scalar_bool(bool v) { return (proa_scalar){.kind = PROA_SCALAR_BOOL, .i = v}; }
proa_scalar proa_scalar_int(int64_t v) { return (proa_scalar){.kind = PROA_SCALAR_INT, .i = v}; }
proa_scalar proa_scalar_float(double v) { return (proa_scalar){.kind = PROA_SCALAR_FLOAT, .f = v}; }
proa_scalar proa_scalar_complex(double re, double im)
{
    return (proa_scalar){.kind = PROA_SCALAR_COMPLEX, .f = re, .im = im};
}
proa_scalar proa_scalar_tensor(proa_tensor *t)
{
    return (proa_scalar){.kind = PROA_SCALAR_TENSOR, .tensor = t};
}
