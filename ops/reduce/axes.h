/* Axes of a reduction: reads the attribute `axis` into a bit mask. Implemented in infer.c. */
#ifndef PROA_OPS_REDUCE_AXES_H
#define PROA_OPS_REDUCE_AXES_H

#include <proa/op.h>

/* Sets *mask to the axes, bit i for axis i; an empty list means all. INVALID_ARGUMENT for an axis that is out
 * of range or repeated. */
proa_status proa__reduce_mask(const char *who, const proa_ints *axis, int ndim, unsigned *mask);
/* An axis that a variable of a program supplies, which is known only when the program runs. */
#define PROA_AXIS_UNKNOWN (-1)
/* Axis of argmax, cumsum, … as a number from 0, or PROA_AXIS_UNKNOWN; *flat: `axis` is absent and the op
 * reads x as 1-D. */
proa_status proa__scan_axis(const char *who, const proa_scalar *axis, int ndim, int *to, bool *flat);

#endif
