/* CUDA kernels of trigonometric and other unary functions, generated from the scalar formulas. */
#define PROA_FORMULAS_TRIG 1
#include "ops/elementwise/cuda/elementwise.h"

#include "formulas_cuda.inc"
