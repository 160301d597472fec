/* Propagation of shapes and constants at plan time: runs, while planning, the ops that depend on these only
 * and feed an attribute. May use core and ops. */
#include "planner.h"

#include "core/copy.h"
#include "core/group.h"
#include "core/run.h"
#include "core/args_visit.h"

typedef proa__planner planner;

/* Largest result of such an op, in bytes. */
enum { KNOWN_BYTES = 1 << 16 };

/* Clears the flag if a tensor that the op reads is not known at plan time. */
static proa_status look_known(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    planner *p = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (!v) return PROA_OK;
    const proa__value *value = proa__plan_value(p, v);
    if (!value->handle && proa_error() != PROA_OK) return proa_error();
    if (!value->known || !value->handle || (!value->handle->data && value->handle->numel)) p->flag = false;
    return PROA_OK;
}

static proa_status guard_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    return v && v->persistable ? proa__plan_guard(context, v->value, true) : PROA_OK;
}

static proa_status look_feeds(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    planner *p = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (v && v->persistable) p->flag = false;
    if (v && p->facts->feeds_attr[v->index]) p->count++;
    return PROA_OK;
}

static proa_status shape_only(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index, (void)context;
    if (proa__slot_empty(*slot)) return PROA_OK;
    proa_meta meta = proa_meta_of(*slot);
    proa_tensor *t = proa__tensor_bare(&meta, 0);
    if (!t) return proa_error();
    proa__slot_set(slot, t);
    return PROA_OK;
}

bool proa__plan_worth_knowing(planner *p)
{
    const proa_op *op = p->instr->op;
    if (op->flags & (PROA_OP_RANDOM | PROA_OP_MUTATES | PROA_OP_DATA_SHAPE)) return false;
    if (proa__op_communicates(op)) return false;
    p->flag = true;
    p->count = 0;
    if (proa__args_visit(op, p->instr->args, PROA_OUT, look_feeds, p) != PROA_OK || !p->count || !p->flag)
        return false;
    if (proa__is_shape_op(op)) return true;
    return proa__args_visit_reads(op, p->instr->args, look_known, p) == PROA_OK && p->flag;
}

static int64_t small_outputs(const proa_op *op, void *metas)
{
    int64_t bytes = 0;
    proa__meta_ref m = proa__meta_first(metas);
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        if (proa__makes_list(&op->fields[i])) return INT64_MAX;
        int64_t n = (int64_t)proa_dtype_size(m.one->dtype);
        for (int d = 0; d < m.one->ndim; d++)
            if (m.one->shape[d] < 0 || __builtin_mul_overflow(n, m.one->shape[d], &n)) return INT64_MAX;
        if (m.one->ndim >= 0 && __builtin_add_overflow(bytes, n, &bytes)) return INT64_MAX;
        m = proa__meta_next(m, &op->fields[i]);
    }
    return bytes;
}

proa_status proa__plan_know(planner *p, void *metas, bool *known)
{
    const proa_op *op = p->instr->op;
    char args[PROA_ARGS_MAX] __attribute__((aligned(16)));
    *known = false;
    if (small_outputs(op, metas) > KNOWN_BYTES) return PROA_OK;
    if (proa__is_shape_op(op)) PROA_TRY(proa__args_visit(op, p->args, PROA_IN, shape_only, p));
    else PROA_TRY(proa__args_visit_reads(op, p->instr->args, guard_read, p));
    memcpy(args, p->args, op->args_size);
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++)
        *proa_field_tensor(&op->fields[i], args) = NULL;
    PROA_TRY(proa_call_from(PROA_DOOR_RUN, op, args));
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_var *v = proa__slot_var(*proa_field_tensor(&op->fields[i], p->instr->args));
        if (!v) continue;
        proa_tensor *t = proa__contiguous(*proa_field_tensor(&op->fields[i], args));
        if (!t) return proa_error();
        PROA_TRY(proa__plan_bind(p, t, &proa__fixed_place, 0));
        p->s->values[v->index] =
            (proa__value){.handle = t, .buffer = &proa__fixed_place, .until = INT32_MAX, .known = true};
    }
    *known = true;
    return PROA_OK;
}
