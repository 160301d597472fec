/* Output lists whose entries are sized by the kernel, since their shapes depend on data (`shape: data` in the
 * op table). May use proa/op.h. Implemented in run.c. */
#ifndef PROA_CORE_OUTPUT_LIST_H
#define PROA_CORE_OUTPUT_LIST_H

#include <proa/op.h>

/* Creates entry k of output number `index`, a list, as proa_output_resize creates a single output. Shape
 * inference has set the number of entries. */
proa_tensor *proa__output_resize_at(void *args, const proa_op *op, int index, int64_t k,
                                    const proa_meta *meta);

#endif
