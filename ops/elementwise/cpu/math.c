/* CPU kernels of the unary functions whose float32 formulas vectorize. May use core only. */
#define PROA_FORMULAS_MATH 1
#include "ops/elementwise/complex.h"
#include "ops/elementwise/inner_loops.h"

#include "formulas.inc"
