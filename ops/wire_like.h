/* Zeros written in place of a gradient op's forward input in Paddle's programs, where Paddle's kernel reads
 * only the shape of that input. May use core and proa/wire.h. */
#ifndef PROA_OPS_WIRE_LIKE_H
#define PROA_OPS_WIRE_LIKE_H

#include "ops/ints.h"
#include "ops/wire_util.h"

/* A new variable of `result`'s dtype and the given shape, with a fill_constant op that makes it zero; NULL on
 * error. */
static inline __attribute__((unused)) proa_tensor *proa__wire_put_like(proa_wire_writer *w,
                                                                       const proa_ints *shape,
                                                                       const proa_tensor *result)
{
    proa_meta meta = proa_meta_of(result);
    int64_t at[PROA_MAX_DIMS];
    int n = 0;
    if (proa__ints_list("program", "shape", shape, PROA_MAX_DIMS, at, &n)) return NULL;
    for (int i = 0; i < n; i++)
        if (at[i] == PROA_UNKNOWN) at[i] = -1;
    for (int i = 0; i < n; i++) meta.shape[i] = at[i];
    meta.ndim = (int8_t)n;
    proa_tensor *x = proa_wire_temporary(w, &meta);
    if (!x || proa_wire_op(w, "fill_constant") ||
        (proa__is_given(shape->tensor) && proa_wire_put_input(w, "ShapeTensor", shape->tensor)) ||
        proa__wire_put_entries(w, "ShapeTensorList", shape))
        return NULL;
    if (proa_wire_put_ints(w, "shape", PROA_WIRE_LONGS, (proa_ints){n, at, NULL, NULL}) ||
        proa__wire_put_dtype(w, "dtype", meta.dtype) || proa_wire_put_float(w, "value", 0) ||
        proa_wire_put_string(w, "str_value", "0") ||
        proa_wire_put_int(w, "force_cpu", PROA_WIRE_BOOLEAN, 0) ||
        proa_wire_put_int(w, "place_type", PROA_WIRE_INT, -1) || proa_wire_put_output(w, "Out", x))
        return NULL;
    return x;
}

#endif
