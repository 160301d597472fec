/* Epilogue of a fused product (conv2d_fused, linear_fused): a residual to add, then an activation with its
 * parameters alpha and beta. May use core and the generated enums. */
#ifndef PROA_KERNELS_EPILOGUE_H
#define PROA_KERNELS_EPILOGUE_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/op.h>
#include <proa/ops/types.h>

typedef struct proa__epilogue {
    proa_tensor *residual; /* or proa_none */
    proa_fused_activation activation;
    double alpha, beta;
} proa__epilogue;

#define PROA__EPILOGUE(a) ((proa__epilogue){(a)->residual, (a)->activation, (a)->alpha, (a)->beta})

/* True if the residual is absent or has out's shape, as fused kernels require. */
static inline bool proa__epilogue_is_plain(const proa__epilogue *e, const proa_tensor *out)
{
    const proa_tensor *r = e->residual;
    return proa__absent(r) ||
           (r->ndim == out->ndim && memcmp(r->shape, out->shape, (size_t)out->ndim * sizeof *r->shape) == 0);
}

#endif
