/* Helpers of passes that fuse epilogues into products. May use core and ops. */
#ifndef PROA_JIT_PASSES_EPILOGUE_H
#define PROA_JIT_PASSES_EPILOGUE_H

#include "edit.h"

#include <proa/ops/types.h>

typedef struct proa__activation {
    proa_fused_activation kind;
    double alpha, beta; /* as in conv2d_fused */
} proa__activation;

/* Describes the op as an epilogue's activation; false if it is not an activation. */
bool proa__activation_of(const proa_instr *instr, proa__activation *to);
/* True if t, broadcast to out's shape, varies along `axis` only. */
bool proa__runs_along(const proa_tensor *t, const proa_tensor *out, int axis);

#endif
