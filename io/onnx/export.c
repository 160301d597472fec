/* proa_onnx_export: lowers a program for inference to a graph of ONNX ops and writes it as a model. May
 * use core, jit's programs and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/graph.h"
#include "io/onnx/model.h"

#include <proa/io.h>

enum { MESSAGE_BYTES = 1500 };

/* ---- rules ------------------------------------------------------------------------------ */

static const onnx_rule *const families[] = {
    onnx_rules_unary,   onnx_rules_activation, onnx_rules_elementwise, onnx_rules_matrix,
    onnx_rules_conv,    onnx_rules_pool,       onnx_rules_norm,        onnx_rules_shape,
    onnx_rules_slice,   onnx_rules_index,      onnx_rules_reduce,      onnx_rules_sort,
    onnx_rules_vision,  onnx_rules_recurrent,  onnx_rules_create,      onnx_rules_detection,
    onnx_rules_control, onnx_rules_quantize,
};

const onnx_rule *onnx_rule_of(const char *op)
{
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
        for (const onnx_rule *r = families[k]; r->op; r++)
            if (strcmp(r->op, op) == 0) return r;
    return NULL;
}

/* A list of op names in a message, each once; "…" where no more fit. */
typedef struct op_names {
    char text[MESSAGE_BYTES];
    size_t used;
} op_names;

static void add_name(op_names *to, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = to->text; (at = strstr(at, name)); at += n)
        if ((at == to->text || at[-1] == ' ') && (!at[n] || at[n] == ',')) return;
    if (to->used + n + 8 > sizeof to->text) return;
    to->used +=
        (size_t)snprintf(to->text + to->used, sizeof to->text - to->used, "%s%s", to->used ? ", " : "", name);
}

/* UNSUPPORTED, with the names of all ops that have no rule, or else none in this opset. */
static proa_status check_ops(const proa_program *p, int64_t opset)
{
    op_names unknown = {.used = 0}, later = {.used = 0};
    int least = 0;
    for (int32_t k = 0; k < p->n_blocks; k++)
        for (int32_t i = 0; i < p->blocks[k]->n_ops; i++) {
            const char *name = p->blocks[k]->ops[i].op->name;
            const onnx_rule *rule = onnx_rule_of(name);
            if (!rule) add_name(&unknown, name);
            if (!rule || rule->since <= opset) continue;
            char with[96];
            snprintf(with, sizeof with, "%s (opset %d)", name, rule->since);
            add_name(&later, with);
            if (rule->since > least) least = rule->since;
        }
    if (unknown.used)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "onnx.export: these ops have no mapping to ONNX: %s; express them by "
                         "others, or keep them out of the exported layer",
                         unknown.text);
    if (later.used)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "onnx.export: these ops need a later opset than opset_version=%lld: %s; "
                         "export with opset_version=%d",
                         (long long)opset, later.text, least);
    return PROA_OK;
}

/* ---- lowering --------------------------------------------------------------------------- */

static proa_status note_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    return v ? proa__hash_map_put(context, v, v) : PROA_OK;
}

static proa_status note_reads(const proa_program *p, proa__hash_map *read)
{
    for (int32_t k = 0; k < p->n_blocks; k++) {
        const proa_block *b = p->blocks[k];
        for (int32_t i = 0; i < b->n_ops; i++)
            PROA_TRY(proa__args_visit_reads(b->ops[i].op, b->ops[i].args, note_read, read));
        for (int32_t i = 0; i < b->n_outputs; i++)
            PROA_TRY(proa__hash_map_put(read, b->outputs[i], b->outputs[i]));
    }
    return PROA_OK;
}

proa_status onnx_lower_block(onnx_graph *g)
{
    for (int32_t i = 0; i < g->block->n_ops; i++) {
        const proa_instr *instr = &g->block->ops[i];
        onnx_call call = {instr->op, instr->args, onnx_rule_of(instr->op->name)};
        g->all->op = instr->op->name;
        if (!call.rule)
            return proa_fail(PROA_ERR_INTERNAL, "onnx.export: op '%s' was not checked", instr->op->name);
        call.rule->lower(g, &call);
        PROA_TRY(proa_error());
    }
    return PROA_OK;
}

static proa_status add_inputs(onnx_graph *g)
{
    for (int32_t i = 0; i < g->block->n_inputs; i++) {
        const proa_var *var = g->block->inputs[i];
        if (var->is_lod)
            return proa_fail(PROA_ERR_UNSUPPORTED,
                             "onnx.export: input '%s' has sequences (LoD), which ONNX lacks: pad "
                             "them",
                             var->name);
        onnx_value *v = onnx_alloc(g, 1, sizeof *v);
        if (!v) return proa_error();
        *v = (onnx_value){.name = var->name, .dtype = (proa_dtype)var->handle->dtype, .named = true};
        PROA_TRY(proa__hash_map_put(&g->values, var, v));
    }
    return PROA_OK;
}

/* The value that is written as output i: the variable's own, or a copy of it under a free name. */
static onnx_value *output_value(onnx_graph *g, int32_t i)
{
    const proa_var *var = g->block->outputs[i];
    onnx_value *v = onnx_in(g, var->handle);
    bool own = v && v->maker && strcmp(v->name, var->name) == 0;
    for (int32_t k = 0; k < i; k++) own &= g->block->outputs[k] != var;
    if (own || !v) return v;
    onnx_value *copy = ONNX_NODE(g, "Identity", v);
    if (!copy) return NULL;
    bool taken = var->persistable || var->is_input;
    for (int32_t k = 0; k < i; k++) taken |= g->block->outputs[k] == var;
    if (!taken) copy->name = var->name;
    else if (!(copy->name = proa__arena_format(&g->all->arena, "%s_output_%d", var->name, (int)i)))
        return NULL;
    copy->named = true;
    return copy;
}

static proa_status lower(onnx_export *all, const char *path)
{
    onnx_graph g = {.all = all, .block = proa__root(all->program)};
    proa_status status = note_reads(all->program, &all->read);
    if (status == PROA_OK) status = add_inputs(&g);
    if (status == PROA_OK) status = onnx_lower_block(&g);
    int32_t n = g.block->n_outputs;
    onnx_value **outputs = onnx_alloc(&g, (size_t)n, sizeof *outputs);
    for (int32_t i = 0; status == PROA_OK && outputs && i < n; i++) {
        outputs[i] = output_value(&g, i);
        status = proa_error();
    }
    if (status == PROA_OK && outputs) status = onnx_write(&g, outputs, path);
    proa__hash_map_clear(&g.values);
    return status == PROA_OK ? proa_error() : status;
}

/* A copy of the program in evaluation mode, without ops that no output needs, and with constants folded. */
static proa_program *for_inference(const proa_program *p)
{
    proa_program *copy = proa_program_clone(p, true);
    if (copy && proa_program_trim(copy) == PROA_OK && proa__program_fold(copy, true) == PROA_OK) return copy;
    proa_program_free(copy);
    return NULL;
}

proa_status proa_onnx_export(const proa_program *p, const char *path, int64_t opset)
{
    PROA_TRY(proa_error());
    if (!p || !path || !path[0])
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "onnx.export: program and path must be given");
    if (opset < ONNX_OPSET_MIN || opset > ONNX_OPSET_MAX)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "onnx.export: opset_version is %lld; expected %d to %d",
                         (long long)opset, (int)ONNX_OPSET_MIN, (int)ONNX_OPSET_MAX);
    if (proa__root(p)->n_outputs == 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "onnx.export: the program has no outputs: set them first");
    PROA_SCOPED;
    proa_program *copy = for_inference(p);
    if (!copy) return proa_error();
    onnx_export all = {.program = copy, .opset = opset, .constants = {.by_text = true}};
    proa_status status = check_ops(copy, opset);
    if (status == PROA_OK) status = lower(&all, path);
    proa__hash_map_clear(&all.constants);
    proa__hash_map_clear(&all.read);
    proa__arena_free(&all.arena);
    proa_program_free(copy);
    return status;
}

#else
typedef int proa__no_onnx_export; /* C wants a declaration in every file */
#endif
