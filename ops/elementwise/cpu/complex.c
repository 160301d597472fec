/* CPU kernels of real, imag and conj. May use core only. */
#define PROA_FORMULAS_COMPLEX 1
#include "ops/elementwise/complex.h"
#include "ops/elementwise/inner_loops.h"

#include "formulas.inc"
