/* Clipping by global norm in Paddle's programs: written as the ops that Paddle's ClipGradByGlobalNorm
 * appends. May use core, kernels and proa/wire.h. */
#include "impl/clip.h"

#include <proa/wire.h>

#include "kernels/rowwise.h"
#include "ops/wire_util.h"

static proa_meta one_number(int dtype)
{
    return (proa_meta){.dtype = (proa_dtype)dtype, .ndim = 1, .shape = {1}};
}

proa_status global_squared_norm_write(const void *args, proa_wire_writer *w)
{
    const proa_global_squared_norm_args *a = args;
    if (a->xs.count == 0)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "global_squared_norm: an empty list cannot be written to a program");
    proa_tensor **parts = proa_scratch((size_t)a->xs.count * sizeof *parts);
    if (!parts) return proa_error();
    proa_status status = PROA_OK;
    for (int64_t i = 0; i < a->xs.count && status == PROA_OK; i++) {
        int dtype = a->xs.at[i]->dtype;
        proa_meta meta = one_number(dtype);
        proa_tensor *part = proa_wire_temporary(w, &meta);
        if (!part || proa_wire_op(w, "squared_l2_norm") || proa_wire_put_input(w, "X", a->xs.at[i]) ||
            proa_wire_put_output(w, "Out", part) ||
            !(parts[i] = proa__wire_cast(w, part, (proa_dtype)a->out->dtype)))
            status = proa_error();
    }
    if (status == PROA_OK) status = proa_wire_op(w, "sum");
    for (int64_t i = 0; i < a->xs.count && status == PROA_OK; i++)
        status = proa_wire_put_input(w, "X", parts[i]);
    if (status == PROA_OK) status = proa_wire_put_output(w, "Out", a->out);
    proa_scratch_free(parts);
    return status;
}

/* y = op(x[, z]) on one number. NULL after an error. */
static proa_tensor *arithmetic(proa_wire_writer *w, const char *op, proa_tensor *x, proa_tensor *z, int dtype)
{
    proa_meta meta = one_number(dtype);
    proa_tensor *out = proa_wire_temporary(w, &meta);
    if (!out || proa_wire_op(w, op) || proa_wire_put_input(w, "X", x) || proa_wire_put_output(w, "Out", out))
        return NULL;
    if (z && (proa_wire_put_input(w, "Y", z) || proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1))) return NULL;
    return out;
}

proa_status clip_by_global_norm_write(const void *args, proa_wire_writer *w)
{
    const proa_clip_by_global_norm_args *a = args;
    int dtype = a->squared_norm->dtype;
    proa_meta meta = one_number(dtype);
    proa_tensor *norm = arithmetic(w, "sqrt", a->squared_norm, NULL, dtype);
    proa_tensor *limit = proa_wire_temporary(w, &meta);
    if (!norm || !limit) return proa_error();
    PROA_TRY(proa_wire_op(w, "fill_constant"));
    PROA_TRY(proa_wire_put_output(w, "Out", limit));
    PROA_TRY(proa__wire_put_dtype(w, "dtype", (proa_dtype)dtype));
    PROA_TRY(proa_wire_put_ints(w, "shape", PROA_WIRE_LONGS, PROA_SHAPE(1)));
    PROA_TRY(proa_wire_put_float(w, "value", a->max_norm));
    PROA_TRY(proa_wire_put_string(w, "str_value", ""));
    PROA_TRY(proa_wire_put_int(w, "force_cpu", PROA_WIRE_BOOLEAN, 0));
    PROA_TRY(proa_wire_put_int(w, "place_type", PROA_WIRE_INT, -1));
    proa_tensor *larger = arithmetic(w, "elementwise_max", norm, limit, dtype);
    proa_tensor *factor = larger ? arithmetic(w, "elementwise_div", limit, larger, dtype) : NULL;
    if (!factor) return proa_error();
    for (int64_t i = 0; i < a->xs.count; i++) {
        proa_tensor *own = proa__wire_cast(w, factor, (proa_dtype)a->xs.at[i]->dtype);
        if (!own) return proa_error();
        PROA_TRY(proa_wire_op(w, "elementwise_mul"));
        PROA_TRY(proa_wire_put_input(w, "X", a->xs.at[i]));
        PROA_TRY(proa_wire_put_input(w, "Y", own));
        PROA_TRY(proa_wire_put_output(w, "Out", a->xs_out.at[i]));
        PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1));
    }
    return PROA_OK;
}
