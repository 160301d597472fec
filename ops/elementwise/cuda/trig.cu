/* Formulas of the group trig as CUDA kernels. */
#define PROA_FORMULAS_TRIG 1
#include "ops/elementwise/cuda/elementwise.h"

#include "formulas_cuda.inc"
