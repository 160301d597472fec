/* Programs, blocks and variables: creation, naming, lookup, printing and freeing. May use core and ops. */
#include "program.h"

#include "core/internal.h"
#include "core/op_device.h"
#include "core/args_visit.h"
#include "core/steps.h"

/* ---- making and freeing ---------------------------------------------------------------- */

proa_status proa__reserve(void *array, int32_t count, int32_t *capacity, size_t size)
{
    if (count < *capacity) return PROA_OK;
    if (count > INT32_MAX / 2) return proa_fail(PROA_ERR_OVERFLOW, "program: more than 2^30 entries");
    int32_t wanted = count < 8 ? 8 : count * 2;
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = proa__realloc(old, (size_t)wanted * size);
    if (!grown) return proa_error();
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return PROA_OK;
}

proa_program *proa__program_new(void)
{
    if (proa_error() != PROA_OK) return NULL;
    proa_program *p = proa__calloc(sizeof *p);
    if (p && proa__block_new(p, -1)) return p;
    proa_program_free(p);
    return NULL;
}

proa_block *proa__block_new(proa_program *p, int32_t parent)
{
    if (proa_error() != PROA_OK) return NULL;
    if (parent >= p->n_blocks || (parent < 0 && p->n_blocks > 0)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "program: block %d cannot be the parent of block %d", parent,
                  p->n_blocks);
        return NULL;
    }
    if (proa__reserve(&p->blocks, p->n_blocks, &p->blocks_capacity, sizeof *p->blocks) != PROA_OK)
        return NULL;
    proa_block *b = proa__calloc(sizeof *b);
    if (!b) return NULL;
    *b = (proa_block){.program = p, .index = p->n_blocks, .parent = parent, .names = {.by_text = true}};
    p->blocks[p->n_blocks++] = b;
    return b;
}

void proa__instr_clear(proa_instr *instr)
{
    proa__args_free(instr->op, instr->args);
    instr->args = NULL;
}

void proa__var_free(proa_var *v)
{
    if (!v) return;
    if (v->handle) v->handle->var = NULL;
    proa_release(v->handle);
    proa_release(v->value);
    proa__free(v->name);
    proa__free(v->lod);
    proa__free(v);
}

static void block_free(proa_block *b)
{
    for (int32_t i = 0; i < b->n_ops; i++) proa__instr_clear(&b->ops[i]);
    for (int32_t i = 0; i < b->n_vars; i++) proa__var_free(b->vars[i]);
    proa__hash_map_clear(&b->names);
    proa__free(b->ops);
    proa__free(b->vars);
    proa__block_forget_reads(b);
    proa__free(b->inputs);
    proa__free(b->outputs);
    proa__free(b);
}

void proa_program_free(proa_program *p)
{
    if (!p) return;
    const proa_block *open = proa__capture_block();
    if (open && open->program == p) proa__capture_into(NULL);
    for (int32_t i = 0; i < p->n_blocks; i++) block_free(p->blocks[i]);
    proa__hash_map_clear(&p->known);
    proa__hash_map_clear(&p->concrete);
    proa__free(p->blocks);
    proa__free(p);
}

/* Clears the LoD of variables whose offset variables were in a block that is being freed. */
static void forget_lost_lod(proa_program *p)
{
    for (int32_t k = 0; k < p->n_blocks; k++)
        for (int32_t i = 0; i < p->blocks[k]->n_vars; i++)
            for (int level = 0; p->blocks[k]->vars[i]->lod && level < PROA__LOD_MAX; level++) {
                proa_var **of = &p->blocks[k]->vars[i]->lod[level];
                if (*of && !proa__hash_map_find(&p->known, *of)) *of = NULL;
            }
}

void proa__program_drop_blocks(proa_program *p, int32_t from)
{
    while (p->n_blocks > from) {
        proa_block *b = p->blocks[--p->n_blocks];
        for (int32_t i = 0; i < b->n_vars; i++) proa__hash_map_drop(&p->known, b->vars[i]);
        block_free(b);
    }
    forget_lost_lod(p);
}

/* ---- variables ------------------------------------------------------------------------- */

proa_var *proa__var_find(const proa_block *b, const char *name)
{
    while (b) {
        proa_var *v = proa__hash_map_find(&b->names, name);
        if (v) return v;
        b = b->parent >= 0 ? b->program->blocks[b->parent] : NULL;
    }
    return NULL;
}

/* A free name "<stem>_<n>"; the caller frees it. */
static char *fresh_name(proa_block *b, const char *stem)
{
    size_t capacity = strlen(stem) + 24;
    char *name = proa__alloc(capacity);
    if (!name) return NULL;
    do {
        snprintf(name, capacity, "%s_%llu", stem, (unsigned long long)b->program->next_temporary++);
    } while (proa__var_find(b, name));
    return name;
}

static atomic_uint_fast64_t serials;

uint64_t proa__last_serial(void) { return atomic_load_explicit(&serials, memory_order_relaxed); }

static proa_status var_fill(proa_block *b, proa_var *v, const char *name, const proa_meta *meta)
{
    v->name = name ? proa__strdup(name) : fresh_name(b, "tmp");
    if (!v->name) return proa_error();
    proa_tensor *handle = proa__tensor_bare(meta, PROA_T_SYMBOLIC);
    if (!handle) return proa_error();
    v->handle = proa_keep(handle);
    proa_drop(handle);
    v->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    v->handle->var = v;
    v->handle->var_serial = v->serial;
    PROA_TRY(proa_set_name(v->handle, v->name));
    PROA_TRY(proa__reserve(&b->vars, b->n_vars, &b->vars_capacity, sizeof *b->vars));
    PROA_TRY(proa__hash_map_put(&b->program->known, v, v));
    return proa__hash_map_put(&b->names, v->name, v);
}

proa_var *proa__var_new(proa_block *b, const char *name, const proa_meta *meta)
{
    if (proa_error() != PROA_OK) return NULL;
    if (name && proa__hash_map_find(&b->names, name)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "program: there is a variable %s already", name);
        return NULL;
    }
    proa_var *v = proa__calloc(sizeof *v);
    if (!v) return NULL;
    if (var_fill(b, v, name, meta) != PROA_OK) {
        proa__hash_map_drop(&b->program->known, v);
        proa__var_free(v);
        return NULL;
    }
    v->index = b->n_vars;
    v->block = b->index;
    b->vars[b->n_vars++] = v;
    b->program->version++;
    return v;
}

static proa_block *root_of(proa_block *b) { return b->parent < 0 ? b : b->program->blocks[0]; }

static proa_status attach_value(proa_block *b, proa_var *v, proa_tensor *value)
{
    PROA_TRY(proa__hash_map_put(&b->program->concrete, value, v));
    proa_tensor *old = v->value;
    v->value = proa_keep(value);
    v->persistable = true;
    if (old && old != value) proa__hash_map_drop(&b->program->concrete, old);
    proa_release(old);
    return PROA_OK;
}

proa_var *proa__var_of_concrete(proa_block *b, proa_tensor *value)
{
    if (proa_error() != PROA_OK) return NULL;
    proa_var *v = proa__hash_map_find(&b->program->concrete, value);
    if (v) return v;
    b = root_of(b);
    const char *given = proa_name_of(value);
    char *name = NULL;
    if (!given || proa__var_find(b, given)) {
        name = fresh_name(b, given ? given : "param");
        if (!name) return NULL;
        given = name;
    }
    proa_meta meta = proa_meta_of(value);
    v = proa__var_new(b, given, &meta);
    proa__free(name);
    if (v && attach_value(b, v, value) != PROA_OK) return NULL; /* v has no readers: prune removes it */
    return v;
}

proa_status proa__var_set_value(proa_block *b, proa_var *var, proa_tensor *value)
{
    PROA_TRY(proa_error());
    if (!value && var->value) {
        proa__hash_map_drop(&b->program->concrete, var->value);
        proa_release(var->value);
        var->value = NULL;
    }
    if (!value) return PROA_OK;
    if (proa__absent(value) || value->flags & (PROA_T_SYMBOLIC | PROA_T_META))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program: the value of %s must be a tensor with data",
                         var->name);
    const proa_tensor *h = var->handle;
    bool fits = h->dtype == value->dtype && h->ndim == value->ndim;
    for (int i = 0; fits && i < h->ndim; i++) fits = h->shape[i] < 0 || h->shape[i] == value->shape[i];
    if (!fits)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program: variable %s is %s, its value is %s", var->name,
                         proa__tensor_text(h), proa__tensor_text(value));
    return attach_value(b, var, value);
}

/* True for variables of b and of the blocks that enclose it. */
static bool in_scope(const proa_block *b, const proa_var *v)
{
    while (b->index != v->block && b->parent >= 0) b = b->program->blocks[b->parent];
    return b->index == v->block;
}

proa_var *proa__var_of(proa_block *b, proa_tensor *t, const proa_op *op, const char *argument)
{
    if (!(t->flags & PROA_T_SYMBOLIC)) {
        if (t->flags & PROA_T_META) {
            proa__op_fail(PROA_ERR_BAD_STATE, op, argument, "has a shape, but neither data nor a variable");
            return NULL;
        }
        proa_var *v = proa__var_of_concrete(b, t);
        if (v && v->stale) {
            proa__op_fail(PROA_ERR_BAD_STATE, op, argument,
                          "(%s) was changed in place through a view of it: clone before changing", v->name);
            return NULL;
        }
        return v;
    }
    proa_var *v = proa__var_behind(b->program, t);
    if (v && !in_scope(b, v)) {
        proa__op_fail(
            PROA_ERR_BAD_STATE, op, argument,
            "(%s) was made inside a branch or a loop's body, and is used outside; return it from there",
            v->name);
        return NULL;
    }
    if (!v)
        proa__op_fail(PROA_ERR_BAD_STATE, op, argument,
                      "is a variable of another program, or of one that was freed or transformed");
    else if (v->unmade)
        proa__op_fail(PROA_ERR_BAD_STATE, op, argument,
                      "(%s) was declared, but no op makes it yet: append that op first", v->name);
    else if (v->stale && strcmp(op->name, "shape") == 0) return v; /* its dims did not change */
    else if (v->stale)
        proa__op_fail(PROA_ERR_BAD_STATE, op, argument,
                      "(%s) shares memory with a tensor that was changed in place; a program cannot follow "
                      "that: clone before changing, or use the op that is not in place",
                      v->name);
    return v && !v->stale && !v->unmade ? v : NULL;
}

proa_var *proa__var_behind(const proa_program *p, const proa_tensor *t)
{
    if (!(t->flags & PROA_T_SYMBOLIC)) return proa__hash_map_find(&p->concrete, t);
    proa_var *v = proa__hash_map_find(&p->known, t->var);
    return v && v->serial == t->var_serial ? v : NULL;
}

proa_status proa__var_rename(proa_block *b, proa_var *v, const char *name)
{
    PROA_TRY(proa_error());
    if (!name || !name[0] || proa__hash_map_find(&b->names, name))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program: %s cannot be renamed to '%s', which is %s",
                         v->name, name ? name : "", name && name[0] ? "taken" : "no name");
    char *copy = proa__strdup(name), *old = v->name;
    if (!copy) return proa_error();
    proa_status status = proa__hash_map_put(&b->names, copy, v);
    if (status == PROA_OK) status = proa_set_name(v->handle, copy);
    if (status != PROA_OK) {
        if (proa__hash_map_find(&b->names, copy)) proa__hash_map_drop(&b->names, copy);
        proa__free(copy);
        return status;
    }
    v->name = copy;
    proa__hash_map_drop(&b->names, old);
    proa__free(old);
    b->program->version++;
    return PROA_OK;
}

/* Removes v from its block's array; the last variable takes its index. */
static void take_out(proa_block *b, const proa_var *v)
{
    proa_var *last = b->vars[--b->n_vars];
    b->vars[v->index] = last;
    last->index = v->index;
}

void proa__var_define(proa_block *b, proa_var *declared, proa_var *made)
{
    char *name = declared->name, *shown = declared->handle->name;
    declared->name = made->name;
    made->name = name;
    declared->handle->name = made->handle->name;
    made->handle->name = shown;
    proa__hash_map_drop(&b->names, declared->name);
    proa__hash_map_put(&b->names, name, made); /* replaces an entry: cannot fail */
    made->stop_gradient |= declared->stop_gradient;
    take_out(b, made);
    made->index = declared->index;
    b->vars[made->index] = made;
    proa__hash_map_drop(&b->program->known, declared);
    proa__var_free(declared);
    b->program->version++;
}

void proa__var_show(proa_tensor *t, const proa_var *v)
{
    const proa_tensor *h = v->handle;
    proa__stand_for(t, h);
    t->dtype = h->dtype;
    t->ndim = h->ndim;
    t->numel = h->numel;
    memcpy(t->shape, h->shape, sizeof t->shape);
    memcpy(t->strides, h->strides, sizeof t->strides);
}

proa_tensor *proa__var_tensor(const proa_var *var)
{
    proa_meta meta = proa_meta_of(var->handle);
    proa_tensor *t = proa__tensor_bare(&meta, PROA_T_SYMBOLIC);
    if (!t) return NULL;
    proa__stand_for(t, var->handle);
    return proa_set_name(t, var->name) == PROA_OK ? t : NULL;
}

proa_status proa__program_reindex(proa_program *p)
{
    proa__hash_map_wipe(&p->known);
    proa__hash_map_wipe(&p->concrete);
    for (int32_t k = 0; k < p->n_blocks; k++) {
        proa_block *b = p->blocks[k];
        proa__hash_map_wipe(&b->names);
        for (int32_t i = 0; i < b->n_vars; i++) {
            proa_var *v = b->vars[i];
            v->index = i;
            v->block = k;
            PROA_TRY(proa__hash_map_put(&b->names, v->name, v));
            PROA_TRY(proa__hash_map_put(&p->known, v, v));
            if (v->value) PROA_TRY(proa__hash_map_put(&p->concrete, v->value, v));
        }
    }
    forget_lost_lod(p);
    return PROA_OK;
}

/* ---- ops, inputs, outputs -------------------------------------------------------------- */

proa_status proa__block_take(proa_block *b, const proa_op *op, void *args)
{
    proa_instr instr = {op, args, b->program->role, b->program->marks, proa__op_device};
    proa_status status = proa__reserve(&b->ops, b->n_ops, &b->ops_capacity, sizeof *b->ops);
    if (status != PROA_OK) proa__instr_clear(&instr);
    else b->ops[b->n_ops++] = instr;
    b->program->version++;
    return status;
}

typedef struct binding {
    proa_block *block;
    const proa_op *op;
} binding;

static proa_status bind_slot(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const binding *to = context;
    (void)index;
    if (proa__slot_empty(*slot)) return PROA_OK;
    proa_var *v = proa__var_of(to->block, *slot, to->op, f->name);
    if (!v) return proa_error();
    proa__slot_set(slot, v->handle);
    return PROA_OK;
}

proa_status proa__block_append(proa_block *b, const proa_op *op, const void *args)
{
    PROA_TRY(proa_error());
    proa_instr instr = {.op = op, .args = proa__args_copy(op, args)};
    if (!instr.args) return proa_error();
    binding to = {b, op};
    proa_status status = proa__args_visit_reads(op, instr.args, bind_slot, &to);
    if (status == PROA_OK) status = proa__args_visit(op, instr.args, PROA_OUT, bind_slot, &to);
    if (status == PROA_OK) return proa__block_take(b, op, instr.args);
    proa__instr_clear(&instr);
    return status;
}

/* Sets a block's inputs or outputs. Inputs may be stale variables, since they are fed before anything is
 * overwritten, but each only once. */
static proa_status set_list(proa_block *b, bool input, proa_var *const *vars, int32_t n, proa_var ***list,
                            int32_t *count)
{
    PROA_TRY(proa_error());
    const char *what = input ? "input" : "output";
    for (int32_t i = 0; i < n; i++) {
        if (!vars[i] || proa__hash_map_find(&b->program->known, vars[i]) != vars[i])
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program: %s %d is no variable of it", what, i);
        if (vars[i]->block != b->index && !(vars[i]->persistable && !input))
            return proa_fail(
                PROA_ERR_INVALID_ARGUMENT,
                "program: %s %d (%s) is in block %d, a branch's or a loop's body; expected one of "
                "block %d",
                what, i, vars[i]->name, vars[i]->block, b->index);
        for (int32_t k = 0; input && k < i; k++)
            if (vars[k] == vars[i])
                return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program: inputs %d and %d are both %s", k, i,
                                 vars[i]->name);
        if (vars[i]->stale && !input)
            return proa_fail(PROA_ERR_BAD_STATE,
                             "program: %s %d (%s) shares memory with a tensor that was changed in place",
                             what, i, vars[i]->name);
    }
    proa_var **copy = proa__alloc(((size_t)n + 1) * sizeof *copy);
    if (!copy) return proa_error();
    for (int32_t i = 0; i < n; i++) copy[i] = vars[i];
    proa__free(*list);
    *list = copy;
    *count = n;
    b->program->version++;
    return PROA_OK;
}

proa_status proa__block_set_inputs(proa_block *b, proa_var *const *vars, int32_t n)
{
    PROA_TRY(set_list(b, true, vars, n, &b->inputs, &b->n_inputs));
    for (int32_t i = 0; i < b->n_vars; i++) b->vars[i]->is_input = false;
    for (int32_t i = 0; i < n; i++) vars[i]->is_input = true;
    return PROA_OK;
}

proa_status proa__block_set_outputs(proa_block *b, proa_var *const *vars, int32_t n)
{
    return set_list(b, false, vars, n, &b->outputs, &b->n_outputs);
}

int64_t proa_program_input_count(const proa_program *p) { return p ? proa__root(p)->n_inputs : 0; }
int64_t proa_program_output_count(const proa_program *p) { return p ? proa__root(p)->n_outputs : 0; }

static const proa_tensor *nth(proa_var *const *vars, int64_t i, int32_t n, const char *what)
{
    if (i >= 0 && i < n) return vars[i]->handle;
    proa_fail(PROA_ERR_OUT_OF_RANGE, "program: %s %lld of %d", what, (long long)i, n);
    return NULL;
}

const proa_tensor *proa_program_input(const proa_program *p, int64_t i)
{
    return p ? nth(proa__root(p)->inputs, i, proa__root(p)->n_inputs, "input") : NULL;
}

const proa_tensor *proa_program_output(const proa_program *p, int64_t i)
{
    return p ? nth(proa__root(p)->outputs, i, proa__root(p)->n_outputs, "output") : NULL;
}

/* ---- printing --------------------------------------------------------------------------- */

static void print_var(FILE *to, const proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    fputs(v ? v->name : "none", to);
}

static void print_ints(FILE *to, const proa_ints *v)
{
    if (v->tensor) {
        print_var(to, v->tensor);
        return;
    }
    fputc('[', to);
    for (int64_t i = 0; i < v->count; i++) {
        if (i) fputs(", ", to);
        if (v->tensors && v->tensors[i]) print_var(to, v->tensors[i]);
        else fprintf(to, "%lld", (long long)(v->at ? v->at[i] : 0));
    }
    fputc(']', to);
}

static void print_scalar(FILE *to, const proa_scalar *v)
{
    switch (v->kind) {
    case PROA_SCALAR_BOOL: fputs(v->i ? "true" : "false", to); break;
    case PROA_SCALAR_INT: fprintf(to, "%lld", (long long)v->i); break;
    case PROA_SCALAR_FLOAT: fprintf(to, "%.9g", v->f); break;
    case PROA_SCALAR_COMPLEX: fprintf(to, "%.9g%+.9gi", v->f, v->im); break;
    case PROA_SCALAR_TENSOR: print_var(to, v->tensor); break;
    default: fputs("none", to); break;
    }
}

static void print_field(FILE *to, const proa_field *f, const void *at)
{
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_TENSOR: print_var(to, *(proa_tensor *const *)at); break;
    case PROA_FIELD_TENSORS: {
        const proa_tensors *list = at;
        fputc('[', to);
        for (int64_t i = 0; i < list->count; i++) {
            if (i) fputs(", ", to);
            print_var(to, list->at[i]);
        }
        fputc(']', to);
        break;
    }
    case PROA_FIELD_BOOL: fputs(*(const bool *)at ? "true" : "false", to); break;
    case PROA_FIELD_INT: fprintf(to, "%lld", (long long)*(const int64_t *)at); break;
    case PROA_FIELD_FLOAT: fprintf(to, "%.9g", *(const double *)at); break;
    case PROA_FIELD_DTYPE: fputs(proa_dtype_name(*(const proa_dtype *)at), to); break;
    case PROA_FIELD_ENUM: fputs(f->choices[*(const int *)at], to); break;
    case PROA_FIELD_INTS: print_ints(to, at); break;
    case PROA_FIELD_FLOATS: {
        const proa_floats *v = at;
        fputc('[', to);
        for (int64_t i = 0; i < v->count; i++) fprintf(to, "%s%.9g", i ? ", " : "", v->at[i]);
        fputc(']', to);
        break;
    }
    case PROA_FIELD_STRING: {
        const char *s = *(const char *const *)at;
        fprintf(to, "\"%s\"", s ? s : "");
        break;
    }
    case PROA_FIELD_STRINGS: {
        const proa_strings *v = at;
        fputc('[', to);
        for (int64_t i = 0; i < v->count; i++) fprintf(to, "%s\"%s\"", i ? ", " : "", v->at[i]);
        fputc(']', to);
        break;
    }
    case PROA_FIELD_SCALAR: print_scalar(to, at); break;
    case PROA_FIELD_STEPS: proa__print_steps(to, at); break;
    case PROA_FIELD_BLOCK: {
        const proa_block *b = *(proa_block *const *)at;
        fprintf(to, "block %d", b ? b->index : -1);
        break;
    }
    }
}

static proa_status print_output(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (v) fprintf(context, " %s: %s", v->name, proa__tensor_text(v->handle));
    return PROA_OK;
}

static void print_instr(FILE *to, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    fputs("   ", to);
    proa__args_visit(op, instr->args, PROA_OUT, print_output, to);
    fprintf(to, " = %s(", op->name);
    for (int i = 0; i < op->n_in + op->n_attr; i++) {
        const proa_field *f = &op->fields[i];
        fprintf(to, "%s%s=", i ? ", " : "", f->name);
        print_field(to, f, proa_field_at(f, instr->args));
    }
    fputs(")\n", to);
}

static void print_block(const proa_block *b, FILE *to)
{
    fprintf(to, "block %d (parent %d)\n", b->index, b->parent);
    for (int32_t i = 0; i < b->n_inputs; i++)
        fprintf(to, "    input %s: %s\n", b->inputs[i]->name, proa__tensor_text(b->inputs[i]->handle));
    for (int32_t i = 0; i < b->n_vars; i++)
        if (b->vars[i]->persistable)
            fprintf(to, "    persistable %s: %s\n", b->vars[i]->name, proa__tensor_text(b->vars[i]->handle));
    for (int32_t i = 0; i < b->n_ops; i++) print_instr(to, &b->ops[i]);
    for (int32_t i = 0; i < b->n_outputs; i++) fprintf(to, "    output %s\n", b->outputs[i]->name);
}

proa_status proa_program_print(const proa_program *p, FILE *to)
{
    PROA_TRY(proa_error());
    if (!p || !to) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_print: NULL");
    for (int32_t k = 0; k < p->n_blocks; k++) print_block(p->blocks[k], to);
    return ferror(to) ? proa_fail(PROA_ERR_IO, "program_print: writing failed") : PROA_OK;
}
