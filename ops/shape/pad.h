/* Paddings before and after each axis, read from the arguments of pad and pad3d, for inference and kernels.
 * May use ops/ints.h. */
#ifndef PROA_OPS_PAD_H
#define PROA_OPS_PAD_H

#include "ops/ints.h"
#include "ops/windows.h"

#include <proa/ops/types.h>

typedef struct proa_pad_plan {
    int ndim;
    int64_t before[PROA_MAX_DIMS], after[PROA_MAX_DIMS]; /* by axis */
} proa_pad_plan;

/* Fills p from the paddings of pad: two entries (before, after) per axis, first axis first. */
proa_status proa__pad_plan(const char *who, int ndim, const proa_ints *paddings, proa_pad_plan *p);
/* Fills p from the paddings of pad3d: two entries (before, after) per spatial axis, last axis first. */
proa_status proa__pad_spatial_plan(const char *who, int ndim, const proa_ints *paddings,
                                   proa_data_format format, proa_pad_plan *p);
#endif
