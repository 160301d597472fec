/* Describes one op of a program as the op or ops that would represent it in Paddle's format, in plain
 * structs, for tools that list programs. May use jit, core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_write.h"
#include "core/args_visit.h"

#include <proa/io.h>

typedef proa_status (*see_fn)(const proa_op_desc *op, void *context);

/* ---- attributes ------------------------------------------------------------------------ */

static proa_status wide_ints(proa__arena *a, const pb_attr *from, proa_op_attr *to)
{
    size_t n = from->n_ints + from->n_bools + from->n_longs + from->n_blocks_idx;
    int64_t *at = proa__arena_array(a, n + 1, sizeof *at);
    if (!at) return proa_error();
    to->ints = at;
    to->count = (int64_t)n;
    for (size_t i = 0; i < from->n_ints; i++) *at++ = from->ints[i];
    for (size_t i = 0; i < from->n_bools; i++) *at++ = from->bools[i];
    for (size_t i = 0; i < from->n_longs; i++) *at++ = from->longs[i];
    for (size_t i = 0; i < from->n_blocks_idx; i++) *at++ = from->blocks_idx[i];
    return PROA_OK;
}

static proa_status wide_floats(proa__arena *a, const pb_attr *from, proa_op_attr *to)
{
    size_t n = from->n_floats + from->n_float64s;
    double *at = proa__arena_array(a, n + 1, sizeof *at);
    if (!at) return proa_error();
    to->floats = at;
    to->count = (int64_t)n;
    for (size_t i = 0; i < from->n_floats; i++) *at++ = (double)from->floats[i];
    for (size_t i = 0; i < from->n_float64s; i++) *at++ = from->float64s[i];
    return PROA_OK;
}

static void of_scalar(const Paddle__Framework__Proto__Scalar *s, proa_op_attr *to)
{
    if (!s) return;
    to->f = s->has_r ? s->r : s->has_i ? (double)s->i : s->b;
    to->i = s->has_i ? s->i : s->has_b ? s->b : (int64_t)s->r;
    to->type = s->has_r ? PROA_WIRE_FLOAT64 : s->has_i ? PROA_WIRE_LONG : PROA_WIRE_BOOLEAN;
}

static proa_status of_attr(proa__arena *a, const pb_attr *from, proa_op_attr *to)
{
    *to = (proa_op_attr){.name = from->name, .type = (int)from->type};
    switch ((proa_wire_type)to->type) {
    case PROA_WIRE_INT: to->i = from->i; return PROA_OK;
    case PROA_WIRE_BOOLEAN: to->i = from->b; return PROA_OK;
    case PROA_WIRE_LONG: to->i = from->l; return PROA_OK;
    case PROA_WIRE_BLOCK: to->i = from->block_idx; return PROA_OK;
    case PROA_WIRE_FLOAT: to->f = (double)from->f; return PROA_OK;
    case PROA_WIRE_FLOAT64: to->f = from->float64; return PROA_OK;
    case PROA_WIRE_STRING: to->s = from->s ? from->s : ""; return PROA_OK;
    case PROA_WIRE_SCALAR: of_scalar(from->scalar, to); return PROA_OK;
    case PROA_WIRE_FLOATS:
    case PROA_WIRE_FLOAT64S: return wide_floats(a, from, to);
    case PROA_WIRE_STRINGS:
        to->strings = (const char *const *)(void *)from->strings;
        to->count = (int64_t)from->n_strings;
        return PROA_OK;
    case PROA_WIRE_INTS:
    case PROA_WIRE_BOOLEANS:
    case PROA_WIRE_LONGS:
    case PROA_WIRE_BLOCKS: return wide_ints(a, from, to);
    case PROA_WIRE_VAR:
        to->count = from->var_name != NULL;
        to->strings = (const char *const *)(const void *)&from->var_name;
        return PROA_OK;
    case PROA_WIRE_VARS:
        to->strings = (const char *const *)(void *)from->vars_name;
        to->count = (int64_t)from->n_vars_name;
        return PROA_OK;
    default: return PROA_OK; /* proa_op_attr has no lists of scalars */
    }
}

/* ---- one wire op ----------------------------------------------------------------------- */

static const proa_op_slot *of_slots(proa__arena *a, pb_slot *const *from, size_t n)
{
    proa_op_slot *to = proa__arena_array(a, n + 1, sizeof *to);
    for (size_t i = 0; to && i < n; i++)
        to[i] = (proa_op_slot){from[i]->parameter, (int64_t)from[i]->n_arguments,
                               (const char *const *)(void *)from[i]->arguments};
    return to;
}

static proa_status show(proa__arena *a, const pb_op *from, int32_t role, see_fn see, void *context)
{
    proa_op_attr *attrs = proa__arena_array(a, from->n_attrs + 1, sizeof *attrs);
    proa_op_desc desc = {.type = from->type,
                         .role = role,
                         .n_inputs = (int64_t)from->n_inputs,
                         .n_outputs = (int64_t)from->n_outputs,
                         .n_attrs = (int64_t)from->n_attrs,
                         .inputs = of_slots(a, from->inputs, from->n_inputs),
                         .outputs = of_slots(a, from->outputs, from->n_outputs),
                         .attrs = attrs};
    if (!attrs || !desc.inputs || !desc.outputs) return proa_error();
    for (size_t i = 0; i < from->n_attrs; i++) PROA_TRY(of_attr(a, from->attrs[i], &attrs[i]));
    return see(&desc, context);
}

/* ---- ops without a form in Paddle's format: the table's name, its fields as slots ---------- */

typedef struct fields {
    proa__arena *arena;
    const proa_field *last;
    proa_op_slot *slots;
    int64_t count;
} fields;

static proa_status note(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    fields *l = context;
    const proa_var *v = proa__slot_var(*slot);
    (void)index;
    if (!v) return PROA_OK;
    if (l->last != f) {
        proa_op_slot *grown = proa__arena_array(l->arena, (size_t)l->count + 1, sizeof *grown);
        if (!grown) return proa_error();
        if (l->count) memcpy(grown, l->slots, (size_t)l->count * sizeof *grown);
        grown[l->count++] = (proa_op_slot){f->name, 0, NULL};
        l->slots = grown;
        l->last = f;
    }
    proa_op_slot *s = &l->slots[l->count - 1];
    const char **names = proa__arena_array(l->arena, (size_t)s->count + 1, sizeof *names);
    if (!names) return proa_error();
    if (s->count) memcpy(names, s->vars, (size_t)s->count * sizeof *names);
    names[s->count++] = v->name;
    s->vars = names;
    return PROA_OK;
}

static proa_status show_fields(proa__arena *a, const proa_instr *instr, see_fn see, void *context)
{
    fields in = {.arena = a}, out = {.arena = a};
    PROA_TRY(proa__args_visit_reads(instr->op, instr->args, note, &in));
    PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, note, &out));
    proa_op_desc desc = {.type = instr->op->name,
                         .role = instr->role,
                         .n_inputs = in.count,
                         .n_outputs = out.count,
                         .inputs = in.slots,
                         .outputs = out.slots};
    return see(&desc, context);
}

/* ---- the call -------------------------------------------------------------------------- */

static proa_status describe(proa__arena *a, const proa_block *b, const proa_instr *instr, see_fn see,
                            void *context)
{
    proa__list blocks = {0};
    proa_wire_writer w = {
        .table = &proa__writer_table, .arena = a, .block = b, .blocks = &blocks, .own_numbers = true};
    proa_status status = proa__write_op(&w, instr);
    if (status == PROA_ERR_UNSUPPORTED) {
        proa_clear_error();
        return show_fields(a, instr, see, context);
    }
    PROA_TRY(status);
    for (size_t i = 0; i < w.ops.count; i++) PROA_TRY(show(a, w.ops.at[i], instr->role, see, context));
    return PROA_OK;
}

proa_status proa_program_describe(const proa_program *p, int64_t block, int64_t i, see_fn see, void *context)
{
    PROA_TRY(proa_error());
    if (!p || !see || block < 0 || block >= p->n_blocks || i < 0 || i >= p->blocks[block]->n_ops)
        return proa_fail(PROA_ERR_OUT_OF_RANGE, "program_describe: there is no op %lld in block %lld",
                         (long long)i, (long long)block);
    proa__arena arena = {NULL};
    proa_status status;
    PROA_SCOPE {
        status = describe(&arena, p->blocks[block], &p->blocks[block]->ops[i], see, context);
    }
    proa__arena_free(&arena);
    return status;
}

#else
typedef int proa__no_describe; /* C wants a declaration in every file */
#endif
