/* Appends one op in Paddle's format (type, slots, attributes) to a program under construction, through the
 * reader of program files; describe.c does the reverse. May use jit, core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"
#include "core/args_visit.h"

#include <proa/io.h>
#include <proa/ops.h>

typedef struct appending {
    proa__load load;
    pb_program pb;
    pb_block empty;
    pb_block *blocks[1];
    proa__level level;
    pb_op op;
    proa_block *block;
    int32_t first_op;
    uint64_t last_serial; /* the newest variable that existed before the append */
} appending;

/* ---- the op as the reader wants it ------------------------------------------------------- */

static char *words(void) { return (char *)(uintptr_t) ""; }

static proa_status put_slots(proa__arena *a, const proa_op_slot *from, int64_t n, pb_slot ***to)
{
    pb_slot *slots = proa__arena_array(a, (size_t)n + 1, sizeof *slots);
    *to = proa__arena_array(a, (size_t)n + 1, sizeof **to);
    if (!slots || !*to) return proa_error();
    for (int64_t i = 0; i < n; i++) {
        paddle__framework__proto__op_desc__var__init(&slots[i]);
        slots[i].parameter = (char *)(uintptr_t)from[i].name;
        slots[i].n_arguments = (size_t)from[i].count;
        slots[i].arguments = (char **)(uintptr_t)from[i].vars;
        (*to)[i] = &slots[i];
    }
    return PROA_OK;
}

/* Copies an attribute's integer list as 64-bit integers and, for BOOLEANS, as booleans. */
static proa_status put_ints(proa__arena *a, const proa_op_attr *from, pb_attr *to)
{
    size_t n = (size_t)from->count;
    to->n_longs = n;
    to->longs = proa__arena_array(a, n + 1, sizeof *to->longs);
    to->n_bools = from->type == PROA_WIRE_BOOLEANS ? n : 0;
    to->bools = proa__arena_array(a, n + 1, sizeof *to->bools);
    if (!to->longs || !to->bools) return proa_error();
    if (from->type == PROA_WIRE_INTS) to->type = (Paddle__Framework__Proto__AttrType)PROA_WIRE_LONGS;
    for (size_t i = 0; i < n; i++) to->longs[i] = from->ints[i], to->bools[i] = from->ints[i] != 0;
    return PROA_OK;
}

static proa_status put_floats(proa__arena *a, const proa_op_attr *from, pb_attr *to)
{
    to->n_floats = to->n_float64s = (size_t)from->count;
    to->floats = proa__arena_array(a, to->n_floats + 1, sizeof *to->floats);
    to->float64s = proa__arena_array(a, to->n_floats + 1, sizeof *to->float64s);
    if (!to->floats || !to->float64s) return proa_error();
    for (size_t i = 0; i < to->n_floats; i++)
        to->float64s[i] = from->floats[i], to->floats[i] = (float)from->floats[i];
    return PROA_OK;
}

static proa_status put_attr(proa__arena *a, const proa_op_attr *from, pb_attr *to)
{
    paddle__framework__proto__op_desc__attr__init(to);
    to->name = (char *)(uintptr_t)from->name;
    to->type = (Paddle__Framework__Proto__AttrType)from->type;
    switch ((proa_wire_type)from->type) {
    case PROA_WIRE_INT: /* both widths are stored as 64 bits */
    case PROA_WIRE_LONG:
        to->type = (Paddle__Framework__Proto__AttrType)PROA_WIRE_LONG;
        to->l = from->i;
        return PROA_OK;
    case PROA_WIRE_BOOLEAN: to->b = from->i != 0; return PROA_OK;
    case PROA_WIRE_FLOAT: to->f = (float)from->f; return PROA_OK;
    case PROA_WIRE_FLOAT64: to->float64 = from->f; return PROA_OK;
    case PROA_WIRE_STRING: to->s = (char *)(uintptr_t)(from->s ? from->s : words()); return PROA_OK;
    case PROA_WIRE_STRINGS:
        to->n_strings = (size_t)from->count;
        to->strings = (char **)(uintptr_t)from->strings;
        return PROA_OK;
    case PROA_WIRE_VAR:
        to->var_name = (char *)(uintptr_t)(from->count ? from->strings[0] : NULL);
        return PROA_OK;
    case PROA_WIRE_VARS:
        to->n_vars_name = (size_t)from->count;
        to->vars_name = (char **)(uintptr_t)from->strings;
        return PROA_OK;
    case PROA_WIRE_INTS:
    case PROA_WIRE_LONGS:
    case PROA_WIRE_BOOLEANS: return put_ints(a, from, to);
    case PROA_WIRE_FLOATS:
    case PROA_WIRE_FLOAT64S: return put_floats(a, from, to);
    default:
        return proa_fail(PROA_ERR_UNSUPPORTED, "attribute %s of type number %d cannot be given", from->name,
                         from->type);
    }
}

proa_status proa__op_from_desc(proa__arena *a, const proa_op_desc *desc, pb_op *op)
{
    pb_attr *attrs = proa__arena_array(a, (size_t)desc->n_attrs + 1, sizeof *attrs);
    paddle__framework__proto__op_desc__init(op);
    op->type = (char *)(uintptr_t)desc->type;
    op->n_inputs = (size_t)desc->n_inputs;
    op->n_outputs = (size_t)desc->n_outputs;
    op->attrs = proa__arena_array(a, (size_t)desc->n_attrs + 1, sizeof *op->attrs);
    if (!attrs || !op->attrs) return proa_error();
    for (int64_t i = 0; i < desc->n_attrs; i++) {
        PROA_TRY(put_attr(a, &desc->attrs[i], &attrs[i]));
        op->attrs[op->n_attrs++] = &attrs[i];
    }
    PROA_TRY(put_slots(a, desc->inputs, desc->n_inputs, &op->inputs));
    return put_slots(a, desc->outputs, desc->n_outputs, &op->outputs);
}

/* ---- names ------------------------------------------------------------------------------- */

/* Enters variables of a slot or attribute into the level's table of names, outputs too, as reader functions
 * of irregular forms may look up either. */
static proa_status know(appending *at, const char *where, char *const *names, size_t n, bool input)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = names[i];
        const proa_var *v = proa__var_find(at->block, name);
        if (v && v->unmade && input)
            return proa_fail(PROA_ERR_BAD_STATE, "input %s names '%s', which no op makes yet", where, name);
        if (!v || v->unmade || v->stale || proa__hash_map_find(&at->level.names, name)) continue;
        proa_tensor *t = proa__var_tensor(v);
        if (!t) return proa_error();
        PROA_TRY(proa__hash_map_put(&at->level.names, name, t));
    }
    return PROA_OK;
}

static proa_status know_all(appending *at)
{
    const pb_op *op = &at->op;
    for (size_t i = 0; i < op->n_inputs; i++)
        PROA_TRY(
            know(at, op->inputs[i]->parameter, op->inputs[i]->arguments, op->inputs[i]->n_arguments, true));
    for (size_t i = 0; i < op->n_attrs; i++) {
        const pb_attr *a = op->attrs[i];
        if (a->var_name) PROA_TRY(know(at, a->name, &a->var_name, 1, true));
        PROA_TRY(know(at, a->name, a->vars_name, a->n_vars_name, true));
    }
    for (size_t i = 0; i < op->n_outputs; i++)
        PROA_TRY(know(at, op->outputs[i]->parameter, op->outputs[i]->arguments, op->outputs[i]->n_arguments,
                      false));
    return PROA_OK;
}

/* Frees the name of a variable that the op overwrites: the old variable is renamed and becomes stale, so that
 * reading it through an earlier handle is an error. */
static proa_status step_aside(appending *at, proa_var *old)
{
    char *free_name = NULL;
    for (int n = 0; !free_name || proa__var_find(at->block, free_name); n++) {
        free_name = proa__arena_format(&at->load.arena, "%s_%d", old->name, n);
        if (!free_name) return proa_error();
    }
    PROA_TRY(proa__var_rename(at->block, old, free_name));
    old->stale = true;
    return PROA_OK;
}

/* Gives the variable that the op made for an output the output's name, in place of an earlier variable;
 * copies the result first if it is an input of the op. */
static proa_status resolve(appending *at, const char *slot, const char *name)
{
    proa_tensor *t = proa__no_name(name) ? NULL : proa__hash_map_find(&at->level.names, name);
    if (!t) return PROA_OK;
    proa_var *made = proa__var_of(at->block, t, NULL, slot), *old = proa__var_find(at->block, name);
    if (!made) return proa_error();
    if (made == old) return PROA_OK;
    if (old && old->is_input)
        return proa_fail(PROA_ERR_UNSUPPORTED, "output %s names '%s', which is fed", slot, name);
    if (made->serial <= at->last_serial || made->persistable) { /* the op returned a variable that existed */
        t = proa_assign(t);
        made = t ? proa__var_of(at->block, t, NULL, slot) : NULL;
        if (!made) return proa_error();
    }
    if (old && old->unmade && old->block == made->block) {
        proa__var_define(at->block, old, made);
        return PROA_OK;
    }
    if (old && old->block == made->block) PROA_TRY(step_aside(at, old));
    return proa__var_rename(at->block, made, name);
}

/* ---- position --------------------------------------------------------------------------- */

typedef struct moving {
    const appending *at;
    int32_t before;
} moving;

static proa_status is_made_later(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const moving *m = context;
    const proa_var *v = proa__slot_var(*slot);
    (void)f, (void)index;
    if (!v || v->persistable || v->serial > m->at->last_serial) return PROA_OK;
    for (int32_t i = m->before; i < m->at->first_op; i++) {
        const proa_instr *op = &m->at->block->ops[i];
        proa_tensor **out;
        for (int64_t k = 0; (out = proa__out_slot(op->op, op->args, k, NULL)) != NULL; k++)
            if (proa__slot_var(*out) == v)
                return proa_fail(PROA_ERR_BAD_STATE, "it reads '%s', which an op behind that place makes",
                                 v->name);
    }
    return PROA_OK;
}

static void reverse(proa_instr *ops, int32_t n)
{
    for (int32_t i = 0; i < n / 2; i++) {
        proa_instr other = ops[i];
        ops[i] = ops[n - 1 - i];
        ops[n - 1 - i] = other;
    }
}

/* Moves the appended ops in front of op `before` of the block; BAD_STATE if one of them reads a result of the
 * ops that are now behind them. */
static proa_status move(appending *at, int32_t before)
{
    proa_block *b = at->block;
    moving m = {at, before};
    for (int32_t i = at->first_op; i < b->n_ops; i++)
        PROA_TRY(proa__args_visit_reads(b->ops[i].op, b->ops[i].args, is_made_later, &m));
    reverse(b->ops + before, at->first_op - before);
    reverse(b->ops + at->first_op, b->n_ops - at->first_op);
    reverse(b->ops + before, b->n_ops - before);
    return PROA_OK;
}

/* UNSUPPORTED if an op that is inserted in front of others would overwrite a variable that exists already,
 * since the ops behind might read it. */
static proa_status check_outputs(const appending *at)
{
    for (size_t i = 0; i < at->op.n_outputs; i++)
        for (size_t k = 0; k < at->op.outputs[i]->n_arguments; k++) {
            const char *name = at->op.outputs[i]->arguments[k];
            const proa_var *v = proa__var_find(at->block, name);
            if (v && !v->unmade && !v->persistable)
                return proa_fail(PROA_ERR_UNSUPPORTED,
                                 "output %s names '%s', which is there already: only an op at the end can "
                                 "make it anew",
                                 at->op.outputs[i]->parameter, name);
        }
    return PROA_OK;
}

/* ---- the call ---------------------------------------------------------------------------- */

static proa_status known_type(const appending *at, const char *type)
{
    if (proa__reads_control(type))
        return proa_fail(PROA_ERR_UNSUPPORTED, "ops with blocks are made by proa_cond and proa_while_loop");
    if (proa__forms_next(&at->load.forms, NULL, type)) return PROA_OK;
    return proa_fail(PROA_ERR_UNSUPPORTED, "no op of this type is known");
}

static proa_status read(appending *at, const proa_op_desc *desc, int64_t before)
{
    PROA_TRY(proa__forms_shared(&at->load.forms));
    PROA_TRY(known_type(at, desc->type));
    PROA_TRY(proa__op_from_desc(&at->load.arena, desc, &at->op));
    PROA_TRY(know_all(at));
    if (before >= 0) PROA_TRY(check_outputs(at));
    at->level.forwards.arena = &at->load.arena;
    proa_wire_reader r = {&proa__reader_table, &at->load, &at->level, &at->op, at->block->n_vars, 0};
    PROA_TRY(proa__read_op(&r));
    for (size_t i = 0; i < at->op.n_outputs; i++)
        for (size_t k = 0; k < at->op.outputs[i]->n_arguments; k++)
            PROA_TRY(resolve(at, at->op.outputs[i]->parameter, at->op.outputs[i]->arguments[k]));
    return before < 0 ? PROA_OK : move(at, (int32_t)before);
}

/* Removes the ops of a failed append. Their variables stay until the next pruning of the program. */
static proa_status undo(const appending *at, const char *type)
{
    char text[1500];
    proa_status code = proa_error();
    snprintf(text, sizeof text, "%s", proa_error_message());
    proa_clear_error();
    while (at->block->n_ops > at->first_op) proa__instr_clear(&at->block->ops[--at->block->n_ops]);
    return proa_fail(code, "append_op: %s: %s", type, text);
}

proa_status proa_program_append(proa_program *p, const proa_op_desc *op, int64_t before)
{
    PROA_TRY(proa_error());
    if (!p || !op || !op->type)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_append: needs a program and an op");
    proa_block *open = proa__capture_block();
    proa_block *b = open && open->program == p && before < 0 ? open : proa__root(p);
    if (before > b->n_ops)
        return proa_fail(PROA_ERR_OUT_OF_RANGE, "program_append: there is no op %lld", (long long)before);
    appending at = {.block = b, .first_op = b->n_ops, .last_serial = proa__last_serial()};
    paddle__framework__proto__program_desc__init(&at.pb);
    paddle__framework__proto__block_desc__init(&at.empty);
    at.empty.parent_idx = -1;
    at.blocks[0] = &at.empty;
    at.pb.n_blocks = 1;
    at.pb.blocks = at.blocks;
    at.level = (proa__level){.pb = &at.empty, .block = b, .names = {.by_text = true}};
    at.load.pb = &at.pb;
    at.load.program = p;
    at.load.levels = &at.level;
    at.load.door = PROA_DOOR_CAPTURE;
    PROA_SCOPED;
    proa_block *was = proa__capture_into(b);
    bool record = proa_door_set(PROA_DOOR_RECORD, false), convert = proa_door_set(PROA_DOOR_CONVERT, false);
    proa_status status = read(&at, op, before);
    proa_door_set(PROA_DOOR_CONVERT, convert);
    proa_door_set(PROA_DOOR_RECORD, record);
    proa__capture_into(was);
    if (status != PROA_OK) status = undo(&at, op->type);
    proa__hash_map_clear(&at.level.names);
    proa__hash_map_clear(&at.level.forwards.map);
    proa__arena_free(&at.load.arena);
    return status;
}

#else
typedef int proa__no_append; /* C wants a declaration in every file */
#endif
