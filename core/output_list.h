/* Outputs that are lists, sized by the kernels of `shape: data` ops. May use proa/op.h. Implemented in
 * run.c. */
#ifndef PROA_CORE_OUTPUT_LIST_H
#define PROA_CORE_OUTPUT_LIST_H

#include <proa/op.h>

/* proa_output_resize for entry k of a list among the outputs; inference says how many entries there are. */
proa_tensor *proa__output_resize_at(void *args, const proa_op *op, int index, int64_t k,
                                    const proa_meta *meta);

#endif
