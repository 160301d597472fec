/* Writes the ops that broadcast an operand in Paddle's programs, for kernels of Paddle that do not broadcast
 * it themselves. May use core and proa/wire.h. */
#include "ops/wire_util.h"

proa_status proa__wire_put_expanded(proa_wire_writer *w, proa_tensor *t, const proa_meta *to,
                                    proa_tensor **out)
{
    proa_meta meta = *to;
    meta.dtype = (proa_dtype)t->dtype;
    *out = t;
    bool same = t->ndim == to->ndim;
    for (int i = 0; same && i < t->ndim; i++) same = t->shape[i] == to->shape[i];
    if (same) return PROA_OK;
    *out = proa_wire_temporary(w, &meta);
    if (!*out) return proa_error();
    PROA_TRY(proa_wire_op(w, "expand_v2"));
    PROA_TRY(proa_wire_put_input(w, "X", t));
    PROA_TRY(proa_wire_put_output(w, "Out", *out));
    return proa_wire_put_ints(w, "shape", PROA_WIRE_INTS, (proa_ints){meta.ndim, meta.shape, NULL, NULL});
}

proa_status proa__wire_put_grown(proa_wire_writer *w, proa_tensor *t, proa_tensor *like, const proa_meta *to,
                                 proa_tensor **out)
{
    proa_meta zeros = proa_meta_of(like), grown = *to;
    zeros.dtype = grown.dtype = (proa_dtype)t->dtype;
    proa_tensor *zero = proa_wire_temporary(w, &zeros);
    *out = proa_wire_temporary(w, &grown);
    if (!zero || !*out) return proa_error();
    PROA_TRY(proa_wire_op(w, "fill_any_like"));
    PROA_TRY(proa_wire_put_input(w, "X", like));
    PROA_TRY(proa_wire_put_output(w, "Out", zero));
    PROA_TRY(proa_wire_put_float(w, "value", 0));
    PROA_TRY(proa__wire_put_dtype(w, "dtype", zeros.dtype));
    PROA_TRY(proa_wire_op(w, "elementwise_add"));
    PROA_TRY(proa_wire_put_input(w, "X", t));
    PROA_TRY(proa_wire_put_input(w, "Y", zero));
    PROA_TRY(proa_wire_put_output(w, "Out", *out));
    return proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1);
}

static bool has_unknown(const proa_tensor *t)
{
    for (int i = 0; i < t->ndim; i++)
        if (t->shape[i] < 0) return true;
    return false;
}

proa_status proa__wire_put_broadcast(proa_wire_writer *w, proa_tensor *t, proa_tensor *to, proa_tensor **out)
{
    proa_meta m = proa_meta_of(to);
    return has_unknown(t) || has_unknown(to) ? proa__wire_put_grown(w, t, to, &m, out)
                                             : proa__wire_put_expanded(w, t, &m, out);
}
