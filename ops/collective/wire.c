/* Collectives on the wire: one op name a reduction; an average is a sum and a scale.
 * May use core, proa/wire.h and public ops. */
#include "impl/collective.h"

#include <proa/wire.h>

#include "kernels/rowwise.h"

static proa_status read_reduce(proa_wire_reader *r, proa_reduce_type op)
{
    proa_tensor *x = proa_wire_input(r, "X");
    return x ? proa_wire_result(r, "Out", proa_all_reduce(x, .op = op)) : proa_error();
}

proa_status all_reduce_sum_read(proa_wire_reader *r) { return read_reduce(r, PROA_REDUCE_TYPE_SUM); }
proa_status all_reduce_max_read(proa_wire_reader *r) { return read_reduce(r, PROA_REDUCE_TYPE_MAX); }
proa_status all_reduce_min_read(proa_wire_reader *r) { return read_reduce(r, PROA_REDUCE_TYPE_MIN); }
proa_status all_reduce_prod_read(proa_wire_reader *r) { return read_reduce(r, PROA_REDUCE_TYPE_PROD); }

proa_status all_gather_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    return x ? proa_wire_result(r, "Out", proa_all_gather(x)) : proa_error();
}

proa_status reduce_scatter_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    return x ? proa_wire_result(r, "Out", proa_reduce_scatter(x, .op = PROA_REDUCE_TYPE_SUM)) : proa_error();
}

static proa_status write_one(proa_wire_writer *w, const char *type, proa_tensor *x, proa_tensor *out)
{
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_int(w, "ring_id", PROA_WIRE_INT, 0));
    return proa_wire_put_int(w, "use_calc_stream", PROA_WIRE_BOOLEAN, 1);
}

/* `type`, and for an average the division behind it. */
static proa_status write_reduced(proa_wire_writer *w, const char *type, proa_tensor *x, proa_tensor *out,
                                 bool average)
{
    if (!average) return write_one(w, type, x, out);
    proa_meta meta = proa_meta_of(out);
    proa_tensor *sum = proa_wire_temporary(w, &meta);
    if (!sum) return proa_error();
    PROA_TRY(write_one(w, type, x, sum));
    PROA_TRY(proa_wire_op(w, "scale"));
    PROA_TRY(proa_wire_put_input(w, "X", sum));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_float(w, "scale", 1.0 / proa__default_group()->size));
    PROA_TRY(proa_wire_put_float(w, "bias", 0));
    return proa_wire_put_int(w, "bias_after_scale", PROA_WIRE_BOOLEAN, 1);
}

proa_status all_reduce_write(const void *args, proa_wire_writer *w)
{
    static const char *const types[] = {"c_allreduce_sum", "c_allreduce_max", "c_allreduce_min",
                                        "c_allreduce_prod", "c_allreduce_sum"};
    const proa_all_reduce_args *a = args;
    bool average = a->op == PROA_REDUCE_TYPE_AVG;
    PROA_TRY(write_reduced(w, types[a->op], a->x, a->out, average));
    return average ? PROA_OK : proa_wire_put_int(w, "use_model_parallel", PROA_WIRE_BOOLEAN, 0);
}

proa_status all_gather_write(const void *args, proa_wire_writer *w)
{
    const proa_all_gather_args *a = args;
    PROA_TRY(write_one(w, "c_allgather", a->x, a->out));
    return proa_wire_put_int(w, "nranks", PROA_WIRE_INT, proa__default_group()->size);
}

proa_status reduce_scatter_write(const void *args, proa_wire_writer *w)
{
    const proa_reduce_scatter_args *a = args;
    if (a->op != PROA_REDUCE_TYPE_SUM && a->op != PROA_REDUCE_TYPE_AVG)
        return ROWS_FAIL(reduce_scatter, UNSUPPORTED, "op",
                         "is neither SUM nor AVG: Paddle's format has no such op");
    bool average = a->op == PROA_REDUCE_TYPE_AVG;
    PROA_TRY(write_reduced(w, "c_reducescatter", a->x, a->out, average));
    return average ? PROA_OK : proa_wire_put_int(w, "nranks", PROA_WIRE_INT, proa__default_group()->size);
}
