/* Arithmetic of SelectedRows tensors for the folders that may use ops/: sums of gradients. Implemented by
 * selected_rows.c. */
#ifndef PROA_OPS_SELECTED_ROWS_SELECTED_ROWS_H
#define PROA_OPS_SELECTED_ROWS_SELECTED_ROWS_H

#include <proa/core.h>

/* proa_rows_add (a + b, each dense or SelectedRows); with `reuse` a dense a may be written in place and
 * returned. */
proa_tensor *proa__rows_add(proa_tensor *a, proa_tensor *b, bool reuse);

#endif
