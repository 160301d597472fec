/* Arithmetic of SelectedRows tensors for the folders that may use ops/: sums of gradients. Implemented by
 * selected_rows.c. */
#ifndef PROA_OPS_SELECTED_ROWS_SELECTED_ROWS_H
#define PROA_OPS_SELECTED_ROWS_SELECTED_ROWS_H

#include <proa/core.h>

/* proa_rows_add; with `reuse` the result may be a itself, written in place. */
proa_tensor *proa__rows_add(proa_tensor *a, proa_tensor *b, bool reuse);

#endif
