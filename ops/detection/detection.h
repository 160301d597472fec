/* Shape inference that several ops share, and prior_box's aspect ratios, for inference and the CPU kernel.
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

/* Checks boxes [N, M, 4] and scores [N, classes, M] of an op of non-maximum suppression, and sets the metas
 * of its results: rows of six numbers, their indices, and how many each image has. */
proa_status proa__nms_infer(const char *op, const proa_tensor *boxes, const proa_tensor *scores,
                            proa_meta *out, proa_meta *index, proa_meta *rois_num);

#endif
