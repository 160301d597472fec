/* Saves and loads checkpoints of a training run: the states of a layer, an optimizer, a gradient scaler and a
 * loader, and of the random generator, in one file. May use core, nn, optim, amp and io. */
#include "core/internal.h"
#include "core/tensor.h"

#include <proa/io.h>

/* Longest name of an item, its prefix included. */
enum { NAME = 1024 };

typedef proa_status (*item_fn)(proa_state *s, const char *name, proa_tensor *t);

static proa_status put(proa_state *s, const char *name, proa_tensor *t) { return proa_state_put(s, name, t); }

/* Compares an item's shape and dtype with those of the tensor that it will be copied to. All items are
 * checked before any is copied. */
static proa_status check(proa_state *s, const char *name, proa_tensor *t)
{
    const proa_tensor *from = proa_state_get(s, name);
    if (!from) return proa_error();
    bool same = from->dtype == t->dtype && from->ndim == t->ndim;
    for (int i = 0; same && i < from->ndim; i++) same = from->shape[i] == t->shape[i];
    if (same) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "checkpoint: '%s' is %s in the file and %s here: it belongs to another model", name,
                     proa__tensor_text(from), proa__tensor_text(t));
}

static proa_status copy(proa_state *s, const char *name, proa_tensor *t)
{
    return proa_state_copy_to(s, name, t);
}

static proa_status each_of(proa_state *s, const char *prefix, proa_named_list list, item_fn fn)
{
    PROA_TRY(proa_error());
    for (int64_t i = 0; i < list.count; i++) {
        char name[NAME];
        int n = snprintf(name, sizeof name, "%s/%s", prefix, list.at[i].name);
        if (n < 0 || n >= NAME)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "checkpoint: a name is longer than %d bytes", NAME);
        PROA_TRY(fn(s, name, list.at[i].tensor));
    }
    return PROA_OK;
}

/* Renames the optimizer's accumulators by their position in its state, since the counters in parameter names
 * depend on what a process made before: "linear_3.w_0_moment1_0", the fifth of them, becomes
 * "4_w_0_moment1_0". */
static proa_named_list by_position(proa_optimizer *opt)
{
    proa_named_list list = proa_optimizer_state(opt);
    for (int64_t i = 0; i < list.count && !proa_error(); i++) {
        const char *name = list.at[i].name, *dot = strrchr(name, '.');
        char *text = proa_scope_alloc(strlen(name) + 24);
        if (text) snprintf(text, strlen(name) + 24, "%lld_%s", (long long)i, dot ? dot + 1 : name);
        list.at[i].name = text;
    }
    return list;
}

static proa_status each_tensor(proa_state *s, proa_layer *layer, proa_optimizer *opt, proa_scaler *scaler,
                               item_fn fn)
{
    PROA_SCOPED;
    if (layer) PROA_TRY(each_of(s, "layer", proa_layer_state(layer), fn));
    if (opt) PROA_TRY(each_of(s, "optimizer", by_position(opt), fn));
    if (scaler) PROA_TRY(each_of(s, "scaler", proa_scaler_state(scaler), fn));
    return PROA_OK;
}

/* ---- saving ---------------------------------------------------------------------------- */

static proa_status put_numbers(proa_state *s, proa_optimizer *opt, const proa_checkpoint_opts *o)
{
    proa_rng_state rng = proa_rng_get();
    PROA_TRY(proa_state_put_int(s, "rng/seed", (int64_t)rng.seed));
    PROA_TRY(proa_state_put_int(s, "rng/offset", (int64_t)rng.offset));
    if (opt) {
        const proa_schedule *schedule = proa_optimizer_schedule(opt);
        PROA_TRY(schedule ? proa_state_put_int(s, "schedule/epoch", proa_schedule_epoch(schedule))
                          : proa_state_put_float(s, "optimizer/lr", proa_get_lr(opt)));
    }
    if (o->loader) {
        proa_position p = proa_loader_position(o->loader);
        PROA_TRY(proa_state_put_int(s, "loader/seed", (int64_t)p.seed));
        PROA_TRY(proa_state_put_int(s, "loader/epoch", p.epoch));
        PROA_TRY(proa_state_put_int(s, "loader/next", p.next));
    }
    for (int i = 0; i < o->n_numbers; i++) {
        char name[32];
        snprintf(name, sizeof name, "numbers/%d", i);
        PROA_TRY(proa_state_put_int(s, name, o->numbers[i]));
    }
    return PROA_OK;
}

proa_status proa_checkpoint_save_opt(const char *path, proa_layer *layer, proa_optimizer *opt,
                                     proa_checkpoint_opts opts)
{
    PROA_TRY(proa_error());
    if (!path || !layer)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "checkpoint_save: path and layer must be given");
    proa_state *s = proa_state_new();
    if (!s) return proa_error();
    proa_status status = each_tensor(s, layer, opt, opts.scaler, put);
    if (status == PROA_OK) status = put_numbers(s, opt, &opts);
    if (status == PROA_OK) status = proa_state_save(s, path);
    proa_state_free(s);
    return status;
}

/* ---- loading --------------------------------------------------------------------------- */

typedef struct numbers {
    int64_t seed, offset, epoch;
    double lr;
    proa_position position;
    int64_t loader_seed;
} numbers;

static proa_status read_numbers(const proa_state *s, proa_optimizer *opt, const proa_checkpoint_opts *o,
                                numbers *n)
{
    PROA_TRY(proa_state_get_int(s, "rng/seed", &n->seed));
    PROA_TRY(proa_state_get_int(s, "rng/offset", &n->offset));
    if (opt)
        PROA_TRY(proa_optimizer_schedule(opt) ? proa_state_get_int(s, "schedule/epoch", &n->epoch)
                                              : proa_state_get_float(s, "optimizer/lr", &n->lr));
    if (o->loader) {
        PROA_TRY(proa_state_get_int(s, "loader/seed", &n->loader_seed));
        PROA_TRY(proa_state_get_int(s, "loader/epoch", &n->position.epoch));
        PROA_TRY(proa_state_get_int(s, "loader/next", &n->position.next));
        n->position.seed = (uint64_t)n->loader_seed;
    }
    for (int i = 0; i < o->n_numbers; i++) {
        char name[32];
        int64_t unused;
        snprintf(name, sizeof name, "numbers/%d", i);
        PROA_TRY(proa_state_get_int(s, name, &unused));
    }
    return PROA_OK;
}

static proa_status restore(proa_state *s, proa_layer *layer, proa_optimizer *opt,
                           const proa_checkpoint_opts *o)
{
    numbers n = {0};
    PROA_TRY(each_tensor(s, layer, opt, o->scaler, check));
    PROA_TRY(read_numbers(s, opt, o, &n));
    if (o->loader) PROA_TRY(proa_loader_set_position(o->loader, n.position));
    PROA_TRY(each_tensor(s, layer, opt, o->scaler, copy));
    if (opt && proa_optimizer_schedule(opt)) proa_schedule_seek(proa_optimizer_schedule(opt), n.epoch);
    else if (opt) PROA_TRY(proa_set_lr(opt, n.lr));
    for (int i = 0; i < o->n_numbers; i++) {
        char name[32];
        snprintf(name, sizeof name, "numbers/%d", i);
        PROA_TRY(proa_state_get_int(s, name, &o->numbers[i]));
    }
    proa_rng_set((proa_rng_state){(uint64_t)n.seed, (uint64_t)n.offset});
    return proa_error();
}

proa_status proa_checkpoint_load_opt(const char *path, proa_layer *layer, proa_optimizer *opt,
                                     proa_checkpoint_opts opts)
{
    PROA_TRY(proa_error());
    if (!path || !layer)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "checkpoint_load: path and layer must be given");
    PROA_SCOPED;
    proa_state *s = proa_state_load(path);
    if (!s) return proa_error();
    proa_status status = restore(s, layer, opt, &opts);
    proa_state_free(s);
    return status;
}
