/* Sequences in programs (Paddle's LoD): notes which variables hold the sequence offsets of each level of a
 * variable. Offsets are ordinary variables that ops read and write. May use core and ops. */
#include "program.h"

#include "core/internal.h"

#include <stdio.h>

proa_status proa__lod_reserve(proa_var *v)
{
    if (!v->lod) v->lod = proa__calloc(PROA__LOD_MAX * sizeof *v->lod);
    return v->lod ? PROA_OK : proa_error();
}

proa_var *proa__lod_level(const proa_var *v, int64_t level)
{
    if (level < 0) level += v->lod_level;
    return v->lod && level >= 0 && level < v->lod_level && level < PROA__LOD_MAX ? v->lod[level] : NULL;
}

proa_status proa__lod_share(proa_var *v, const proa_var *like)
{
    PROA_TRY(proa__lod_reserve(v));
    v->lod_level = like->lod_level;
    memcpy(v->lod, like->lod, PROA__LOD_MAX * sizeof *v->lod);
    return PROA_OK;
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
    PROA_TRY(proa__lod_reserve(v));
    v->lod_level = (uint8_t)levels;
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
    if (v && v->is_input && v->block == 0 && !v->lod) return proa__lod_declare(proa__root(p), v, levels);
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "program_data_lod: needs an input of the program without levels");
}

/* The variable that t stands for in p (NULL: in the program that is open). */
static proa_var *variable_of(const char *who, const proa_program *p, const proa_tensor *t)
{
    if (proa_error() != PROA_OK) return NULL;
    const proa_block *open = proa__capture_block();
    if (!p && open) p = open->program;
    proa_var *v = p && t && proa_is_symbolic(t) ? proa__var_behind(p, t) : NULL;
    if (!v) proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: needs a variable of the program", who);
    return v;
}

proa_tensors proa_variable_lod(const proa_program *p, const proa_tensor *variable)
{
    proa_tensors levels = {0, NULL}, none = {0, NULL};
    const proa_var *v = variable_of("variable_lod", p, variable);
    if (!v) return none;
    levels.at = proa_scope_alloc(PROA__LOD_MAX * sizeof *levels.at);
    if (!levels.at) return none;
    for (proa_var *of; (of = proa__lod_level(v, levels.count)) != NULL; levels.count++)
        if (!(levels.at[levels.count] = proa__var_tensor(of))) return none;
    return levels;
}

proa_status proa_set_variable_lod(proa_program *p, proa_tensor *variable, proa_tensors levels)
{
    proa_var *v = variable_of("set_variable_lod", p, variable), *of[PROA__LOD_MAX] = {NULL};
    if (!v) return proa_error();
    PROA_TRY(check_levels("set_variable_lod", levels.count));
    for (int64_t i = 0; i < levels.count; i++)
        if (!(of[i] = variable_of("set_variable_lod", p, levels.at[i]))) return proa_error();
    if (levels.count) PROA_TRY(proa__lod_reserve(v));
    if (v->lod) memcpy(v->lod, of, sizeof of);
    v->lod_level = (uint8_t)levels.count;
    for (int64_t i = 0; i < levels.count; i++) of[i]->is_lod = true;
    return PROA_OK;
}
