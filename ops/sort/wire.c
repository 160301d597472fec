/* argsort and topk in Paddle's programs: argsort also gives the values, and topk's k may be a tensor. May use
 * core and ops. */
#include "ops/ints.h"
#include "ops/wire_util.h"
#include "impl/sort.h"

#include <proa/wire.h>

/* The program's argsort always gives the values as well. */
proa_status argsort_write(const void *args, proa_wire_writer *w)
{
    const proa_argsort_args *a = args;
    proa_meta meta = proa_meta_of(a->x);
    proa_tensor *values = proa_wire_temporary(w, &meta);
    if (!values) return proa_error();
    PROA_TRY(proa_wire_op(w, "argsort"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_output(w, "Out", values));
    PROA_TRY(proa_wire_put_output(w, "Indices", a->out));
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, a->axis));
    return proa_wire_put_int(w, "descending", PROA_WIRE_BOOLEAN, a->descending);
}

/* top_k_v2, and top_k, which has only k and X's last axis. */
proa_status topk_read(proa_wire_reader *r)
{
    proa_tensor *given = proa_wire_input(r, "K");
    proa_ints from = {.tensor = given && given != proa_none ? given : NULL};
    int64_t axis = proa_wire_int(r, "axis", -1);
    proa_topk_result top =
        proa_topk(proa_wire_input(r, "X"), proa_wire_int(r, "k", 1), .axis = axis ? axis : PROA_ZERO,
                  .no_largest = !proa_wire_int(r, "largest", 1), .no_sorted = !proa_wire_int(r, "sorted", 1),
                  .k_tensor = from);
    PROA_TRY(proa_wire_result(r, "Out", top.out));
    return proa_wire_result(r, "Indices", top.indices);
}

proa_status topk_write(const void *args, proa_wire_writer *w)
{
    const proa_topk_args *a = args;
    PROA_TRY(proa_wire_op(w, "top_k_v2"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    if (proa__wire_supplier(&a->k_tensor))
        PROA_TRY(proa_wire_put_input(w, "K", proa__wire_supplier(&a->k_tensor)));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa_wire_put_output(w, "Indices", a->indices));
    PROA_TRY(proa_wire_put_int(w, "k", PROA_WIRE_INT, a->k));
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, a->axis));
    PROA_TRY(proa_wire_put_int(w, "largest", PROA_WIRE_BOOLEAN, a->largest));
    return proa_wire_put_int(w, "sorted", PROA_WIRE_BOOLEAN, a->sorted);
}
