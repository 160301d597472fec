/* Epilogues of fused products (bias, residual, activation; kernels/epilogue.h): shape inference, and the
 * composition of plain ops for operands that no fused kernel takes. May use core and kernels. */
#ifndef PROA_OPS_EPILOGUE_H
#define PROA_OPS_EPILOGUE_H

#include "kernels/epilogue.h"

/* The product's meta with the residual, which must have its dtype and broadcasts with it. (Passes write only
 * residuals of the product's shape; where dims are unknown, the shapes are known in the run alone.) */
proa_status proa__epilogue_meta(const char *op, const proa__epilogue *t, proa_meta *out);
/* Runs `op` (args: its own, output given) and then the epilogue in place of out: the composition. */
proa_status proa__epilogue_compose(const char *op, void *args, proa_tensor *out, const proa__epilogue *t);

#endif
