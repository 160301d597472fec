/* Implements proa_predictor (an executor of a shared model, with a handle for each input and output), its
 * clones, and pools of them. May use core, jit and ops. */
#include "runtime.h"

#include "core/device.h"
#include "core/thread.h"
#include "jit/plan/executor.h"

#include <proa/profile.h>

/* ---- making and freeing ----------------------------------------------------------------- */

static proa_executor *new_executor(const proa__model *m)
{
    return proa_executor_with(m->program, (proa_executor_opts){.frozen = true, .passes = ""});
}

static proa_handle *new_handles(proa_predictor *p, const proa_tensor **variables, int32_t n, bool are_inputs)
{
    proa_handle *handles = proa__calloc(((size_t)n + 1) * sizeof *handles);
    for (int32_t i = 0; handles && i < n; i++) {
        handles[i].owner = p;
        handles[i].name = are_inputs ? variables[i]->name : p->model->output_names[i];
        handles[i].variable = variables[i];
        handles[i].is_input = are_inputs;
        handles[i].wanted.ndim = -1;
    }
    return handles;
}

/* Makes a predictor; takes over the caller's reference to the model. NULL on error. */
static proa_predictor *new_predictor(proa__model *m)
{
    proa_predictor *p = proa__calloc(sizeof *p);
    if (!p) {
        proa__model_release(m);
        return NULL;
    }
    atomic_init(&p->refs, 1);
    p->model = m;
    size_t n_fed = (size_t)m->n_feeds + 1, n_into = (size_t)proa_program_output_count(m->program) + 1;
    p->inputs = new_handles(p, m->inputs, m->n_inputs, true);
    p->outputs = new_handles(p, m->outputs, m->n_outputs, false);
    p->fed = proa__calloc(n_fed * sizeof *p->fed);
    p->into = proa__calloc(n_into * sizeof *p->into);
    if (p->inputs && p->outputs && p->fed && p->into) p->executor = new_executor(m);
    if (p->executor) return p;
    proa_predictor_free(p);
    return NULL;
}

proa_predictor *proa_predictor_new(proa_config *c)
{
    if (proa_error() != PROA_OK) return NULL;
    const char *wrong = !c                               ? "the config is NULL"
                        : c->used                        ? "each config can only be used for one predictor: "
                                                           "copy it, or clone the predictor"
                        : !c->numbers[PROA_CONFIG_VALID] ? "the config is invalid"
                                                         : NULL;
    if (wrong) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "create_predictor: %s", wrong);
        return NULL;
    }
    proa__model *m = proa__model_new(c);
    proa_predictor *p = m ? new_predictor(m) : NULL;
    if (!p) return NULL;
    c->used = true;
    if (m->profile && !proa_profile_is_on()) p->profiles = proa_profile_start() == PROA_OK;
    return p;
}

proa_predictor *proa_predictor_clone(const proa_predictor *p)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!p) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "clone: the predictor is NULL");
        return NULL;
    }
    atomic_fetch_add(&p->model->refs, 1);
    return new_predictor(p->model);
}

proa_predictor *proa_predictor_retain(proa_predictor *p)
{
    if (p) atomic_fetch_add(&p->refs, 1);
    return p;
}

static void release_tensors(proa_predictor *p)
{
    for (int32_t i = 0; p->inputs && i < p->model->n_inputs; i++) proa__handle_clear(&p->inputs[i]);
    for (int32_t i = 0; p->outputs && i < p->model->n_outputs; i++) proa__handle_clear(&p->outputs[i]);
}

void proa_predictor_free(proa_predictor *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
    if (p->profiles) {
        proa_profile_stop();
        proa_profile_print(stdout, PROA_PROFILE_BY_TOTAL, NULL);
    }
    release_tensors(p);
    proa_executor_free(p->executor);
    proa__free(p->inputs);
    proa__free(p->outputs);
    proa__free(p->fed);
    proa__free(p->into);
    proa__model_release(p->model);
    proa__free(p);
}

/* ---- queries ---------------------------------------------------------------------------- */

const proa_program *proa_predictor_program(const proa_predictor *p) { return p ? p->model->program : NULL; }

int64_t proa_predictor_input_count(const proa_predictor *p) { return p ? p->model->n_inputs : 0; }

int64_t proa_predictor_output_count(const proa_predictor *p) { return p ? p->model->n_outputs : 0; }

static proa_handle *at(const char *what, proa_handle *handles, int64_t n, int64_t i)
{
    if (proa_error() != PROA_OK) return NULL;
    if (i >= 0 && i < n) return &handles[i];
    proa_fail(PROA_ERR_OUT_OF_RANGE, "predictor: there are %lld %ss, got index %lld", (long long)n, what,
              (long long)i);
    return NULL;
}

proa_handle *proa_predictor_input(const proa_predictor *p, int64_t i)
{
    return at("input", p ? p->inputs : NULL, proa_predictor_input_count(p), i);
}

proa_handle *proa_predictor_output(const proa_predictor *p, int64_t i)
{
    return at("output", p ? p->outputs : NULL, proa_predictor_output_count(p), i);
}

static proa_handle *find(const char *what, proa_handle *handles, int64_t n, const char *name)
{
    char known[512] = "";
    size_t used = 0;
    if (proa_error() != PROA_OK) return NULL;
    for (int64_t i = 0; i < n; i++) {
        if (name && strcmp(proa_handle_name(&handles[i]), name) == 0) return &handles[i];
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     proa_handle_name(&handles[i]));
    }
    proa_fail(PROA_ERR_NOT_FOUND, "predictor: the model has no %s '%s'; it has: %s", what,
              name ? name : "(NULL)", known);
    return NULL;
}

proa_handle *proa_predictor_find_input(const proa_predictor *p, const char *name)
{
    return find("input", p ? p->inputs : NULL, proa_predictor_input_count(p), name);
}

proa_handle *proa_predictor_find_output(const proa_predictor *p, const char *name)
{
    return find("output", p ? p->outputs : NULL, proa_predictor_output_count(p), name);
}

/* ---- running ---------------------------------------------------------------------------- */

static proa_status gather(proa_predictor *p)
{
    const proa__model *m = p->model;
    for (int32_t i = 0; i < m->n_feeds; i++) {
        proa_handle *h = &p->inputs[m->feeds[i].input];
        p->fed[i] =
            m->feeds[i].level < 0 ? proa__handle_feed(h) : proa__handle_feed_lod(h, m->feeds[i].level);
        if (!p->fed[i]) return proa_error();
    }
    return PROA_OK;
}

/* Chooses the tensors into which the next run may write its outputs: shared memory of the caller, or the last
 * outputs if nothing else refers to them. */
static void offer_memory(proa_predictor *p)
{
    for (int32_t i = 0; i < p->model->n_outputs; i++) {
        const proa_handle *h = &p->outputs[i];
        proa_tensor *t = h->tensor;
        bool free_to_write =
            t &&
            (h->shared || (atomic_load(&t->refs) == 1 && t->storage && atomic_load(&t->storage->refs) == 1));
        p->into[i] = free_to_write ? t : NULL;
    }
}

static proa_status hand_over(proa_predictor *p, proa_tensors results)
{
    const proa__model *m = p->model;
    for (int32_t i = 0; i < m->n_outputs; i++) {
        proa_handle *h = &p->outputs[i];
        if (h->shared && results.at[i] != h->tensor)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "run: output '%s' is %s, but the memory that was shared with it is %s",
                             proa_handle_name(h), proa__tensor_text(results.at[i]),
                             proa__tensor_text(h->tensor));
        proa__handle_yield(h, results.at[i]);
        for (int32_t k = 0; k < m->n_lod[i]; k++)
            PROA_TRY(proa__handle_yield_lod(h, k, results.at[m->first_lod[i] + k]));
    }
    return PROA_OK;
}

/* Goes on with another model: one of the same inputs and outputs. */
static proa_status turn_to(proa_predictor *p, proa__model *m)
{
    proa_executor *fresh =
        m->n_inputs == p->model->n_inputs && m->n_outputs == p->model->n_outputs ? new_executor(m) : NULL;
    if (!fresh) {
        proa__model_release(m);
        return proa_error();
    }
    proa_executor_free(p->executor);
    p->executor = fresh;
    proa__executor_set_hook(fresh, p->hook, p->hook_context);
    for (int32_t i = 0; i < m->n_inputs; i++)
        p->inputs[i].variable = m->inputs[i], p->inputs[i].name = m->inputs[i]->name;
    for (int32_t i = 0; i < m->n_outputs; i++)
        p->outputs[i].variable = m->outputs[i], p->outputs[i].name = m->output_names[i];
    proa__model_release(p->model);
    p->model = m;
    return PROA_OK;
}

/* Takes a model of other lengths if the values need one. Where there is none, the executor says what is
 * wrong. */
static proa_status fit(proa_predictor *p)
{
    proa__model *wide = proa__model_widened(p->model, p->fed);
    if (!wide) proa_clear_error();
    return wide ? turn_to(p, wide) : PROA_OK;
}

static proa_status run(proa_predictor *p)
{
    PROA_SCOPED;
    PROA_TRY(gather(p));
    PROA_TRY(fit(p));
    offer_memory(p);
    proa_tensors fed = {p->model->n_feeds, p->fed};
    proa_tensors results = proa__executor_run_inside(p->executor, fed, NULL, p->into);
    PROA_TRY(proa_error());
    return hand_over(p, results);
}

proa_status proa_predictor_run(proa_predictor *p)
{
    PROA_TRY(proa_error());
    if (!p) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "run: the predictor is NULL");
    proa_program *open = proa_program_open(NULL);
    bool fixed = p->model->threads >= 1;
    int before = fixed ? proa__threads_own(p->model->threads) : 0;
    proa_status status = run(p);
    if (fixed) proa__threads_own(before);
    if (open) proa_program_open(open);
    return status;
}

proa_status proa_predictor_clear(proa_predictor *p)
{
    PROA_TRY(proa_error());
    if (p) release_tensors(p);
    return p ? PROA_OK : proa_fail(PROA_ERR_INVALID_ARGUMENT, "clear: the predictor is NULL");
}

int64_t proa_predictor_shrink(proa_predictor *p)
{
    if (proa_error() != PROA_OK) return 0;
    if (!p) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "shrink: the predictor is NULL");
        return 0;
    }
    int64_t freed = proa_executor_get_stats(p->executor).arena_bytes;
    proa_executor *fresh = new_executor(p->model);
    if (!fresh) return 0;
    proa_executor_free(p->executor);
    p->executor = fresh;
    proa__executor_set_hook(fresh, p->hook, p->hook_context);
    proa_memory_trim();
    return freed;
}

proa_executor_stats proa_predictor_get_stats(const proa_predictor *p)
{
    return proa_executor_get_stats(p ? p->executor : NULL);
}

proa_status proa_predictor_set_hook(proa_predictor *p, proa_predictor_hook hook, void *context)
{
    PROA_TRY(proa_error());
    if (!p) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "set_hook: the predictor is NULL");
    p->hook = hook;
    p->hook_context = context;
    proa__executor_set_hook(p->executor, hook, context);
    return PROA_OK;
}

/* ---- pools ------------------------------------------------------------------------------ */

struct proa_pool {
    proa_predictor **at;
    int64_t size;
};

proa_pool *proa_pool_new(proa_config *c, int64_t size)
{
    if (proa_error() != PROA_OK) return NULL;
    if (size < 1 || size > 1 << 20) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "pool: expected at least one predictor, got %lld",
                  (long long)size);
        return NULL;
    }
    proa_pool *pool = proa__calloc(sizeof *pool);
    if (pool) pool->at = proa__calloc((size_t)size * sizeof(proa_predictor *));
    while (pool && pool->at && pool->size < size) {
        proa_predictor *made = pool->size ? proa_predictor_clone(pool->at[0]) : proa_predictor_new(c);
        if (!made) break;
        pool->at[pool->size++] = made;
    }
    if (pool && pool->size == size) return pool;
    proa_pool_free(pool);
    return NULL;
}

void proa_pool_free(proa_pool *pool)
{
    if (!pool) return;
    for (int64_t i = 0; i < pool->size; i++) proa_predictor_free(pool->at[i]);
    proa__free(pool->at);
    proa__free(pool);
}

proa_predictor *proa_pool_at(const proa_pool *pool, int64_t i)
{
    if (proa_error() != PROA_OK) return NULL;
    if (pool && i >= 0 && i < pool->size) return pool->at[i];
    proa_fail(PROA_ERR_OUT_OF_RANGE, "pool: there are %lld predictors, got index %lld",
              pool ? (long long)pool->size : 0LL, (long long)i);
    return NULL;
}
