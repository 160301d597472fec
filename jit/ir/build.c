/* The public API for building, inspecting and changing programs call by call. May use core and ops. */
#include "program.h"

#include "core/internal.h"

#include <proa/autograd.h>
#include "core/args_visit.h"

proa_program *proa_program_new(void) { return proa__program_new(); }

static proa_status need(const proa_program *p, const char *who)
{
    PROA_TRY(proa_error());
    return p ? PROA_OK : proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the program is NULL", who);
}

proa_program *proa_program_open(proa_program *p)
{
    proa_block *was = proa__capture_into(p ? p->blocks[p->current] : NULL);
    return was ? was->program : NULL;
}

proa_program *proa_program_current(void)
{
    proa_block *b = proa__capture_block();
    return b ? b->program : NULL;
}

int32_t proa_program_set_role(proa_program *p, int32_t role)
{
    if (!p) return 0;
    int32_t was = p->role;
    p->role = role;
    return was;
}

/* ---- variables ------------------------------------------------------------------------- */

proa_tensor *proa_program_data(proa_program *p, const proa_input_spec *spec)
{
    if (need(p, "program_data") != PROA_OK) return NULL;
    if (!spec) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_data: needs the spec of the input");
        return NULL;
    }
    proa_block *b = proa__root(p);
    proa_var *v = spec->name ? proa__hash_map_find(&b->names, spec->name) : NULL;
    if (v && v->unmade) v->unmade = false; /* declared before: it keeps its shape and dtype */
    else v = proa__input_new(b, spec, b->n_inputs);
    if (!v) return NULL;
    proa_var **all = proa_scope_alloc(((size_t)b->n_inputs + 1) * sizeof *all);
    if (!all) return NULL;
    for (int32_t i = 0; i < b->n_inputs; i++) all[i] = b->inputs[i];
    all[b->n_inputs] = v;
    return proa__block_set_inputs(b, all, b->n_inputs + 1) == PROA_OK ? proa__var_tensor(v) : NULL;
}

proa_tensor *proa_program_persistable(proa_program *p, const char *name, proa_ints shape, proa_dtype dtype)
{
    proa_meta meta;
    if (need(p, "program_persistable") != PROA_OK) return NULL;
    if (proa__meta_from_shape("program_persistable", shape, dtype ? dtype : PROA_F32, &meta) != PROA_OK)
        return NULL;
    proa_var *v = proa__var_new(proa__root(p), name, &meta);
    if (!v) return NULL;
    v->persistable = true;
    p->version++;
    return proa__var_tensor(v);
}

proa_tensor *proa_program_declare(proa_program *p, const proa_input_spec *spec)
{
    if (need(p, "program_declare") != PROA_OK) return NULL;
    if (!spec || !spec->name) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_declare: needs a spec with a name");
        return NULL;
    }
    proa_var *v = proa__input_new(proa__root(p), spec, 0);
    if (!v) return NULL;
    v->unmade = true;
    return proa__var_tensor(v);
}

bool proa_program_is_declared(const proa_program *p, const char *name)
{
    const proa_var *v = p && name ? proa__var_find(p->blocks[p->current], name) : NULL;
    return v && v->unmade;
}

proa_status proa_program_define(proa_program *p, const char *name, const proa_tensor *made)
{
    PROA_TRY(need(p, "program_define"));
    proa_var *v = name ? proa__hash_map_find(&proa__root(p)->names, name) : NULL;
    proa_var *by = made && proa_is_symbolic(made) ? proa__var_behind(p, made) : NULL;
    if (!v || !v->unmade || !by || by->block != v->block || by->persistable || by->is_input || by->unmade)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "program_define: '%s' must be a declared variable, and made what an op of the same "
                         "block makes",
                         name ? name : "");
    proa__var_define(proa__root(p), v, by);
    return PROA_OK;
}

proa_status proa_program_follow(const proa_program *p, proa_tensor *t, const char *name)
{
    PROA_TRY(need(p, "program_follow"));
    const proa_var *v = name ? proa__var_find(p->blocks[p->current], name) : NULL;
    if (!v || !t || !proa_is_symbolic(t))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_follow: needs a symbolic tensor and a variable");
    proa__var_show(t, v);
    return proa_set_name(t, v->name);
}

/* The persistable variable of that name, or NULL. */
static proa_var *persistable(const proa_program *p, const char *name)
{
    proa_var *v = name ? proa__var_find(proa__root(p), name) : NULL;
    return v && v->persistable ? v : NULL;
}

proa_status proa_program_bind(proa_program *p, const char *name, proa_tensor *value)
{
    PROA_TRY(need(p, "program_bind"));
    proa_var *v = persistable(p, name);
    if (!v)
        return proa_fail(PROA_ERR_NOT_FOUND, "program_bind: there is no persistable variable '%s'",
                         name ? name : "");
    if (value == v->value) return PROA_OK;
    p->version++;
    return proa__var_set_value(proa__root(p), v, value);
}

proa_tensor *proa_program_value(const proa_program *p, const char *name)
{
    proa_var *v = p ? persistable(p, name) : NULL;
    return v ? v->value : NULL;
}

proa_status proa_program_to_device(proa_program *p, const char *device)
{
    PROA_TRY(proa_error());
    if (!p) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_to_device: the program is NULL");
    PROA_SCOPED;
    PROA_NO_GRAD;
    for (int32_t k = 0; k < p->n_blocks; k++)
        for (int32_t i = 0; i < p->blocks[k]->n_vars; i++) {
            proa_tensor *value = p->blocks[k]->vars[i]->value;
            if (!p->blocks[k]->vars[i]->persistable || !value) continue;
            proa_tensor *there = proa_to_device(value, device);
            if (!there) return proa_error();
            proa__tensor_assign(value, there);
        }
    return PROA_OK;
}

proa_tensor *proa_program_find(const proa_program *p, const char *name)
{
    proa_var *v = p && name ? proa__var_find(proa__root(p), name) : NULL;
    return v ? proa__var_tensor(v) : NULL;
}

const char *proa_program_name_of(const proa_program *p, const proa_tensor *t)
{
    const proa_var *v = p && t ? proa__var_behind(p, t) : NULL;
    return v ? v->name : NULL;
}

proa_status proa_program_trim(proa_program *p)
{
    PROA_TRY(need(p, "program_trim"));
    p->version++;
    return proa__program_prune(p, false);
}

proa_status proa_program_rename(proa_program *p, const char *name, const char *to)
{
    PROA_TRY(need(p, "program_rename"));
    proa_var *v = name ? proa__var_find(proa__root(p), name) : NULL;
    if (!v)
        return proa_fail(PROA_ERR_NOT_FOUND, "program_rename: there is no variable '%s'", name ? name : "");
    return proa__var_rename(proa__root(p), v, to);
}

proa_status proa_program_stop_gradient(proa_program *p, const proa_tensor *t, bool stop)
{
    PROA_TRY(need(p, "program_stop_gradient"));
    proa_var *v = t && proa_is_symbolic(t) ? proa__var_behind(p, t) : NULL;
    if (!v) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_stop_gradient: no variable of this program");
    v->stop_gradient = stop;
    return PROA_OK;
}

proa_status proa_program_mark_parameter(proa_program *p, const char *name, bool parameter)
{
    PROA_TRY(need(p, "program_mark_parameter"));
    proa_var *v = persistable(p, name);
    if (!v)
        return proa_fail(PROA_ERR_NOT_FOUND, "program_mark_parameter: there is no persistable variable '%s'",
                         name ? name : "");
    v->is_parameter = parameter;
    return PROA_OK;
}

/* ---- inputs and outputs ---------------------------------------------------------------- */

/* The variables behind tensors: symbolic handles of p, or concrete tensors of persistables of p. */
static proa_var **vars_of(proa_program *p, proa_tensors list, const char *who)
{
    proa_var **vars = proa_scope_alloc(((size_t)list.count + 1) * sizeof *vars);
    for (int64_t i = 0; vars && i < list.count; i++) {
        proa_tensor *t = list.at[i];
        if (proa__slot_empty(t)) {
            proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: entry %lld is %s", who, (long long)i,
                      t ? "PROA_NONE" : "NULL");
            return NULL;
        }
        vars[i] = proa__var_behind(p, t);
        if (vars[i]) continue;
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: entry %lld is no variable of this program", who,
                  (long long)i);
        return NULL;
    }
    return vars;
}

proa_status proa_program_set_outputs(proa_program *p, proa_tensors outputs)
{
    PROA_TRY(need(p, "program_set_outputs"));
    proa_var **vars = vars_of(p, outputs, "program_set_outputs");
    return vars ? proa__block_set_outputs(proa__root(p), vars, (int32_t)outputs.count) : proa_error();
}

proa_status proa_program_set_inputs(proa_program *p, proa_tensors inputs)
{
    PROA_TRY(need(p, "program_set_inputs"));
    proa_var **vars = vars_of(p, inputs, "program_set_inputs");
    return vars ? proa__block_set_inputs(proa__root(p), vars, (int32_t)inputs.count) : proa_error();
}

/* ---- lists ----------------------------------------------------------------------------- */

uint64_t proa_program_version(const proa_program *p) { return p ? p->version : 0; }

int64_t proa_program_block_count(const proa_program *p) { return p ? p->n_blocks : 0; }

static const proa_block *nth_block(const proa_program *p, int64_t i)
{
    if (p && i >= 0 && i < p->n_blocks) return p->blocks[i];
    proa_fail(PROA_ERR_OUT_OF_RANGE, "program: block %lld of %d", (long long)i, p ? p->n_blocks : 0);
    return NULL;
}

int64_t proa_program_block_parent(const proa_program *p, int64_t block)
{
    const proa_block *b = nth_block(p, block);
    return b ? b->parent : -1;
}

int64_t proa_program_var_count(const proa_program *p, int64_t block)
{
    const proa_block *b = nth_block(p, block);
    return b ? b->n_vars : 0;
}

proa_status proa_program_var(const proa_program *p, int64_t block, int64_t i, proa_var_info *info)
{
    const proa_block *b = nth_block(p, block);
    if (!b) return proa_error();
    if (i < 0 || i >= b->n_vars)
        return proa_fail(PROA_ERR_OUT_OF_RANGE, "program: variable %lld of %d", (long long)i, b->n_vars);
    const proa_var *v = b->vars[i];
    *info = (proa_var_info){v->name,          v->handle,        v->persistable, v->is_input,
                            v->value != NULL, v->stop_gradient, v->is_parameter};
    return PROA_OK;
}

int64_t proa_program_op_count(const proa_program *p, int64_t block)
{
    const proa_block *b = nth_block(p, block);
    return b ? b->n_ops : 0;
}

const char *proa_program_op(const proa_program *p, int64_t block, int64_t i, int32_t *role)
{
    const proa_block *b = nth_block(p, block);
    if (!b) return NULL;
    if (i < 0 || i >= b->n_ops) {
        proa_fail(PROA_ERR_OUT_OF_RANGE, "program: op %lld of %d", (long long)i, b->n_ops);
        return NULL;
    }
    if (role) *role = b->ops[i].role;
    return b->ops[i].op->name;
}
