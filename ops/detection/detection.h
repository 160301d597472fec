/* Aspect ratios of prior_box, shared by its shape inference and its kernels. May use core and ops.
 * Implemented in infer.c. */
#ifndef PROA_OPS_DETECTION_H
#define PROA_OPS_DETECTION_H

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/detection/ratios.h"
#include "impl/detection.h"

/* Collects prior_box's distinct aspect ratios: 1, then those given, each with its inverse if `flip` is
 * set. */
proa_status proa__prior_ratios(const proa_prior_box_args *a, double *to, int64_t *count);

#endif
