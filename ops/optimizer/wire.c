/* Optimizer steps in Paddle's programs: one op per parameter, states in slots named <Slot> and <Slot>Out, the
 * learning rate as a tensor. Each op read becomes a step of one parameter. May use core,
 * ops/optimizer/kind.h, public ops. */
#include "ops/optimizer/kind.h"

#include "core/run.h"
#include "impl/elementwise.h"

/* A list argument of the step, with its slot in files. */
typedef struct entry {
    const char *wire;
    size_t at, out_at;
    bool always_out; /* Paddle asks for the Out slot even where the list is empty */
    bool by_scale;
} entry;

enum { ENTRIES_MAX = PROA__SLOTS_MAX + 2 };

/* Parameters, slots and masters of a kind; returns how many. */
static int entries_of(const proa__optimizer_kind *kind, entry *to)
{
    int n = 0;
    to[n++] = (entry){"Param", kind->params_at, kind->params_out_at, false, false};
    for (int i = 0; i < kind->n_slots; i++) {
        const proa__optimizer_slot *s = &kind->slots[i];
        to[n++] = (entry){s->wire, s->at, s->out_at, s->when != 0, s->by_scale};
    }
    to[n++] = (entry){"MasterParam", kind->masters_at, kind->masters_out_at, false, false};
    return n;
}

static const char *out_name(const entry *e, char *buffer, size_t size)
{
    snprintf(buffer, size, "%sOut", e->wire);
    return buffer;
}

/* ---- reading --------------------------------------------------------------------------- */

/* Stores t in *buffer as a list of one; empty if t is NULL. A failed input stays in the list, for the op to
 * report. */
static proa_tensors one(proa_tensor *t, proa_tensor **buffer)
{
    *buffer = t;
    return (proa_tensors){t && proa__absent(t) ? 0 : 1, buffer};
}

static double read_number(proa_wire_reader *r, const proa__optimizer_number *n)
{
    if (n->kind == PROA__SWITCH) return (double)proa_wire_int(r, n->wire, n->missing != 0);
    const char *method = n->kind == PROA__L2 ? proa_wire_string(r, "regularization_method", "") : "l2_decay";
    return method && strcmp(method, "l2_decay") == 0 ? proa_wire_float(r, n->wire, n->missing) : 0;
}

proa_status proa__optimizer_read(const proa__optimizer_kind *kind, proa_wire_reader *r)
{
    _Alignas(16) char args[PROA__STEP_ARGS_MAX] = {0};
    entry entries[ENTRIES_MAX];
    proa_tensor *grad, *states[ENTRIES_MAX];
    int n = entries_of(kind, entries);
    *proa__list_at(args, kind->grads_at) = one(proa_wire_input(r, "Grad"), &grad);
    *proa__tensor_at(args, kind->learning_rate_at) = proa_wire_input(r, "LearningRate");
    *proa__tensor_at(args, kind->skip_update_at) = kind->skip ? proa_wire_input(r, kind->skip) : proa_none;
    for (int i = 0; i < n; i++) {
        proa_tensor *t = proa_wire_input(r, entries[i].wire);
        /* what the program's own `scale` moves on, the step moves on in a copy */
        *proa__list_at(args, entries[i].at) = one(entries[i].by_scale ? proa_assign(t) : t, &states[i]);
    }
    for (int i = 0; i < kind->n_numbers; i++)
        proa__set_number(args, &kind->numbers[i], read_number(r, &kind->numbers[i]));
    PROA_TRY(proa_call_op(kind->op, args));
    for (int i = 0; i < n; i++) { /* what was updated is also what the Out slots name */
        char buffer[64];
        const proa_tensors *list = proa__list_at(args, entries[i].at);
        if (entries[i].by_scale || list->count == 0) continue;
        PROA_TRY(proa_wire_result(r, out_name(&entries[i], buffer, sizeof buffer), list->at[0]));
    }
    return PROA_OK;
}

/* ---- writing --------------------------------------------------------------------------- */

/* Writes a temporary in the Out slot of a state that the step lacks, because Paddle requires the slot. */
static proa_status write_unused(proa_wire_writer *w, const char *slot, proa_tensor *param)
{
    proa_meta m = proa_meta_of(param);
    proa_tensor *t = proa_wire_temporary(w, &m);
    return t ? proa_wire_put_output(w, slot, t) : proa_error();
}

static proa_status write_entry(proa_wire_writer *w, const entry *e, const void *args, int64_t i,
                               proa_tensor *param)
{
    char buffer[64];
    const proa_tensors *before = proa__list_at(args, e->at), *after = proa__list_at(args, e->out_at);
    const char *out = out_name(e, buffer, sizeof buffer);
    if (before->count == 0) return e->always_out ? write_unused(w, out, param) : PROA_OK;
    PROA_TRY(proa_wire_put_input(w, e->wire, before->at[i]));
    return e->by_scale ? PROA_OK : proa_wire_put_output(w, out, after->at[i]);
}

static proa_status write_skip(proa_wire_writer *w, const proa__optimizer_kind *kind, const void *args)
{
    proa_tensor *skip = *proa__tensor_at(args, kind->skip_update_at);
    if (proa__absent(skip)) return PROA_OK;
    if (kind->skip) return proa_wire_put_input(w, kind->skip, skip);
    return proa_fail(PROA_ERR_UNSUPPORTED, "%s: skip_update: in Paddle's format this step cannot be skipped",
                     kind->op->name);
}

static proa_status write_number(proa_wire_writer *w, const proa__optimizer_number *n, double value)
{
    switch (n->kind) {
    case PROA__SWITCH: return proa_wire_put_int(w, n->wire, PROA_WIRE_BOOLEAN, value != 0);
    case PROA__RESCALE: return proa_wire_put_float(w, n->wire, 1);
    case PROA__L2:
        PROA_TRY(proa_wire_put_string(w, "regularization_method", value != 0 ? "l2_decay" : ""));
        return proa_wire_put_float(w, n->wire, value);
    case PROA__NUMBER: break;
    }
    return proa_wire_put_float(w, n->wire, value);
}

static proa_status write_scale(proa_wire_writer *w, proa_tensor *x, proa_tensor *out, double by)
{
    PROA_TRY(proa_wire_op(w, "scale"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_float(w, "scale", by));
    PROA_TRY(proa_wire_put_float(w, "bias", 0));
    return proa_wire_put_int(w, "bias_after_scale", PROA_WIRE_BOOLEAN, 1);
}

/* The gradient that the written op takes (scaled by an op before it if necessary). NULL on error. */
static proa_tensor *rescaled(const proa__optimizer_kind *kind, const void *args, proa_tensor *grad,
                             proa_wire_writer *w)
{
    for (int k = 0; k < kind->n_numbers; k++) {
        double by = proa__number_at(args, &kind->numbers[k]);
        if (kind->numbers[k].kind != PROA__RESCALE || by == 1) continue;
        proa_meta m = proa_meta_of(grad);
        proa_tensor *t = proa_wire_temporary(w, &m);
        return t && write_scale(w, grad, t, by) == PROA_OK ? t : NULL;
    }
    return grad;
}

/* The powers of β that the step's op leaves alone. */
static proa_status write_powers(proa_wire_writer *w, const proa__optimizer_kind *kind, const void *args,
                                int64_t i)
{
    for (int k = 0; k < kind->n_slots; k++) {
        const proa__optimizer_slot *s = &kind->slots[k];
        const char *beta = s->start == PROA__START_BETA1 ? "beta1" : "beta2";
        for (int j = 0; s->by_scale && j < kind->n_numbers; j++)
            if (strcmp(kind->numbers[j].wire, beta) == 0)
                PROA_TRY(write_scale(w, proa__list_at(args, s->at)->at[i],
                                     proa__list_at(args, s->out_at)->at[i],
                                     proa__number_at(args, &kind->numbers[j])));
    }
    return PROA_OK;
}

static proa_status write_one(const proa__optimizer_kind *kind, const void *args, proa_wire_writer *w,
                             int64_t i)
{
    entry entries[ENTRIES_MAX];
    int n = entries_of(kind, entries);
    proa_tensor *grad = rescaled(kind, args, proa__list_at(args, kind->grads_at)->at[i], w);
    proa_tensor *param = proa__list_at(args, kind->params_at)->at[i];
    if (!grad) return proa_error();
    PROA_TRY(proa_wire_op(w, kind->name));
    PROA_TRY(proa_wire_put_input(w, "Grad", grad));
    PROA_TRY(proa_wire_put_input(w, "LearningRate", *proa__tensor_at(args, kind->learning_rate_at)));
    for (int k = 0; k < n; k++) PROA_TRY(write_entry(w, &entries[k], args, i, param));
    PROA_TRY(write_skip(w, kind, args));
    for (int k = 0; k < kind->n_numbers; k++)
        PROA_TRY(write_number(w, &kind->numbers[k], proa__number_at(args, &kind->numbers[k])));
    for (int k = 0; k < kind->n_constants; k++)
        PROA_TRY(
            proa_wire_put_int(w, kind->constants[k].wire, kind->constants[k].type, kind->constants[k].value));
    bool masters = proa__list_at(args, kind->masters_at)->count > 0;
    PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, masters));
    return write_powers(w, kind, args, i);
}

proa_status proa__optimizer_write(const proa__optimizer_kind *kind, const void *args, proa_wire_writer *w)
{
    const proa_ints *groups = (const void *)((const char *)args + kind->groups_at);
    if (kind->groups_at && groups->count)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "%s: groups: in Paddle's format a step does not know of divided parameters",
                         kind->op->name);
    for (int64_t i = 0; i < proa__list_at(args, kind->params_at)->count; i++)
        PROA_TRY(write_one(kind, args, w, i));
    return PROA_OK;
}
