/* Makes a GPU's device table: what runtime.c offers to the entry point of the plug-in (plugin.c). C. */
#ifndef PROA_CUDA_TABLE_H
#define PROA_CUDA_TABLE_H

#include "driver.h"

#include <proa/device.h>

/* Fills the row of GPU `index`, without kernels. NULL, or why the GPU cannot be used. */
const char *cuda_table_make(proa_device_table *table, int index, const cuda_driver *driver);

#endif
