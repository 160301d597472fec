/* Helpers for reading and writing ops whose form in Paddle's programs differs from ours. May use ops/ints.h,
 * proa/wire.h and the table's enums. */
#ifndef PROA_OPS_WIRE_UTIL_H
#define PROA_OPS_WIRE_UTIL_H

#include "ops/ints.h"

#include <proa/ops/types.h>
#include <proa/wire.h>

/* Reshapes the one of *x, *y with fewer dims to broadcast as attribute `axis` says; false on error. */
bool proa__wire_align(proa_wire_reader *r, proa_tensor **x, proa_tensor **y);

/* Write ops that broadcast t to a shape; *out is the new variable, or t if it already has the shape.
 * `expanded` needs all dims of `to` known; `grown` adds zeros shaped like `like`, for dims known only at run
 * time; `broadcast` chooses between the two, for the shape of tensor `to`. */
proa_status proa__wire_put_expanded(proa_wire_writer *w, proa_tensor *t, const proa_meta *to,
                                    proa_tensor **out);
proa_status proa__wire_put_grown(proa_wire_writer *w, proa_tensor *t, proa_tensor *like, const proa_meta *to,
                                 proa_tensor **out);
proa_status proa__wire_put_broadcast(proa_wire_writer *w, proa_tensor *t, proa_tensor *to, proa_tensor **out);

/* Paddle's number of a dtype; −1 if Paddle has none. */
static inline __attribute__((unused)) int64_t proa__wire_dtype_number(proa_dtype d)
{
    switch (d) {
#define PROA_X(NAME, name, bytes, wire) \
    case PROA_##NAME: return wire;
        PROA_DTYPES(PROA_X)
#undef PROA_X
    default: return -1;
    }
}

static inline __attribute__((unused)) proa_status proa__wire_put_dtype(proa_wire_writer *w, const char *attr,
                                                                       proa_dtype d)
{
    return proa_wire_put_int(w, attr, PROA_WIRE_INT, proa__wire_dtype_number(d));
}

/* The tensor that supplies an int attribute, or NULL. */
static inline __attribute__((unused)) proa_tensor *proa__wire_supplier(const proa_ints *twin)
{
    proa_tensor *t = twin->tensors ? twin->tensors[0] : twin->tensor;
    return proa__is_given(t) ? t : NULL;
}

/* Writes a list of which some entries are tensors: Paddle wants a tensor for each entry. */
static inline __attribute__((unused)) proa_status proa__wire_put_entries(proa_wire_writer *w,
                                                                         const char *slot, const proa_ints *v)
{
    bool some = false;
    for (int64_t i = 0; v->tensors && i < v->count; i++) some |= proa__is_given(v->tensors[i]);
    for (int64_t i = 0; some && i < v->count; i++)
        PROA_TRY(proa__is_given(v->tensors[i]) ? proa_wire_put_input(w, slot, v->tensors[i])
                                               : proa_wire_put_number(w, slot, v->at[i]));
    return PROA_OK;
}

/* Writes a list attribute and the tensors that supply it: one in slot `tensor`, or one per entry in slot
 * `tensors`. Entries known only at run time are −1. */
static inline __attribute__((unused)) proa_status proa__wire_put_list(proa_wire_writer *w, const char *attr,
                                                                      const proa_ints *v, const char *tensor,
                                                                      const char *tensors)
{
    int64_t at[2 * PROA_MAX_DIMS];
    int n = 0;
    PROA_TRY(proa__ints_list("program", attr, v, 2 * PROA_MAX_DIMS, at, &n));
    for (int i = 0; i < n; i++)
        if (at[i] == PROA_UNKNOWN) at[i] = -1;
    if (proa__is_given(v->tensor)) PROA_TRY(proa_wire_put_input(w, tensor, v->tensor));
    PROA_TRY(proa__wire_put_entries(w, tensors, v));
    return proa_wire_put_ints(w, attr, PROA_WIRE_INTS, (proa_ints){n, at, NULL, NULL});
}

/* Writes axes counted from dim 0: several of Paddle's shape inferences and kernels use them as unchecked
 * indices. */
static inline __attribute__((unused)) proa_status proa__wire_put_axes(proa_wire_writer *w, const char *attr,
                                                                      proa_wire_type type,
                                                                      const proa_ints *axes, int ndim)
{
    int64_t at[PROA_MAX_DIMS];
    int64_t n = axes->count < PROA_MAX_DIMS ? axes->count : PROA_MAX_DIMS;
    for (int64_t i = 0; i < n; i++) at[i] = axes->at[i] < 0 ? axes->at[i] + ndim : axes->at[i];
    return proa_wire_put_ints(w, attr, type, (proa_ints){n, at, NULL, NULL});
}

/* Writes the slice of x from starts to ends along axes, as `out`; an end may be negative, and INT32_MAX means
 * the end of the axis. */
static inline __attribute__((unused)) proa_status proa__wire_put_slice(proa_wire_writer *w, proa_tensor *x,
                                                                       proa_tensor *out, proa_ints axes,
                                                                       proa_ints starts, proa_ints ends)
{
    int64_t known[PROA_MAX_DIMS];
    for (int64_t i = 0; i < axes.count; i++) known[i] = 1;
    PROA_TRY(proa_wire_op(w, "slice"));
    PROA_TRY(proa_wire_put_input(w, "Input", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_ints(w, "axes", PROA_WIRE_INTS, axes));
    PROA_TRY(proa_wire_put_ints(w, "starts", PROA_WIRE_INTS, starts));
    PROA_TRY(proa_wire_put_ints(w, "ends", PROA_WIRE_INTS, ends));
    PROA_TRY(
        proa_wire_put_ints(w, "infer_flags", PROA_WIRE_INTS, (proa_ints){axes.count, known, NULL, NULL}));
    return proa_wire_put_ints(w, "decrease_axis", PROA_WIRE_INTS, PROA_SCALAR_SHAPE);
}

/* A temporary variable of t's dtype, with t's dims in the order perm; writes no op. NULL on error. */
static inline __attribute__((unused)) proa_tensor *proa__wire_permuted(proa_wire_writer *w,
                                                                       const proa_tensor *t,
                                                                       const int64_t *perm)
{
    proa_meta from = proa_meta_of(t), m = from;
    for (int i = 0; i < m.ndim; i++) m.shape[i] = from.shape[perm[i]];
    return proa_wire_temporary(w, &m);
}

static inline __attribute__((unused)) proa_status proa__wire_put_transpose(proa_wire_writer *w,
                                                                           proa_tensor *from, proa_tensor *to,
                                                                           const int64_t *perm)
{
    PROA_TRY(proa_wire_op(w, "transpose2"));
    PROA_TRY(proa_wire_put_input(w, "X", from));
    PROA_TRY(proa_wire_put_output(w, "Out", to));
    return proa_wire_put_ints(w, "axis", PROA_WIRE_INTS, (proa_ints){from->ndim, perm, NULL, NULL});
}

static inline __attribute__((unused)) proa_status proa__wire_put_cast(proa_wire_writer *w, proa_tensor *from,
                                                                      proa_tensor *to)
{
    PROA_TRY(proa_wire_op(w, "cast"));
    PROA_TRY(proa_wire_put_input(w, "X", from));
    PROA_TRY(proa_wire_put_output(w, "Out", to));
    PROA_TRY(proa__wire_put_dtype(w, "in_dtype", (proa_dtype)from->dtype));
    return proa__wire_put_dtype(w, "out_dtype", (proa_dtype)to->dtype);
}

/* Writes a reshape: 0 in shape copies a dim, −1 is inferred. */
static inline __attribute__((unused)) proa_status proa__wire_put_reshape(proa_wire_writer *w,
                                                                         proa_tensor *from, proa_tensor *to,
                                                                         proa_ints shape)
{
    PROA_TRY(proa_wire_op(w, "reshape2"));
    PROA_TRY(proa_wire_put_input(w, "X", from));
    PROA_TRY(proa_wire_put_output(w, "Out", to));
    return proa_wire_put_ints(w, "shape", PROA_WIRE_INTS, shape);
}

/* Writes squeeze2 or unsqueeze2, whose forms differ in nothing but their name. */
static inline __attribute__((unused)) proa_status proa__wire_put_axis(proa_wire_writer *w, const char *type,
                                                                      proa_tensor *from, proa_tensor *to,
                                                                      int64_t axis)
{
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "X", from));
    PROA_TRY(proa_wire_put_output(w, "Out", to));
    return proa_wire_put_ints(w, "axes", PROA_WIRE_INTS, PROA_INTS(axis));
}

/* A temporary variable of t's dtype and shape with a new axis of length 1 at `axis`, counted from the end of
 * the result (−1: the last); writes no op. */
static inline __attribute__((unused)) proa_tensor *proa__wire_with_axis(proa_wire_writer *w,
                                                                        const proa_tensor *t, int axis)
{
    proa_meta from = proa_meta_of(t), m = {.dtype = from.dtype, .ndim = (int8_t)(from.ndim + 1)};
    int at = m.ndim + axis;
    for (int i = 0; i < m.ndim; i++) m.shape[i] = i < at ? from.shape[i] : i == at ? 1 : from.shape[i - 1];
    return proa_wire_temporary(w, &m);
}

/* Writes a temporary variable of the shape of x and the given dtype, filled with one value. NULL on error. */
static inline __attribute__((unused)) proa_tensor *proa__wire_filled_like(proa_wire_writer *w, proa_tensor *x,
                                                                          proa_dtype dtype, double value)
{
    proa_meta m = proa_meta_of(x);
    m.dtype = dtype;
    proa_tensor *t = proa_wire_temporary(w, &m);
    if (!t || proa_wire_op(w, "fill_any_like") != PROA_OK || proa_wire_put_input(w, "X", x) != PROA_OK ||
        proa_wire_put_output(w, "Out", t) != PROA_OK || proa_wire_put_float(w, "value", value) != PROA_OK ||
        proa__wire_put_dtype(w, "dtype", dtype) != PROA_OK)
        return NULL;
    return t;
}

static inline __attribute__((unused)) const char *proa__wire_algorithm(proa_padding_algorithm a)
{
    return a == PROA_PADDING_ALGORITHM_SAME    ? "SAME"
           : a == PROA_PADDING_ALGORITHM_VALID ? "VALID"
                                               : "EXPLICIT";
}

/* t as a dtype: itself, or the result of a cast op before. NULL on error. */
static inline __attribute__((unused)) proa_tensor *proa__wire_cast(proa_wire_writer *w, proa_tensor *t,
                                                                   proa_dtype dtype)
{
    if (t->dtype == dtype) return t;
    proa_meta meta = proa_meta_of(t);
    meta.dtype = dtype;
    proa_tensor *out = proa_wire_temporary(w, &meta);
    if (!out || proa_wire_op(w, "cast") || proa_wire_put_input(w, "X", t) ||
        proa__wire_put_dtype(w, "in_dtype", (proa_dtype)t->dtype) ||
        proa__wire_put_dtype(w, "out_dtype", dtype) || proa_wire_put_output(w, "Out", out))
        return NULL;
    return out;
}

#endif
