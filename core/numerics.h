/* Inspection of results: statistics of a tensor's elements, and a function that is shown every op's outputs
 * and every gradient rule's results (amp.debugging). May use core only. */
#ifndef PROA_CORE_NUMERICS_H
#define PROA_CORE_NUMERICS_H

#include "core/internal.h"

typedef struct proa_numerics {
    bool counted; /* false: the tensor has no floating-point elements in memory, and the rest is 0 */
    int64_t nan, inf, zero;
    int64_t first;         /* index of the first NaN or infinity; -1: none */
    double max, min, mean; /* of a complex tensor: over the real and imaginary parts */
} proa_numerics;

/* Counts the elements of a tensor; of one that is strided or on a device, those of a copy. max and min
 * compare from the first element on, so that they are NaN if it is. */
PROA_API proa_status proa_numerics_of(const proa_tensor *t, proa_numerics *n);

/* Shown a call after it has run (gradient is NULL: look at the outputs in args), and each tensor that a
 * gradient rule has made, with the op and args of the forward call. An error fails the call. */
typedef proa_status (*proa_inspector)(const proa_op *op, const void *args, const proa_tensor *gradient);
/* Shows every call of every thread to `to`; NULL: nobody. judges: while FLAGS_check_nan_inf is set, `to`
 * decides what is an error. */
PROA_API void proa_inspect(proa_inspector to, bool judges);

/* True while there is an inspector. */
bool proa__inspecting(void);
/* Keeps this thread's calls from the inspector, as those that a gradient rule is made of; returns the former
 * setting. */
bool proa__hold_inspection(bool hold);
/* Shows a gradient to the inspector. */
proa_status proa__inspect_gradient(const proa_op *op, const void *args, const proa_tensor *gradient);

#endif
