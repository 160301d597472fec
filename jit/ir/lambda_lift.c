/* Lambda lifting: variables of outer blocks that a sub-block reads become inputs of the sub-block. And
 * inlining: a block's ops are called once more at another place. May use core and ops. */
#include "program.h"

#include "core/internal.h"
#include "core/run.h"
#include "core/args_visit.h"

/* ---- lifting --------------------------------------------------------------------------- */

typedef struct lifting {
    proa__lambda_lift *lift;
    const proa_block *block;
    const proa_op *op;
    proa__hash_map inner; /* outer variable → the block's input that replaces it */
} lifting;

proa_status proa__block_reads(proa_block *b, proa_var *v, proa_tensor *t)
{
    proa_tensor *before = proa__hash_map_find(&b->read_as, v);
    if (before && (before->flags & PROA_T_GRAD || !(t->flags & PROA_T_GRAD))) return PROA_OK;
    PROA_TRY(proa__hash_map_put(&b->read_as, v, t));
    proa_retain(t);
    proa_release(before);
    return PROA_OK;
}

void proa__block_forget_reads(proa_block *b)
{
    for (uint32_t i = 0; i < b->read_as.capacity; i++)
        if (b->read_as.entries[i].key) proa_release(b->read_as.entries[i].value);
    proa__hash_map_clear(&b->read_as);
}

static proa_status add_outer(proa__lambda_lift *lift, const proa_block *b, proa_var *v)
{
    proa_tensor *t = proa__hash_map_find(&b->read_as, v);
    if (!t) t = v->handle;
    const proa_var *known = proa__hash_map_find(&lift->known, v);
    for (int32_t i = 0; known && i < lift->n; i++)
        if (lift->outer[i] == v && t->flags & PROA_T_GRAD) lift->tensors[i] = t;
    if (known) return PROA_OK;
    PROA_TRY(proa__reserve(&lift->outer, lift->n, &lift->capacity, sizeof *lift->outer));
    PROA_TRY(proa__reserve(&lift->tensors, lift->n, &lift->tensors_capacity, sizeof *lift->tensors));
    PROA_TRY(proa__hash_map_put(&lift->known, v, v));
    lift->tensors[lift->n] = t;
    lift->outer[lift->n++] = v;
    return PROA_OK;
}

static proa_status note_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const lifting *l = context;
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    return v && v->block != l->block->index ? add_outer(l->lift, l->block, v) : PROA_OK;
}

static proa_status refuse_write(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const lifting *l = context;
    (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (!v || v->block == l->block->index) return PROA_OK;
    return proa__op_fail(
        PROA_ERR_UNSUPPORTED, l->op, f->name,
        "writes %s, which is defined outside this branch or loop body; return the new value instead "
        "(batch norm: use it in evaluation mode there)",
        v->name);
}

proa_status proa__lambda_lift_collect(proa__lambda_lift *lift, proa_block *b, proa_tensors results,
                                      proa_var ***vars)
{
    lifting l = {.lift = lift, .block = b};
    for (int32_t i = 0; i < b->n_ops; i++) {
        l.op = b->ops[i].op;
        PROA_TRY(proa__args_visit_reads(l.op, b->ops[i].args, note_read, &l));
        PROA_TRY(proa__args_visit(l.op, b->ops[i].args, PROA_OUT, refuse_write, &l));
    }
    *vars = proa_scope_alloc(((size_t)results.count + 1) * sizeof **vars);
    if (!*vars) return proa_error();
    for (int64_t i = 0; i < results.count; i++) {
        proa_tensor *t = results.at[i];
        if (proa__slot_empty(t))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "control flow: result %lld of a branch or body is %s",
                             (long long)i, t ? "PROA_NONE" : "NULL");
        proa_var *v = proa__var_of(b, t, proa_find_op("branch"), "result");
        if (!v) return proa_error();
        (*vars)[i] = v;
        if (v->block == b->index) continue;
        PROA_TRY(proa__block_reads(b, v, t));
        PROA_TRY(add_outer(lift, b, v));
    }
    return PROA_OK;
}

static proa_status rewrite(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const lifting *l = context;
    (void)f, (void)index;
    const proa_var *inner = proa__hash_map_find(&l->inner, proa__slot_var(*slot));
    if (inner) proa__slot_set(slot, inner->handle);
    return PROA_OK;
}

static proa_status apply(lifting *l, proa_block *b, proa_var *const *vars, int64_t n)
{
    const proa__lambda_lift *lift = l->lift;
    int32_t before = b->n_inputs, all = before + lift->n;
    proa_var **inputs = proa_scope_alloc(((size_t)all + 1) * sizeof *inputs);
    proa_var **outputs = proa_scope_alloc(((size_t)n + 1) * sizeof *outputs);
    if (!inputs || !outputs) return proa_error();
    for (int32_t i = 0; i < before; i++) inputs[i] = b->inputs[i];
    for (int32_t i = 0; i < lift->n; i++) {
        proa_meta meta = proa_meta_of(lift->outer[i]->handle);
        inputs[before + i] = proa__var_new(b, NULL, &meta);
        if (!inputs[before + i]) return proa_error();
        PROA_TRY(proa__hash_map_put(&l->inner, lift->outer[i], inputs[before + i]));
    }
    for (int32_t i = 0; i < b->n_ops; i++)
        PROA_TRY(proa__args_visit_reads(b->ops[i].op, b->ops[i].args, rewrite, l));
    for (int64_t i = 0; i < n; i++) {
        proa_var *inner = proa__hash_map_find(&l->inner, vars[i]);
        outputs[i] = inner ? inner : vars[i];
    }
    PROA_TRY(proa__block_set_inputs(b, inputs, all));
    return proa__block_set_outputs(b, outputs, (int32_t)n);
}

proa_status proa__lambda_lift_apply(const proa__lambda_lift *lift, proa_block *b, proa_var *const *vars,
                                    int64_t n)
{
    lifting l = {.lift = (proa__lambda_lift *)(uintptr_t)lift, .block = b};
    proa_status status = apply(&l, b, vars, n);
    proa__hash_map_clear(&l.inner);
    return status;
}

/* ---- inlining -------------------------------------------------------------------------- */

typedef struct inlining {
    proa__hash_map values; /* variable of the block → tensor that replaces it */
    const void *args;      /* of the call just made */
    const proa_op *op;
    int64_t at;
} inlining;

static proa_status map_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const inlining *l = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (!v) return PROA_OK;
    proa_tensor *t = proa__hash_map_find(&l->values, v);
    if (!t) return proa_fail(PROA_ERR_INTERNAL, "inline: %s is read before an op makes it", v->name);
    proa__slot_set(slot, t);
    return PROA_OK;
}

static proa_status note_made(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    inlining *l = context;
    (void)f, (void)index;
    proa_tensor **made = proa__out_slot(l->op, l->args, l->at++, NULL);
    const proa_var *v = proa__slot_var(*slot);
    return v && made && !proa__slot_empty(*made) ? proa__hash_map_put(&l->values, v, *made) : PROA_OK;
}

static void clear_outputs(const proa_op *op, void *args)
{
    for (const proa_field *f = &op->fields[op->n_in + op->n_attr]; f < op->fields + op->n_fields; f++)
        proa__output_clear(f, args);
}

static proa_status inline_op(inlining *l, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    char args[PROA_ARGS_MAX] __attribute__((aligned(16)));
    void *owned = proa__args_copy(op, instr->args);
    if (!owned) return proa_error();
    proa_status status = proa__args_visit_reads(op, owned, map_read, l);
    clear_outputs(op, owned);
    memcpy(args, owned, op->args_size);
    if (status == PROA_OK) status = proa_call_op(op, args);
    l->args = args;
    l->op = op;
    l->at = 0;
    if (status == PROA_OK) status = proa__args_visit(op, instr->args, PROA_OUT, note_made, l);
    proa__args_free(op, owned);
    return status;
}

static proa_status inline_ops(inlining *l, const proa_block *b, proa_tensors inputs,
                              const proa__hash_map *instead, proa_tensors *outputs)
{
    for (int32_t i = 0; b->parent < 0 && i < b->n_vars; i++) { /* a whole program inlined into another */
        proa_tensor *value = b->vars[i]->value, *other = instead ? proa__hash_map_find(instead, value) : NULL;
        if (value) PROA_TRY(proa__hash_map_put(&l->values, b->vars[i], other ? other : value));
    }
    for (int32_t i = 0; i < b->n_inputs; i++)
        PROA_TRY(proa__hash_map_put(&l->values, b->inputs[i], inputs.at[i]));
    for (int32_t i = 0; i < b->n_ops; i++) PROA_TRY(inline_op(l, &b->ops[i]));
    *outputs =
        (proa_tensors){b->n_outputs, proa_scope_alloc(((size_t)b->n_outputs + 1) * sizeof(proa_tensor *))};
    if (!outputs->at) return proa_error();
    for (int32_t i = 0; i < b->n_outputs; i++)
        outputs->at[i] = proa__hash_map_find(&l->values, b->outputs[i]);
    return PROA_OK;
}

proa_status proa__block_inline(const proa_block *b, proa_tensors inputs, const proa__hash_map *instead,
                               proa_tensors *outputs)
{
    inlining l = {0};
    if (inputs.count != b->n_inputs)
        return proa_fail(PROA_ERR_INTERNAL, "inline: %lld inputs for %d", (long long)inputs.count,
                         b->n_inputs);
    proa_status status = inline_ops(&l, b, inputs, instead, outputs);
    proa__hash_map_clear(&l.values);
    return status;
}
