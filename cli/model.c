/* Loads a saved model into plain arrays: each block's variables sorted by name, and copies of its ops as
 * Paddle's format represents them. Uses cli.h. */
#include "cli.h"

#include <proa/wire.h>

#include <stdlib.h>
#include <string.h>

/* ---- copying what proa_program_describe shows -------------------------------------------- */

typedef struct collector {
    cli_op *first, **end;
    int64_t count, at; /* wire ops so far; index of the block's op being described */
    const char *table;
} collector;

static void *copy(const void *from, int64_t count, size_t item)
{
    void *to = cli_array((size_t)count + 1, item);
    if (to && count) memcpy(to, from, (size_t)count * item);
    return to;
}

static const char **copy_texts(const char *const *from, int64_t count)
{
    const char **to = cli_array((size_t)count + 1, sizeof *to);
    for (int64_t i = 0; to && i < count; i++)
        if (!(to[i] = cli_text(from[i]))) return NULL;
    return to;
}

static cli_slot *copy_slots(const proa_op_slot *from, int64_t count)
{
    cli_slot *to = cli_array((size_t)count + 1, sizeof *to);
    for (int64_t i = 0; to && i < count; i++) {
        to[i] = (cli_slot){cli_text(from[i].name), from[i].count, copy_texts(from[i].vars, from[i].count)};
        if (!to[i].name || !to[i].vars) return NULL;
    }
    return to;
}

static int attr_order(const void *a, const void *b)
{
    return strcmp(((const proa_op_attr *)a)->name, ((const proa_op_attr *)b)->name);
}

static proa_op_attr *copy_attrs(const proa_op_attr *from, int64_t count)
{
    proa_op_attr *to = copy(from, count, sizeof *to);
    for (int64_t i = 0; to && i < count; i++) {
        proa_op_attr *a = &to[i];
        a->name = cli_text(from[i].name);
        if (a->s) a->s = cli_text(from[i].s);
        if (a->ints) a->ints = copy(from[i].ints, a->count, sizeof *a->ints);
        if (a->floats) a->floats = copy(from[i].floats, a->count, sizeof *a->floats);
        if (a->strings) a->strings = copy_texts(from[i].strings, a->count);
        if (proa_error()) return NULL;
    }
    if (to) qsort(to, (size_t)count, sizeof *to, attr_order);
    return to;
}

static proa_status see(const proa_op_desc *op, void *context)
{
    collector *c = context;
    cli_op *to = cli_alloc(sizeof *to);
    if (!to) return proa_error();
    *to = (cli_op){.type = cli_text(op->type),
                   .table = c->table,
                   .role = op->role,
                   .n_inputs = op->n_inputs,
                   .n_outputs = op->n_outputs,
                   .n_attrs = op->n_attrs,
                   .inputs = copy_slots(op->inputs, op->n_inputs),
                   .outputs = copy_slots(op->outputs, op->n_outputs),
                   .attrs = copy_attrs(op->attrs, op->n_attrs),
                   .at = c->at};
    *c->end = to;
    c->end = &to->next;
    c->count++;
    return proa_error();
}

/* ---- loading --------------------------------------------------------------------------- */

static int var_order(const void *a, const void *b)
{
    return strcmp(((const proa_var_info *)a)->name, ((const proa_var_info *)b)->name);
}

static int64_t count_operands(const cli_op *op)
{
    int64_t n = 0;
    for (int64_t i = 0; i < op->n_inputs; i++) n += op->inputs[i].count;
    return n;
}

/* Of the wire ops that represent one op, marks the first with the most operands as the one that counts for
 * its operations: the others reshape or cast. */
static void mark_counted(cli_op *first)
{
    cli_op *most = first;
    for (cli_op *op = first; op; op = op->next)
        if (count_operands(op) > count_operands(most)) most = op;
    if (most) most->counted = true;
}

static proa_status read_block(cli_model *m, int64_t index)
{
    cli_block *b = &m->blocks[index];
    b->parent = proa_program_block_parent(m->program, index);
    b->n_vars = proa_program_var_count(m->program, index);
    b->vars = cli_array((size_t)b->n_vars + 1, sizeof *b->vars);
    if (!b->vars) return proa_error();
    for (int64_t i = 0; i < b->n_vars; i++) {
        proa_var_info *v = &b->vars[i];
        PROA_TRY(proa_program_var(m->program, index, i, v));
        if (!v->persistable) continue;
        m->n_parameters++;
        m->parameter_elements += proa_numel(v->tensor);
        m->parameter_bytes += proa_numel(v->tensor) * (int64_t)proa_dtype_size(proa_dtype_of(v->tensor));
    }
    qsort(b->vars, (size_t)b->n_vars, sizeof *b->vars, var_order);
    collector c = {.end = &c.first};
    for (; c.at < proa_program_op_count(m->program, index); c.at++) {
        cli_op **begin = c.end;
        c.table = proa_program_op(m->program, index, c.at, NULL);
        if (!c.table) return proa_error();
        PROA_TRY(proa_program_describe(m->program, index, c.at, see, &c));
        mark_counted(*begin);
    }
    b->n_ops = c.count;
    m->n_ops += c.count;
    b->ops = cli_array((size_t)c.count + 1, sizeof *b->ops);
    if (!b->ops) return proa_error();
    int64_t k = 0;
    for (cli_op *op = c.first; op; op = op->next) b->ops[k++] = op;
    return PROA_OK;
}

static bool is_file(const char *path)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (f) fclose(f);
    return f != NULL;
}

/* Loads a program, also a .pdmodel without .pdiparams: training programs keep parameters in other files. */
static proa_program *load(const char *path)
{
    size_t bytes = 0, stem = strlen(path) - (cli_ends_with(path, ".pdmodel") ? strlen(".pdmodel") : 0);
    const char *model = cli_format("%.*s.pdmodel", (int)stem, path);
    const char *params = cli_format("%.*s.pdiparams", (int)stem, path);
    if (!params || !is_file(model) || is_file(params)) return proa_program_load(path);
    unsigned char *data = cli_read(model, &bytes);
    return data ? proa_program_decode(data, bytes) : NULL;
}

proa_status cli_model_load(cli_model *m, const char *path)
{
    *m = (cli_model){.path = path, .program = load(path)};
    if (!m->program) return proa_error();
    m->n_blocks = proa_program_block_count(m->program);
    m->blocks = cli_array((size_t)m->n_blocks, sizeof *m->blocks);
    if (!m->blocks) return proa_error();
    for (int64_t i = 0; i < m->n_blocks; i++) PROA_TRY(read_block(m, i));
    return PROA_OK;
}

void cli_model_free(cli_model *m)
{
    if (m->program) proa_program_free(m->program);
    m->program = NULL;
}

/* ---- looking things up ------------------------------------------------------------------- */

const proa_var_info *cli_find(const cli_model *m, int64_t b, const char *name)
{
    proa_var_info key = {.name = name};
    for (; b >= 0; b = m->blocks[b].parent) {
        const cli_block *block = &m->blocks[b];
        const proa_var_info *v = bsearch(&key, block->vars, (size_t)block->n_vars, sizeof key, var_order);
        if (v) return v;
    }
    return NULL;
}

int64_t cli_home(const cli_model *m, int64_t b, const char *name)
{
    const proa_var_info *v = cli_find(m, b, name);
    for (int64_t at = b; v && at >= 0; at = m->blocks[at].parent)
        if (v >= m->blocks[at].vars && v < m->blocks[at].vars + m->blocks[at].n_vars) return at;
    return b;
}

const proa_op_attr *cli_attr(const cli_op *op, const char *name)
{
    proa_op_attr key = {.name = name};
    return bsearch(&key, op->attrs, (size_t)op->n_attrs, sizeof key, attr_order);
}

double cli_flops(const cli_model *m, int64_t b, const cli_op *op, int64_t unknown)
{
    return op->counted ? proa_program_op_flops(m->program, b, op->at, unknown) : 0;
}

void cli_print_attr(FILE *to, const proa_op_attr *a)
{
    switch ((proa_wire_type)a->type) {
    case PROA_WIRE_BOOLEAN: fputs(a->i ? "true" : "false", to); return;
    case PROA_WIRE_FLOAT:
    case PROA_WIRE_FLOAT64: cli_json_number(to, a->f); return;
    case PROA_WIRE_STRING: cli_json_text(to, a->s); return;
    case PROA_WIRE_FLOATS:
    case PROA_WIRE_FLOAT64S:
    case PROA_WIRE_STRINGS:
    case PROA_WIRE_VAR:
    case PROA_WIRE_VARS:
    case PROA_WIRE_INTS:
    case PROA_WIRE_LONGS:
    case PROA_WIRE_BOOLEANS:
    case PROA_WIRE_BLOCKS: break;
    default: fprintf(to, "%lld", (long long)a->i); return;
    }
    fputc('[', to);
    for (int64_t i = 0; i < a->count; i++) {
        if (i) fputs(", ", to);
        if (a->floats) cli_json_number(to, a->floats[i]);
        else if (a->strings) cli_json_text(to, a->strings[i]);
        else if (a->type == PROA_WIRE_BOOLEANS) fputs(a->ints[i] ? "true" : "false", to);
        else fprintf(to, "%lld", (long long)a->ints[i]);
    }
    fputc(']', to);
}
