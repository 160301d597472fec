/* CPU kernels of trigonometric, hyperbolic and special functions. Complex and most float64 ones call the C
 * library or a scalar formula per element. May use core only. */
#define PROA_FORMULAS_TRIG 1
#include "ops/elementwise/complex.h"
#include "ops/elementwise/inner_loops.h"

#include "formulas.inc"
