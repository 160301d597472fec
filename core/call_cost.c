/* FLOPs and memory traffic of an op call whose outputs have their shapes, and the terms that `flops:` in the
 * op table is made of. May use core. */
#include "core/call_cost.h"

#include "core/args_visit.h"

#include <math.h>

static bool is_there(const proa_tensor *t) { return t && t != proa_none; }

double proa__count_numel(const proa_tensor *t)
{
    if (!is_there(t)) return 0;
    return t->numel < 0 ? (double)NAN : (double)t->numel;
}

double proa__count_size(const proa_tensor *t, int axis)
{
    if (!is_there(t)) return 0;
    if (axis < 0) axis = axis + t->ndim > 0 ? axis + t->ndim : 0;
    if (axis >= t->ndim) return t->ndim ? 0 : 1;
    return t->shape[axis] < 0 ? (double)NAN : (double)t->shape[axis];
}

double proa__count_taps(const proa_tensor *t)
{
    double n = is_there(t);
    for (int d = 1; n != 0 && d < t->ndim; d++) n *= proa__count_size(t, d);
    return n;
}

double proa__count_matrices(proa_tensors list)
{
    double n = 0;
    for (int64_t i = 0; i < list.count; i++)
        if (is_there(list.at[i]) && list.at[i]->ndim == 2) n += proa__count_numel(list.at[i]);
    return n;
}

double proa__count_given(const proa_tensor *t) { return is_there(t); }

bool proa__counts_flops(const proa_op *op) { return op->id < proa_op_count && proa__op_flops[op->id]; }

double proa__call_flops(const proa_op *op, const void *args)
{
    double n = proa__counts_flops(op) ? proa__op_flops[op->id](args) : 0;
    return isnan(n) ? -1 : n;
}

/* Bytes of t; a broadcast tensor counts no more than its storage has. */
static double bytes_of(const proa_tensor *t)
{
    if (!is_there(t) || !t->storage || t->numel <= 0) return 0;
    double shown = (double)t->numel * (double)proa_dtype_size((proa_dtype)t->dtype);
    return shown < (double)t->storage->bytes ? shown : (double)t->storage->bytes;
}

double proa__call_bytes(const proa_op *op, const void *args)
{
    if (op->flags & PROA_OP_VIEW) {
        const proa_tensor *from = *proa_field_tensor(&op->fields[0], args),
                          *to = *proa_field_tensor(&op->fields[op->n_in + op->n_attr], args);
        if (from && to && from->storage == to->storage) return 0;
    }
    double sum = 0;
    for (const proa_field *f = op->fields; f < op->fields + op->n_fields; f++) {
        const proa_tensors all = proa__field_all(f, args);
        for (int64_t i = 0; i < all.count; i++) sum += bytes_of(all.at[i]);
    }
    return sum;
}
