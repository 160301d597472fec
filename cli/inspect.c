/* proa inspect: a model's inputs, outputs, ops, parameters and floating-point operations, as text, as JSON
 * or as a Graphviz graph. Uses cli.h. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct view {
    cli_model model;
    int64_t unknown; /* value assumed for unknown dims */
    bool parameters;
} view;

/* ---- counting -------------------------------------------------------------------------- */

typedef struct tally {
    const char *type;
    int64_t count, unclear; /* unclear: ops of unknown operation count */
    double flops;
} tally;

static int type_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns *n op types in alphabetical order, each with the number of its ops and their operations. */
static tally *count_types(const view *v, int64_t *n)
{
    const cli_model *m = &v->model;
    const char **types = cli_array((size_t)m->n_ops + 1, sizeof *types);
    tally *list = cli_array((size_t)m->n_ops + 1, sizeof *list);
    int64_t k = 0;
    *n = 0;
    if (!types || !list) return NULL;
    for (int64_t b = 0; b < m->n_blocks; b++)
        for (int64_t i = 0; i < m->blocks[b].n_ops; i++) types[k++] = m->blocks[b].ops[i]->type;
    qsort(types, (size_t)k, sizeof *types, type_order);
    for (int64_t i = 0; i < k; i++)
        if (i == 0 || strcmp(types[i], types[i - 1]) != 0) list[(*n)++].type = types[i];
    for (int64_t b = 0; b < m->n_blocks; b++)
        for (int64_t i = 0; i < m->blocks[b].n_ops; i++) {
            const cli_op *op = m->blocks[b].ops[i];
            tally *t = bsearch(&op->type, list, (size_t)*n, sizeof *list, type_order);
            double flops = cli_flops(m, b, op, v->unknown);
            t->count++;
            if (flops < 0) t->unclear++;
            else t->flops += flops;
        }
    return list;
}

static double total(const tally *list, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += list[i].flops;
    return sum;
}

/* ---- text ------------------------------------------------------------------------------ */

static void print_var(const view *v, int64_t b, const char *name)
{
    const proa_var_info *var = cli_find(&v->model, b, name);
    printf("%s", name);
    if (var) printf(" %s", cli_shape(var->tensor));
}

static void print_slots(const view *v, int64_t b, const char *mark, const cli_slot *slots, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (slots[i].count == 0) continue;
        printf("      %s %s: ", mark, slots[i].name);
        for (int64_t k = 0; k < slots[i].count; k++) {
            if (k) printf(", ");
            print_var(v, b, slots[i].vars[k]);
        }
        printf("\n");
    }
}

static void print_op(const view *v, int64_t b, int64_t i)
{
    const cli_op *op = v->model.blocks[b].ops[i];
    double flops = cli_flops(&v->model, b, op, v->unknown);
    printf("  %4lld %s", (long long)i, op->type);
    if (flops > 0) printf("  (%.0f FLOPs)", flops);
    printf("\n");
    print_slots(v, b, "<-", op->inputs, op->n_inputs);
    print_slots(v, b, "->", op->outputs, op->n_outputs);
    bool first = true;
    for (int64_t k = 0; k < op->n_attrs; k++) {
        if (strcmp(op->attrs[k].name, "op_role") == 0 && op->role == 0)
            continue; /* the role of forward ops is not printed */
        printf(first ? "      %s=" : ", %s=", op->attrs[k].name);
        cli_print_attr(stdout, &op->attrs[k]);
        first = false;
    }
    if (!first) printf("\n");
}

static void print_ends(const view *v)
{
    const proa_program *p = v->model.program;
    printf("%s: %lld ops in %lld block%s\n", v->model.path, (long long)v->model.n_ops,
           (long long)v->model.n_blocks, v->model.n_blocks == 1 ? "" : "s");
    for (int64_t i = 0; i < proa_program_input_count(p); i++)
        printf("input   %s %s\n", proa_name_of(proa_program_input(p, i)),
               cli_shape(proa_program_input(p, i)));
    for (int64_t i = 0; i < proa_program_output_count(p); i++)
        printf("output  %s %s\n", proa_name_of(proa_program_output(p, i)),
               cli_shape(proa_program_output(p, i)));
    printf("parameters: %lld, %lld elements, %lld bytes\n", (long long)v->model.n_parameters,
           (long long)v->model.parameter_elements, (long long)v->model.parameter_bytes);
}

static proa_status as_text(const view *v)
{
    const cli_model *m = &v->model;
    int64_t n = 0;
    tally *types = count_types(v, &n);
    if (!types) return proa_error();
    print_ends(v);
    for (int64_t i = 0; v->parameters && i < m->blocks[0].n_vars; i++)
        if (m->blocks[0].vars[i].persistable)
            printf("  %s %s\n", m->blocks[0].vars[i].name, cli_shape(m->blocks[0].vars[i].tensor));
    for (int64_t b = 0; b < m->n_blocks; b++) {
        printf("\nblock %lld", (long long)b);
        if (m->blocks[b].parent >= 0) printf(" of block %lld", (long long)m->blocks[b].parent);
        printf("\n");
        for (int64_t i = 0; i < m->blocks[b].n_ops; i++) print_op(v, b, i);
    }
    printf("\nops by type\n");
    for (int64_t i = 0; i < n; i++) {
        printf("  %6lld %s", (long long)types[i].count, types[i].type);
        if (types[i].flops > 0) printf("  %.0f FLOPs", types[i].flops);
        if (types[i].unclear) printf("  (%lld not counted)", (long long)types[i].unclear);
        printf("\n");
    }
    printf("FLOPs: %.0f (a multiply-add is two; unknown dims count as %lld, bodies of loops once)\n",
           total(types, n), (long long)v->unknown);
    return proa_error();
}

/* ---- JSON ------------------------------------------------------------------------------ */

static void json_tensor(const char *name, const proa_tensor *t)
{
    printf("{\"name\": ");
    cli_json_text(stdout, name);
    printf(", \"dtype\": \"%s\", \"shape\": [", proa_dtype_name(proa_dtype_of(t)));
    for (int i = 0; i < proa_ndim(t); i++) printf(i ? ", %lld" : "%lld", (long long)proa_shape_of(t)[i]);
    printf("]}");
}

static void json_ends(const char *key, const proa_program *p, int64_t n,
                      const proa_tensor *(*get)(const proa_program *, int64_t))
{
    printf(" \"%s\": [", key);
    for (int64_t i = 0; i < n; i++) {
        if (i) printf(", ");
        json_tensor(proa_name_of(get(p, i)), get(p, i));
    }
    printf("],\n");
}

static void json_vars(const cli_block *b, bool persistable)
{
    bool first = true;
    for (int64_t i = 0; i < b->n_vars; i++) {
        if (b->vars[i].persistable != persistable) continue;
        printf(first ? "\n  " : ",\n  ");
        json_tensor(b->vars[i].name, b->vars[i].tensor);
        first = false;
    }
}

static void json_slots(const char *key, const cli_slot *slots, int64_t n)
{
    printf(", \"%s\": {", key);
    for (int64_t i = 0; i < n; i++) {
        if (i) printf(", ");
        cli_json_text(stdout, slots[i].name);
        printf(": [");
        for (int64_t k = 0; k < slots[i].count; k++) {
            if (k) printf(", ");
            cli_json_text(stdout, slots[i].vars[k]);
        }
        printf("]");
    }
    printf("}");
}

static void json_op(const view *v, int64_t b, const cli_op *op)
{
    double flops = cli_flops(&v->model, b, op, v->unknown);
    printf("   {\"type\": ");
    cli_json_text(stdout, op->type);
    printf(", \"op\": ");
    cli_json_text(stdout, op->table);
    printf(", \"role\": %d", (int)op->role);
    if (flops < 0) printf(", \"flops\": null");
    else printf(", \"flops\": %.0f", flops);
    json_slots("inputs", op->inputs, op->n_inputs);
    json_slots("outputs", op->outputs, op->n_outputs);
    printf(", \"attrs\": {");
    for (int64_t i = 0; i < op->n_attrs; i++) {
        if (i) printf(", ");
        cli_json_text(stdout, op->attrs[i].name);
        printf(": ");
        cli_print_attr(stdout, &op->attrs[i]);
    }
    printf("}}");
}

static proa_status as_json(const view *v)
{
    const cli_model *m = &v->model;
    int64_t n = 0;
    tally *types = count_types(v, &n);
    if (!types) return proa_error();
    printf("{\"file\": ");
    cli_json_text(stdout, m->path);
    printf(",\n");
    json_ends("inputs", m->program, proa_program_input_count(m->program), proa_program_input);
    json_ends("outputs", m->program, proa_program_output_count(m->program), proa_program_output);
    printf(" \"parameters\": {\"count\": %lld, \"elements\": %lld, \"bytes\": %lld, \"tensors\": [",
           (long long)m->n_parameters, (long long)m->parameter_elements, (long long)m->parameter_bytes);
    json_vars(&m->blocks[0], true);
    printf("]},\n \"flops\": {\"total\": %.0f, \"unknown_dim\": %lld, \"by_type\": {", total(types, n),
           (long long)v->unknown);
    bool first = true;
    for (int64_t i = 0; i < n; i++) {
        if (types[i].flops <= 0) continue;
        if (!first) printf(", ");
        cli_json_text(stdout, types[i].type);
        printf(": %.0f", types[i].flops);
        first = false;
    }
    printf("}},\n \"blocks\": [");
    for (int64_t b = 0; b < m->n_blocks; b++) {
        printf("%s\n  {\"parent\": %lld, \"variables\": [", b ? "," : "", (long long)m->blocks[b].parent);
        json_vars(&m->blocks[b], false);
        printf("],\n   \"ops\": [");
        for (int64_t i = 0; i < m->blocks[b].n_ops; i++) {
            printf(i ? ",\n" : "\n");
            json_op(v, b, m->blocks[b].ops[i]);
        }
        printf("]}");
    }
    printf("]}\n");
    return proa_error();
}

/* ---- Graphviz -------------------------------------------------------------------------- */

/* Prints text inside a quoted Graphviz string: escapes quotes and backslashes. */
static void dot_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar((unsigned char)*text < 0x20 ? ' ' : *text);
    }
}

static void dot_var(const view *v, int64_t b, const char *name, const char *style)
{
    const proa_var_info *var = cli_find(&v->model, b, name);
    printf("    \"v%lld ", (long long)b);
    dot_text(name);
    printf("\" [label=\"");
    dot_text(name);
    if (var) printf("\\n%s", cli_shape(var->tensor));
    printf("\"%s];\n", style);
}

static void dot_edges(const cli_model *m, int64_t b, int64_t i, const cli_slot *slots, int64_t n, bool in)
{
    for (int64_t s = 0; s < n; s++)
        for (int64_t k = 0; k < slots[s].count; k++) {
            const char *name = slots[s].vars[k];
            printf("  ");
            if (!in) printf("o%lld_%lld -> ", (long long)b, (long long)i);
            printf("\"v%lld ", (long long)cli_home(m, b, name));
            dot_text(name);
            printf("\"");
            if (in) printf(" -> o%lld_%lld", (long long)b, (long long)i);
            printf(";\n");
        }
}

static proa_status as_dot(const view *v)
{
    const cli_model *m = &v->model;
    printf("digraph model {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n");
    for (int64_t b = 0; b < m->n_blocks; b++) {
        const cli_block *block = &m->blocks[b];
        printf("  subgraph cluster_%lld {\n    label=\"block %lld\";\n", (long long)b, (long long)b);
        for (int64_t i = 0; i < block->n_vars; i++)
            dot_var(v, b, block->vars[i].name,
                    block->vars[i].is_input      ? ", shape=ellipse, style=bold"
                    : block->vars[i].persistable ? ", shape=ellipse, style=dashed"
                                                 : ", shape=ellipse");
        for (int64_t i = 0; i < block->n_ops; i++) {
            printf("    o%lld_%lld [label=\"", (long long)b, (long long)i);
            dot_text(block->ops[i]->type);
            printf("\", style=filled, fillcolor=\"#dde8f5\"];\n");
        }
        printf("  }\n");
        for (int64_t i = 0; i < block->n_ops; i++) {
            dot_edges(m, b, i, block->ops[i]->inputs, block->ops[i]->n_inputs, true);
            dot_edges(m, b, i, block->ops[i]->outputs, block->ops[i]->n_outputs, false);
        }
    }
    printf("}\n");
    return proa_error();
}

/* ---- the command ----------------------------------------------------------------------- */

int cli_inspect(cli_args *a)
{
    view v = {.unknown = 1};
    const char *path = NULL;
    bool json = false, dot = false;
    proa_status status = PROA_OK;
    for (cli_kind kind; status == PROA_OK && (kind = cli_next(a)) != CLI_END;) {
        if (kind == CLI_FILE && !path) path = a->value;
        else if (cli_is(a, "json")) json = true;
        else if (cli_is(a, "dot")) dot = true;
        else if (cli_is(a, "parameters")) v.parameters = true;
        else if (cli_is(a, "unknown")) status = cli_int(a, 1, &v.unknown);
        else status = cli_model_option(a);
    }
    if (status == PROA_OK && (!path || (json && dot)))
        status = proa_fail(PROA_ERR_INVALID_ARGUMENT,
                           path ? "--json and --dot: choose one" : "no model: proa inspect MODEL.pdmodel");
    if (status == PROA_OK) status = cli_model_load(&v.model, path);
    if (status == PROA_OK) status = json ? as_json(&v) : dot ? as_dot(&v) : as_text(&v);
    cli_model_free(&v.model);
    return status == PROA_OK ? CLI_OK : CLI_FAILED;
}
