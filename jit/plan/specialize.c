/* Makes executors on a private copy of a program, pruned to the inputs and outputs in use, and optimized. May
 * use core and ops. */
#include "plan.h"

#include "core/internal.h"
#include "jit/passes/passes.h"

/* The copy's variables for a user's list of the original's tensors. */
static proa_status copied(const proa_program *p, const proa__hash_map *map, proa_tensors list,
                          const char *what, proa_var ***vars)
{
    *vars = proa_scope_alloc(((size_t)list.count + 1) * sizeof **vars);
    if (!*vars) return proa_error();
    for (int64_t i = 0; i < list.count; i++) {
        const proa_tensor *t = list.at[i];
        const proa_var *v = t && t != proa_none ? proa__var_behind(p, t) : NULL;
        if (!v)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "executor: %s %lld is no variable of the program",
                             what, (long long)i);
        (*vars)[i] = proa__hash_map_find(map, v);
    }
    return PROA_OK;
}

static proa_status select_ends(const proa_program *p, proa_program *copy, const proa__hash_map *map,
                               const proa_executor_opts *opts)
{
    proa_var **vars;
    proa_block *root = proa__root(copy);
    if (opts->inputs.count) {
        PROA_TRY(copied(p, map, opts->inputs, "input", &vars));
        PROA_TRY(proa__block_set_inputs(root, vars, (int32_t)opts->inputs.count));
    }
    if (!opts->outputs.count) return PROA_OK;
    PROA_TRY(copied(p, map, opts->outputs, "output", &vars));
    return proa__block_set_outputs(root, vars, (int32_t)opts->outputs.count);
}

static proa_status specialize(const proa_program *p, proa_program *copy, const proa__hash_map *map,
                              const proa_executor_opts *opts)
{
    PROA_TRY(select_ends(p, copy, map, opts));
    if (opts->prune || proa__root(copy)->n_outputs) PROA_TRY(proa__program_prune(copy, !opts->prune));
    bool none = opts->passes && !*opts->passes;
    if (none && opts->frozen) PROA_TRY(proa__program_fold(copy, true));
    return proa__passes_run(copy, opts->passes, opts->frozen && !none);
}

proa_executor *proa_executor_with(const proa_program *p, proa_executor_opts opts)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!p) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "executor: the program is NULL");
        return NULL;
    }
    proa__hash_map map = {0};
    proa_program *copy = proa__program_copy(p, &map);
    proa_executor *e = NULL;
    PROA_SCOPE {
        if (copy && specialize(p, copy, &map, &opts) == PROA_OK)
            e = proa__executor_of(proa__root(copy), copy);
    }
    proa__hash_map_clear(&map);
    if (!e) proa_program_free(copy);
    return e;
}
