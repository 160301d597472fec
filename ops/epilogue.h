/* Epilogues (bias, residual, activation; kernels/epilogue.h) of fused matrix products and convolutions: shape
 * inference, and their computation by one plain op after the other for operands that no fused kernel takes.
 * May use core and kernels. */
#ifndef PROA_OPS_EPILOGUE_H
#define PROA_OPS_EPILOGUE_H

#include "kernels/epilogue.h"

/* Shape and dtype of a fused product's result with its residual, which must have the product's dtype and
 * broadcasts with it. (Passes only write residuals of the product's shape; with unknown dims, shapes are
 * checked at run time.) */
proa_status proa__epilogue_meta(const char *op, const proa__epilogue *t, proa_meta *out);
/* The composed kernel: runs `op` (with its args, whose output is given) and then the epilogue in place on
 * out. */
proa_status proa__epilogue_compose(const char *op, void *args, proa_tensor *out, const proa__epilogue *t);

#endif
