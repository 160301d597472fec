/* Aspect ratios of prior_box, shared by its shape inference and its CPU kernel (ratios.h is for GPUs, too).
 * May use core and ops. Implemented in infer.c. */
#ifndef PROA_OPS_DETECTION_H
#define PROA_OPS_DETECTION_H

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/detection/ratios.h"
#include "impl/detection.h"

/* Writes prior_box's distinct aspect ratios to to[DETECTION_RATIOS]: 1, those given, and with `flip` their
 * inverses; *count: how many. INVALID_ARGUMENT for a ratio that is not above 0, and for too many. */
proa_status proa__prior_ratios(const proa_prior_box_args *a, double *to, int64_t *count);

#endif
