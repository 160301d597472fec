/* Unary functions that call the C library an element at a time. May use core only. */
#define PROA_FORMULAS_TRIG 1
#include "ops/elementwise/complex.h"
#include "ops/elementwise/rows.h"

#include "formulas.inc"
