/* Optimizer steps on the wire: one op a parameter, states in slots named <Slot> and <Slot>Out; the learning
 * rate is a tensor. A table says what each step has; one reader and one writer walk it. Reading makes a step
 * of one parameter. May use core, proa/wire.h and public ops. */
#include "impl/elementwise.h"
#include "impl/optimizer.h"

#include "core/run.h"
#include "core/tensor.h"

#include <proa/wire.h>

/* What an entry of a step's table is in the args struct, and on the wire. */
typedef enum entry_kind {
    STATE,   /* a list of tensors, and the list that it becomes: slots X and XOut, left out when empty */
    EXTRA,   /* a STATE that may be empty, whose Out slot Paddle asks for even then */
    POWER,   /* the same, but read only; a `scale` op by beta1 beside the step moves it on */
    INPUT,   /* an optional tensor: an input slot */
    NO_SLOT, /* an optional tensor that Paddle's op does not have: absent in files */
    NUMBER,  /* double: FLOAT */
    RESCALE, /* double: FLOAT; written as a `scale` of the gradient: Paddle's kernels for CPUs ignore it */
    SWITCH,  /* bool: BOOLEAN */
    L2,      /* double: FLOAT, which counts only beside the method "l2_decay" */
    ALWAYS,  /* BOOLEAN, always `missing` */
    ALWAYS_L /* LONG, always `missing` */
} entry_kind;

typedef struct entry {
    entry_kind kind;
    const char *name;
    size_t at, out_at; /* offsets in the args struct: the field, and of a state what it becomes */
    double missing;    /* what a file means that leaves it out */
} entry;

typedef struct step {
    const char *type, *op;
    const entry *entries;
    int n_entries;
    size_t grads, learning_rate, masters, beta1; /* offsets; beta1 of steps with a POWER */
} step;

enum { MAX_STATES = 8 };

static proa_tensors *list_at(const void *args, size_t at)
{
    return (proa_tensors *)(void *)((char *)(uintptr_t)args + at);
}

static proa_tensor *tensor_at(const void *args, size_t at)
{
    return *(proa_tensor **)(void *)((char *)(uintptr_t)args + at);
}

static double number_at(const void *args, size_t at)
{
    return *(const double *)(const void *)((const char *)args + at);
}

/* ---- reading --------------------------------------------------------------------------- */

/* The list of one tensor, in `room`; empty where the slot is. A failed input is passed on to the op. */
static proa_tensors one(proa_tensor *t, proa_tensor **room)
{
    *room = t;
    return (proa_tensors){t && proa__absent(t) ? 0 : 1, room};
}

static double decay(proa_wire_reader *r, const entry *e)
{
    const char *method = proa_wire_string(r, "regularization_method", "");
    return method && strcmp(method, "l2_decay") == 0 ? proa_wire_float(r, e->name, e->missing) : 0;
}

static void read_entry(proa_wire_reader *r, const entry *e, char *args, proa_tensor **room)
{
    void *to = args + e->at;
    switch (e->kind) {
    case STATE:
    case EXTRA: *(proa_tensors *)to = one(proa_wire_input(r, e->name), room); break;
    case POWER: /* the program's own `scale` moves it on: ours works on a copy */
        *(proa_tensors *)to = one(proa_assign(proa_wire_input(r, e->name)), room);
        break;
    case INPUT: *(proa_tensor **)to = proa_wire_input(r, e->name); break;
    case NO_SLOT: *(proa_tensor **)to = proa_none; break;
    case NUMBER:
    case RESCALE: *(double *)to = proa_wire_float(r, e->name, e->missing); break;
    case SWITCH: *(bool *)to = proa_wire_int(r, e->name, e->missing != 0) != 0; break;
    case L2: *(double *)to = decay(r, e); break;
    case ALWAYS:
    case ALWAYS_L: break;
    }
}

static proa_status read_step(const step *s, proa_wire_reader *r)
{
    _Alignas(16) char args[PROA_ARGS_MAX] = {0};
    proa_tensor *grad, *states[MAX_STATES], **room = states;
    *list_at(args, s->grads) = one(proa_wire_input(r, "Grad"), &grad);
    *(proa_tensor **)(void *)(args + s->learning_rate) = proa_wire_input(r, "LearningRate");
    for (int i = 0; i < s->n_entries; i++) {
        const entry *e = &s->entries[i];
        read_entry(r, e, args, room);
        if (e->kind == STATE || e->kind == EXTRA || e->kind == POWER) room++;
    }
    PROA_TRY(proa_call_op(proa_find_op(s->op), args));
    for (int i = 0; i < s->n_entries; i++) { /* what was updated is also what the Out slots name */
        const entry *e = &s->entries[i];
        if ((e->kind != STATE && e->kind != EXTRA) || list_at(args, e->at)->count == 0) continue;
        char out[64];
        snprintf(out, sizeof out, "%sOut", e->name);
        PROA_TRY(proa_wire_result(r, out, list_at(args, e->at)->at[0]));
    }
    return PROA_OK;
}

/* ---- writing --------------------------------------------------------------------------- */

static proa_status write_state(proa_wire_writer *w, const entry *e, const void *args, int64_t i)
{
    const proa_tensors *before = list_at(args, e->at), *after = list_at(args, e->out_at);
    char out[64];
    if (before->count == 0) return PROA_OK;
    PROA_TRY(proa_wire_put_input(w, e->name, before->at[i]));
    if (e->kind == POWER) return PROA_OK;
    snprintf(out, sizeof out, "%sOut", e->name);
    return proa_wire_put_output(w, out, after->at[i]);
}

/* The Out slot of a state that is not there. */
static proa_status write_unused(proa_wire_writer *w, const entry *e, const void *args, int64_t i)
{
    proa_meta m = proa_meta_of(list_at(args, 0)->at[i]); /* the parameters come first */
    proa_tensor *t = proa_wire_temporary(w, &m);
    char out[64];
    snprintf(out, sizeof out, "%sOut", e->name);
    return t ? proa_wire_put_output(w, out, t) : proa_error();
}

static proa_status write_entry(proa_wire_writer *w, const entry *e, const void *args, int64_t i)
{
    switch (e->kind) {
    case EXTRA:
        if (list_at(args, e->at)->count == 0) return write_unused(w, e, args, i);
        return write_state(w, e, args, i);
    case STATE:
    case POWER: return write_state(w, e, args, i);
    case INPUT: {
        proa_tensor *t = tensor_at(args, e->at);
        return proa__absent(t) ? PROA_OK : proa_wire_put_input(w, e->name, t);
    }
    case NO_SLOT:
        if (proa__absent(tensor_at(args, e->at))) return PROA_OK;
        return proa_fail(PROA_ERR_UNSUPPORTED, "%s: in Paddle's format this step cannot be skipped", e->name);
    case RESCALE: return proa_wire_put_float(w, e->name, 1);
    case NUMBER: return proa_wire_put_float(w, e->name, number_at(args, e->at));
    case SWITCH: return proa_wire_put_int(w, e->name, PROA_WIRE_BOOLEAN, *((const bool *)args + e->at));
    case L2:
        PROA_TRY(
            proa_wire_put_string(w, "regularization_method", number_at(args, e->at) != 0 ? "l2_decay" : ""));
        return proa_wire_put_float(w, e->name, number_at(args, e->at));
    case ALWAYS: return proa_wire_put_int(w, e->name, PROA_WIRE_BOOLEAN, (int64_t)e->missing);
    case ALWAYS_L: return proa_wire_put_int(w, e->name, PROA_WIRE_LONG, (int64_t)e->missing);
    }
    return PROA_OK;
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

/* The gradient as the step's op shall take it. NULL on error. */
static proa_tensor *rescaled(const step *s, const void *args, proa_tensor *grad, proa_wire_writer *w)
{
    for (int k = 0; k < s->n_entries; k++) {
        const entry *e = &s->entries[k];
        if (e->kind != RESCALE || number_at(args, e->at) == 1) continue;
        proa_meta m = proa_meta_of(grad);
        proa_tensor *t = proa_wire_temporary(w, &m);
        return t && write_scale(w, grad, t, number_at(args, e->at)) == PROA_OK ? t : NULL;
    }
    return grad;
}

static proa_status write_step(const step *s, const void *args, proa_wire_writer *w)
{
    const proa_tensors *grads = list_at(args, s->grads);
    for (int64_t i = 0; i < grads->count; i++) {
        proa_tensor *grad = rescaled(s, args, grads->at[i], w);
        if (!grad) return proa_error();
        PROA_TRY(proa_wire_op(w, s->type));
        PROA_TRY(proa_wire_put_input(w, "Grad", grad));
        PROA_TRY(proa_wire_put_input(w, "LearningRate", tensor_at(args, s->learning_rate)));
        for (int k = 0; k < s->n_entries; k++) PROA_TRY(write_entry(w, &s->entries[k], args, i));
        bool masters = list_at(args, s->masters)->count > 0;
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, masters));
        for (int k = 0; k < s->n_entries; k++)
            if (s->entries[k].kind == POWER) /* the op moves it on */
                PROA_TRY(write_scale(w, list_at(args, s->entries[k].at)->at[i],
                                     list_at(args, s->entries[k].out_at)->at[i], number_at(args, s->beta1)));
    }
    return PROA_OK;
}

/* ---- the steps ------------------------------------------------------------------------- */

#define ARGS(op) proa_##op##_step_args
#define AS_STATE(op, kind, name, field)                                           \
    {                                                                             \
        kind, name, offsetof(ARGS(op), field), offsetof(ARGS(op), field##_out), 0 \
    }
#define AS_VALUE(op, kind, name, field, missing)          \
    {                                                     \
        kind, name, offsetof(ARGS(op), field), 0, missing \
    }
#define AS_CONSTANT(kind, name, value) \
    {                                  \
        kind, name, 0, 0, value        \
    }
#define PARAMS(op) AS_STATE(op, STATE, "Param", params)
#define NEVER_SKIPPED(op) AS_VALUE(op, NO_SLOT, "skip_update", skip_update, 0)
#define MASTERS(op) AS_STATE(op, STATE, "MasterParam", masters)

/* The reader and writer that the table names, over `<name>_entries`; `power` is what a POWER goes by. */
#define STEP_WITH(name, power)                                                                  \
    _Static_assert(sizeof(ARGS(name)) <= PROA_ARGS_MAX, "args of a step");                      \
    static const step name##_step = {.type = #name,                                             \
                                     .op = #name "_step",                                       \
                                     .entries = name##_entries,                                 \
                                     .n_entries = (int)(sizeof name##_entries / sizeof(entry)), \
                                     .grads = offsetof(ARGS(name), grads),                      \
                                     .learning_rate = offsetof(ARGS(name), learning_rate),      \
                                     .masters = offsetof(ARGS(name), masters),                  \
                                     .beta1 = power};                                           \
    proa_status name##_read(proa_wire_reader *r);                                               \
    proa_status name##_write(const void *args, proa_wire_writer *w);                            \
    proa_status name##_read(proa_wire_reader *r) { return read_step(&name##_step, r); }         \
    proa_status name##_write(const void *args, proa_wire_writer *w)                             \
    {                                                                                           \
        return write_step(&name##_step, args, w);                                               \
    }
#define STEP(name) STEP_WITH(name, 0)

static const entry sgd_entries[] = {PARAMS(sgd), MASTERS(sgd), NEVER_SKIPPED(sgd)};
STEP(sgd)

static const entry momentum_entries[] = {
    PARAMS(momentum),
    AS_STATE(momentum, STATE, "Velocity", velocities),
    MASTERS(momentum),
    NEVER_SKIPPED(momentum),
    AS_VALUE(momentum, NUMBER, "mu", mu, 0.9),
    AS_VALUE(momentum, SWITCH, "use_nesterov", use_nesterov, false),
    AS_VALUE(momentum, RESCALE, "rescale_grad", rescale_grad, 1),
    AS_VALUE(momentum, L2, "regularization_coeff", weight_decay, 0),
};
STEP(momentum)

/* What the Adams have in common. */
#define ADAM_STATES(op)                                                                             \
    PARAMS(op), AS_STATE(op, STATE, "Moment1", moments1), AS_STATE(op, STATE, "Moment2", moments2), \
        AS_STATE(op, STATE, "Beta1Pow", beta1_pows), AS_STATE(op, STATE, "Beta2Pow", beta2_pows),   \
        MASTERS(op), AS_VALUE(op, INPUT, "SkipUpdate", skip_update, 0)
#define ADAM_NUMBERS(op, e)                                                                 \
    AS_VALUE(op, NUMBER, "beta1", beta1, 0.9), AS_VALUE(op, NUMBER, "beta2", beta2, 0.999), \
        AS_VALUE(op, NUMBER, "epsilon", epsilon, e)
#define ADAM_CONSTANTS(op)                                              \
    AS_VALUE(op, SWITCH, "lazy_mode", lazy_mode, false),                \
        AS_CONSTANT(ALWAYS_L, "min_row_size_to_use_multithread", 1000), \
        AS_CONSTANT(ALWAYS, "use_global_beta_pow", false)

static const entry adam_entries[] = {ADAM_STATES(adam), ADAM_NUMBERS(adam, 1e-8), ADAM_CONSTANTS(adam)};
STEP(adam)

static const entry adamw_entries[] = {
    ADAM_STATES(adamw),
    ADAM_NUMBERS(adamw, 1e-8),
    AS_VALUE(adamw, NUMBER, "lr_ratio", lr_ratio, 1),
    AS_VALUE(adamw, NUMBER, "coeff", coeff, 0.01),
    AS_VALUE(adamw, SWITCH, "with_decay", with_decay, false),
    ADAM_CONSTANTS(adamw),
};
STEP(adamw)

static const entry adagrad_entries[] = {
    PARAMS(adagrad),        AS_STATE(adagrad, STATE, "Moment", moments),         MASTERS(adagrad),
    NEVER_SKIPPED(adagrad), AS_VALUE(adagrad, NUMBER, "epsilon", epsilon, 1e-6),
};
STEP(adagrad)

static const entry rmsprop_entries[] = {
    PARAMS(rmsprop),
    AS_STATE(rmsprop, STATE, "MeanSquare", mean_squares),
    AS_STATE(rmsprop, EXTRA, "MeanGrad", mean_grads),
    AS_STATE(rmsprop, STATE, "Moment", moments),
    MASTERS(rmsprop),
    NEVER_SKIPPED(rmsprop),
    AS_VALUE(rmsprop, NUMBER, "decay", rho, 0.9),
    AS_VALUE(rmsprop, NUMBER, "epsilon", epsilon, 1e-10),
    AS_VALUE(rmsprop, NUMBER, "momentum", momentum, 0),
    AS_VALUE(rmsprop, SWITCH, "centered", centered, false),
};
STEP(rmsprop)

static const entry adadelta_entries[] = {
    PARAMS(adadelta),
    AS_STATE(adadelta, STATE, "AvgSquaredGrad", avg_squared_grads),
    AS_STATE(adadelta, STATE, "AvgSquaredUpdate", avg_squared_updates),
    MASTERS(adadelta),
    NEVER_SKIPPED(adadelta),
    AS_VALUE(adadelta, NUMBER, "rho", rho, 0.95),
    AS_VALUE(adadelta, NUMBER, "epsilon", epsilon, 1e-6),
};
STEP(adadelta)

static const entry adamax_entries[] = {
    PARAMS(adamax),
    AS_STATE(adamax, STATE, "Moment", moments),
    AS_STATE(adamax, STATE, "InfNorm", inf_norms),
    MASTERS(adamax),
    NEVER_SKIPPED(adamax),
    AS_STATE(adamax, POWER, "Beta1Pow", beta1_pows),
    ADAM_NUMBERS(adamax, 1e-8),
};
STEP_WITH(adamax, offsetof(ARGS(adamax), beta1))

static const entry lamb_entries[] = {
    ADAM_STATES(lamb),
    AS_VALUE(lamb, NUMBER, "weight_decay", weight_decay, 0.01),
    ADAM_NUMBERS(lamb, 1e-6),
    AS_VALUE(lamb, SWITCH, "always_adapt", always_adapt, false),
};
STEP(lamb)
