/* Gives oneDNN's memory layouts the numbers of core/blocked.h: a format is a oneDNN format tag. For the files
 * that implement kernels/onednn.h. May use core only. */
#ifndef PROA_KERNELS_ONEDNN_FORMAT_H
#define PROA_KERNELS_ONEDNN_FORMAT_H

#include "kernels/onednn.h"

/* The format in which elements have the same offsets as in md, which may store compensation sums behind them;
 * 0: none. */
int proa__dnnl_format_of_elements(const_dnnl_memory_desc_t md);
/* Runs a reorder primitive from memory `from`, with descriptor a, to memory `to`, with descriptor b. */
bool proa__dnnl_reorder(dnnl_primitive_t primitive, const_dnnl_memory_desc_t a, void *from,
                        const_dnnl_memory_desc_t b, void *to);

#endif
