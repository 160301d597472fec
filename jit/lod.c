/* Sequences in programs: which variables hold the offsets of a variable's levels (Paddle's LoD). Offsets are
 * ordinary variables that ops take and make; only which belong to whom is noted beside them. May use core
 * and ops. */
#include "program.h"

#include "core/internal.h"

#include <stdio.h>

void proa__lod_share(proa_var *v, const proa_var *like)
{
    v->lod_level = like->lod_level;
    memcpy(v->lod, like->lod, sizeof v->lod);
}

static proa_status check_levels(const char *who, int64_t n)
{
    if (n >= 0 && n <= PROA__LOD_MAX) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: %lld levels of sequences; expected 0 to %d", who,
                     (long long)n, PROA__LOD_MAX);
}

proa_status proa__lod_declare(proa_block *b, proa_var *v, int32_t levels)
{
    PROA_TRY(check_levels("program_data", levels));
    PROA_SCOPED;
    proa_var **inputs = proa_scope_alloc(((size_t)b->n_inputs + (size_t)levels + 1) * sizeof *inputs);
    char *name = proa_scope_alloc(strlen(v->name) + 16);
    if (!inputs || !name) return proa_error();
    memcpy(inputs, b->inputs, (size_t)b->n_inputs * sizeof *inputs);
    v->lod_level = levels;
    for (int32_t i = 0; i < levels; i++) {
        proa_meta meta = {.dtype = PROA_I64, .ndim = 1, .shape = {-1}};
        sprintf(name, "%s@LOD_%d", v->name, i);
        v->lod[i] = inputs[b->n_inputs + i] = proa__var_new(b, name, &meta);
        if (!v->lod[i]) return proa_error();
        v->lod[i]->is_lod = true;
    }
    return proa__block_set_inputs(b, inputs, b->n_inputs + levels);
}

proa_status proa_program_data_lod(proa_program *p, const proa_tensor *data, int32_t levels)
{
    PROA_TRY(proa_error());
    proa_var *v = p && data ? proa__var_behind(p, data) : NULL;
    if (v && v->is_input && v->block == 0 && !v->lod[0]) return proa__lod_declare(proa__root(p), v, levels);
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "program_data_lod: needs an input of the program without levels");
}

static proa_status need_variable(const char *who, const proa_tensor *t)
{
    PROA_TRY(proa_error());
    if (t && proa_is_symbolic(t) && t->var) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: needs a variable of a program", who);
}

proa_tensors proa_variable_lod(const proa_tensor *variable)
{
    proa_tensors levels = {0, NULL}, none = {0, NULL};
    if (need_variable("variable_lod", variable) != PROA_OK) return none;
    const proa_var *v = variable->var;
    levels.at = proa_scope_alloc(PROA__LOD_MAX * sizeof *levels.at);
    if (!levels.at) return none;
    for (int32_t i = 0; i < v->lod_level && i < PROA__LOD_MAX && v->lod[i]; i++) {
        levels.at[levels.count] = proa__var_tensor(v->lod[i]);
        if (!levels.at[levels.count++]) return none;
    }
    return levels;
}

proa_status proa_set_variable_lod(proa_tensor *variable, proa_tensors levels)
{
    PROA_TRY(need_variable("set_variable_lod", variable));
    PROA_TRY(check_levels("set_variable_lod", levels.count));
    proa_var *v = variable->var;
    for (int64_t i = 0; i < levels.count; i++) PROA_TRY(need_variable("set_variable_lod", levels.at[i]));
    memset(v->lod, 0, sizeof v->lod);
    v->lod_level = (int32_t)levels.count;
    for (int64_t i = 0; i < levels.count; i++) {
        v->lod[i] = levels.at[i]->var;
        v->lod[i]->is_lod = true;
    }
    return PROA_OK;
}
