/* What the fused products (conv2d_fused, linear_fused) do after the product: add a residual, apply an
 * activation. May use core only. */
#ifndef PROA_OPS_EPILOGUE_H
#define PROA_OPS_EPILOGUE_H

#include "core/internal.h"
#include "core/tensor.h"
#include "ops_impl.h"

typedef struct proa__epilogue {
    proa_tensor *residual; /* or proa_none */
    proa_fused_activation activation;
    double alpha, beta;
} proa__epilogue;

#define PROA__EPILOGUE(a) ((proa__epilogue){(a)->residual, (a)->activation, (a)->alpha, (a)->beta})

/* What becomes of the product's meta: the residual must have its dtype, and broadcasts with it. (Passes write
 * only residuals of the product's shape; where dims are unknown, that is known in the run alone.) */
proa_status proa__epilogue_meta(const char *op, const proa__epilogue *t, proa_meta *out);
/* True if the residual's shape is out's, or there is none: what kernels other than the composition take. */
bool proa__epilogue_is_plain(const proa__epilogue *t, const proa_tensor *out);
/* Runs `op` (args: its own, output given) and then the tail in place of out: the composition. */
proa_status proa__epilogue_compose(const char *op, void *args, proa_tensor *out, const proa__epilogue *t);

#endif
