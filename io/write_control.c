/* Writes branches and loops as conditional_block, select_input and while ops, whose sub-blocks read and write
 * variables of outer blocks by name. May use jit, core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_write.h"

#include "impl/control.h"

bool proa__is_control(const proa_op *op)
{
    return strcmp(op->name, "branch") == 0 || strcmp(op->name, "loop") == 0;
}

/* ---- small ops ------------------------------------------------------------------------- */

static proa_status put_names(proa_wire_writer *w, bool input, const char *slot, const char *a, const char *b)
{
    const char *names[] = {a, b};
    return proa__put_slot(w, input, slot, names, b ? 2 : 1);
}

/* Writes an op `type` with input X = `from` and output Out = `to`. */
static proa_status put_plain(proa_wire_writer *w, const char *type, const char *from, const char *to)
{
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(put_names(w, true, "X", from, NULL));
    return put_names(w, false, "Out", to, NULL);
}

static const char *temporary(proa_wire_writer *w, const proa_meta *meta)
{
    proa_tensor *t = proa_wire_temporary(w, meta);
    return t ? proa__arena_text(w->arena, proa_name_of(t)) : NULL;
}

/* Adds a variable of v's shape and dtype to the block; returns its name. */
static const char *temporary_like(proa_wire_writer *w, const proa_var *v)
{
    proa_meta meta = proa_meta_of(v->handle);
    if (!proa__is_array(w, v)) return temporary(w, &meta);
    char *name = proa__arena_format(w->arena, "wire_array_%u_%d", w->temporaries++, w->block->index);
    return name && proa__put_var(w, name, &meta, PB_LOD_TENSOR_ARRAY, false, 0) == PROA_OK ? name : NULL;
}

static const char *step_scopes(proa_wire_writer *w)
{
    proa_meta none = {0};
    const char *name =
        proa__arena_format(w->arena, "_generated_var_%u_%d", w->temporaries++, w->block->index);
    return name && proa__put_var(w, name, &none, PB_STEP_SCOPES, false, 0) == PROA_OK ? name : NULL;
}

static proa_meta flag_meta(proa_dtype dtype) { return (proa_meta){.dtype = dtype, .ndim = 1, .shape = {1}}; }

/* ---- sub-blocks ------------------------------------------------------------------------ */

/* Variable names of the outer block, one for each input or output of the sub-block. */
typedef struct names {
    const char **at;
    int64_t count;
} names;

static names names_capacity(const proa_wire_writer *w, int64_t n)
{
    return (names){proa__arena_array(w->arena, (size_t)n + 1, sizeof(const char *)), 0};
}

static proa_status tensor_names(const proa_wire_writer *w, const proa_tensors *list, names *to)
{
    *to = names_capacity(w, list->count);
    if (!to->at) return proa_error();
    for (; to->count < list->count; to->count++)
        to->at[to->count] = proa__arena_text(w->arena, proa__wire_name(w, list->at[to->count]));
    return PROA_OK;
}

/* Assigns the block's results to the outer variables as if simultaneously: a result that is another loop
 * variable is first copied to a temporary. */
static proa_status assign_results(proa_wire_writer *w, const proa_block *b, const names *outer)
{
    names from = names_capacity(w, b->n_outputs);
    if (!from.at) return proa_error();
    for (int32_t i = 0; i < b->n_outputs; i++) {
        const proa_var *v = b->outputs[i];
        const char *name = proa__wire_name(w, v->handle);
        from.at[i] = name;
        if (!v->is_input || strcmp(name, outer->at[i]) == 0) continue;
        from.at[i] = temporary_like(w, v);
        if (!from.at[i]) return proa_error();
        PROA_TRY(put_plain(w, "assign", name, from.at[i]));
    }
    for (int32_t i = 0; i < b->n_outputs; i++)
        if (strcmp(from.at[i], outer->at[i]) != 0) PROA_TRY(put_plain(w, "assign", from.at[i], outer->at[i]));
    return PROA_OK;
}

/* Writes b as a block of the file: its inputs are the outer variables `in`, its results go to `out`. */
static proa_status write_sub(proa_wire_writer *w, const proa_block *b, const names *in, const names *out,
                             int32_t *number)
{
    proa__hash_map outer = {0};
    proa_wire_writer sub = {.table = &proa__writer_table,
                            .arena = w->arena,
                            .block = b,
                            .blocks = w->blocks,
                            .parent = w->number,
                            .own_numbers = w->own_numbers,
                            .arrays = w->arrays,
                            .outer_names = &outer,
                            .role = w->role,
                            .device = w->device,
                            .temporaries = w->temporaries};
    pb_block *to = proa__new_block(&sub);
    proa_status status = to ? PROA_OK : proa_error();
    for (int32_t i = 0; i < b->n_inputs && status == PROA_OK; i++)
        status = proa__hash_map_put(&outer, b->inputs[i], (void *)(uintptr_t)in->at[i]);
    if (status == PROA_OK) status = proa__write_block(&sub);
    if (status == PROA_OK) status = assign_results(&sub, b, out);
    if (to) proa__finish_block(&sub, to);
    *number = sub.number;
    w->temporaries = sub.temporaries;
    proa__hash_map_clear(&outer);
    return status;
}

/* ---- branch ---------------------------------------------------------------------------- */

static proa_status write_conditional(proa_wire_writer *w, const proa_block *b, const char *condition,
                                     const names *in, names *out)
{
    int32_t number;
    *out = names_capacity(w, b->n_outputs);
    if (!out->at) return proa_error();
    for (; out->count < b->n_outputs; out->count++)
        if (!(out->at[out->count] = temporary_like(w, b->outputs[out->count]))) return proa_error();
    const char *scopes = step_scopes(w);
    if (!scopes) return proa_error();
    PROA_TRY(write_sub(w, b, in, out, &number));
    PROA_TRY(proa_wire_op(w, "conditional_block"));
    PROA_TRY(put_names(w, true, "Cond", condition, NULL));
    PROA_TRY(proa__put_slot(w, true, "Input", in->at, (size_t)in->count));
    PROA_TRY(proa__put_slot(w, false, "Out", out->at, (size_t)out->count));
    PROA_TRY(put_names(w, false, "Scope", scopes, NULL));
    PROA_TRY(proa_wire_put_int(w, "sub_block", PROA_WIRE_BLOCK, number));
    return proa_wire_put_int(w, "is_scalar_condition", PROA_WIRE_BOOLEAN, 1);
}

static proa_status write_branch(proa_wire_writer *w, const proa_branch_args *a)
{
    names in, yes, no;
    proa_meta flag = flag_meta(PROA_BOOL), index = flag_meta(PROA_I32);
    if (!proa__absent(a->rng))
        return proa_fail(PROA_ERR_UNSUPPORTED, "the backward of a branch has no spelling in Paddle's format");
    PROA_TRY(tensor_names(w, &a->inputs, &in));
    const char *pred = proa__wire_name(w, a->pred), *other = temporary(w, &flag),
               *mask = temporary(w, &index);
    if (!other || !mask) return proa_error();
    PROA_TRY(write_conditional(w, a->then, pred, &in, &yes));
    PROA_TRY(put_plain(w, "logical_not", pred, other));
    PROA_TRY(write_conditional(w, a->otherwise, other, &in, &no));
    PROA_TRY(put_plain(w, "cast", pred, mask));
    PROA_TRY(proa_wire_put_int(w, "in_dtype", PROA_WIRE_INT, proa__dtype_to_wire(PROA_BOOL)));
    PROA_TRY(proa_wire_put_int(w, "out_dtype", PROA_WIRE_INT, proa__dtype_to_wire(PROA_I32)));
    PROA_TRY(proa_wire_put_int(w, "use_mkldnn", PROA_WIRE_BOOLEAN, 0)); /* jit.load of Paddle requires it */
    for (int64_t i = 0; i < a->out.count; i++) {
        if (proa__absent(a->out.at[i])) continue;
        PROA_TRY(proa_wire_op(w, "select_input"));
        PROA_TRY(put_names(w, true, "X", no.at[i], yes.at[i]));
        PROA_TRY(put_names(w, true, "Mask", mask, NULL));
        PROA_TRY(put_names(w, false, "Out", proa__wire_name(w, a->out.at[i]), NULL));
    }
    return PROA_OK;
}

/* ---- loop ------------------------------------------------------------------------------ */

static proa_status write_loop(proa_wire_writer *w, const proa_loop_args *a)
{
    int64_t n = a->vars.count;
    names start, captured, in = names_capacity(w, n + a->inputs.count), out = names_capacity(w, n + 1);
    PROA_TRY(tensor_names(w, &a->vars, &start));
    PROA_TRY(tensor_names(w, &a->inputs, &captured));
    if (!in.at || !out.at) return proa_error();
    proa_meta flag = proa_meta_of(a->condition);
    const char *condition = temporary(w, &flag), *scopes = step_scopes(w);
    if (!condition || !scopes) return proa_error();
    out.at[out.count++] = condition;
    PROA_TRY(put_plain(w, "assign", proa__wire_name(w, a->condition), condition));
    for (int64_t i = 0; i < n; i++) {
        bool unused = proa__absent(a->out.at[i]);
        const char *name = unused ? temporary_like(w, a->body->inputs[i]) : proa__wire_name(w, a->out.at[i]);
        if (!name) return proa_error();
        PROA_TRY(put_plain(w, "assign", start.at[i], name));
        in.at[in.count++] = out.at[out.count++] = name;
    }
    for (int64_t i = 0; i < captured.count; i++) in.at[in.count++] = captured.at[i];
    int32_t number;
    PROA_TRY(write_sub(w, a->body, &in, &out, &number));
    PROA_TRY(proa_wire_op(w, "while"));
    PROA_TRY(proa__put_slot(w, true, "X", in.at, (size_t)in.count));
    PROA_TRY(put_names(w, true, "Condition", condition, NULL));
    PROA_TRY(proa__put_slot(w, false, "Out", out.at, (size_t)out.count));
    PROA_TRY(put_names(w, false, "StepScopes", scopes, NULL));
    PROA_TRY(proa_wire_put_int(w, "sub_block", PROA_WIRE_BLOCK, number));
    return proa_wire_put_int(w, "is_test", PROA_WIRE_BOOLEAN, 1);
}

proa_status proa__write_control(proa_wire_writer *w, const proa_instr *instr)
{
    PROA_TRY(strcmp(instr->op->name, "branch") == 0 ? write_branch(w, instr->args)
                                                    : write_loop(w, instr->args));
    proa__close_op(w);
    return PROA_OK;
}

#else
typedef int proa__no_write_control; /* C wants a declaration in every file */
#endif
