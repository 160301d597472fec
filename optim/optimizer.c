/* Optimizers: parameter groups, accumulators, and the step, which collects the parameters with gradients per
 * group and dtype and passes each list to one multi-tensor op. Uses optim/optimizer.h. */
#include "optim/optimizer.h"

#include "core/device.h"
#include "ops/optimizer/kind.h"
#include "ops/selected_rows/selected_rows.h"

#include <proa/create.h>

#include <math.h>

typedef struct group {
    double lr_scale, weight_decay;
} group;

/* A parameter and its optimizer state. All tensors are kept. */
typedef struct entry {
    proa_tensor *param, *master;         /* master: float32 copy of a half parameter; lazily made */
    proa_tensor *slots[PROA__SLOTS_MAX]; /* accumulators, in the order of the kind's slots */
    int32_t group;
} entry;

/* Arguments of one multi-tensor op: lists of one length. They end with the scope. */
typedef struct batch {
    proa_tensors params, grads, masters, slots[PROA__SLOTS_MAX];
    proa_tensor *lr, *skip; /* skip: a bool tensor that cancels the step, or PROA_NONE */
    double weight_decay;
} batch;

struct proa_optimizer {
    const proa__optimizer_kind *kind;
    proa_optimizer_opts opts;          /* with defaults filled in */
    double numbers[PROA__NUMBERS_MAX]; /* the kind's hyperparameters; weight decay is the group's */
    int own_decay; /* the number that is weight decay; −1: the op has none, L2 is added to the gradient */
    int32_t n_groups;
    group *groups;
    int64_t count;
    entry *entries;
    proa_tensor **params; /* all entries' parameters, for proa_optimizer_parameters */
};

/* ---- making ---------------------------------------------------------------------------- */

static double option(double v, double fallback) { return v == 0 ? fallback : v == (double)PROA_ZERO ? 0 : v; }

static const proa__optimizer_kind *find_kind(const char *name)
{
    for (const proa__optimizer_kind *const *k = proa__optimizer_kinds; name && *k; k++)
        if (strcmp((*k)->name, name) == 0) return *k;
    proa_fail(PROA_ERR_NOT_FOUND, "optimizer: there is no \"%s\"; there are %s", name ? name : "NULL",
              proa__optimizer_names);
    return NULL;
}

/* The options that steps use, by name. */
static const struct {
    const char *name;
    size_t at;
    bool is_switch;
    double fallback; /* value of a kind without this option: passes the checks */
} known[] = {
    {"weight_decay", offsetof(proa_optimizer_opts, weight_decay), false, 0},
    {"momentum", offsetof(proa_optimizer_opts, momentum), false, 0},
    {"nesterov", offsetof(proa_optimizer_opts, nesterov), true, 0},
    {"beta1", offsetof(proa_optimizer_opts, beta1), false, 0},
    {"beta2", offsetof(proa_optimizer_opts, beta2), false, 0},
    {"epsilon", offsetof(proa_optimizer_opts, epsilon), false, 0},
    {"rho", offsetof(proa_optimizer_opts, rho), false, 0},
    {"centered", offsetof(proa_optimizer_opts, centered), true, 0},
    {"lazy_mode", offsetof(proa_optimizer_opts, lazy_mode), true, 0},
};

static const proa__optimizer_number *number_of(const proa__optimizer_kind *kind, const char *option_name)
{
    for (int i = 0; i < kind->n_numbers; i++)
        if (kind->numbers[i].option && strcmp(kind->numbers[i].option, option_name) == 0)
            return &kind->numbers[i];
    return NULL;
}

/* Replaces zeros by defaults, and copies the arguments of the kind's op to opt->numbers. */
static void resolve(proa_optimizer *opt)
{
    const proa__optimizer_kind *kind = opt->kind;
    opt->own_decay = -1;
    opt->opts.lr = option(opt->opts.lr, 0.001);
    for (int i = 0; i < kind->n_numbers; i++) opt->numbers[i] = kind->numbers[i].fallback;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const proa__optimizer_number *n = number_of(kind, known[i].name);
        void *at = (char *)&opt->opts + known[i].at;
        if (!known[i].is_switch) *(double *)at = option(*(double *)at, n ? n->fallback : known[i].fallback);
        if (!n) continue;
        opt->numbers[n - kind->numbers] = known[i].is_switch ? *(bool *)at : *(double *)at;
        if (i == 0) opt->own_decay = (int)(n - kind->numbers);
    }
}

static proa_status check(const char *kind, const proa_optimizer_opts *o)
{
    bool betas = o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1;
    if (betas && o->lr >= 0 && o->weight_decay >= 0 && o->epsilon >= 0 && o->rho >= 0) {
        if (o->clip.kind == PROA_CLIP_NONE || o->clip.max > 0) return PROA_OK;
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: clip.max is %g, expected a positive number", kind,
                         o->clip.max);
    }
    return proa_fail(
        PROA_ERR_INVALID_ARGUMENT,
        "%s: lr %g, weight_decay %g, beta1 %g, beta2 %g, epsilon %g, rho %g: none may be negative, "
        "and betas must be below 1",
        kind, o->lr, o->weight_decay, o->beta1, o->beta2, o->epsilon, o->rho);
}

static bool is_half(const proa_tensor *t) { return t->dtype == PROA_F16 || t->dtype == PROA_BF16; }
static bool is_float(const proa_tensor *t) { return t->dtype >= PROA_F16 && t->dtype <= PROA_F64; }

static proa_tensor *new_slot(const proa_optimizer *opt, const proa__optimizer_slot *slot, proa_tensor *param)
{
    const proa_optimizer_opts *o = &opt->opts;
    int device __attribute__((cleanup(proa__device_back), unused)) =
        proa_device_use(proa__device_id(param)); /* a parameter's state is on its device */
    proa_ints shape = {param->ndim, param->shape, NULL, NULL};
    proa_dtype dtype = is_half(param) ? PROA_F32 : (proa_dtype)param->dtype;
    switch (slot->start) {
    case PROA__START_BETA1: return proa_full(PROA_SHAPE(1), o->beta1, .dtype = PROA_F32);
    case PROA__START_BETA2: return proa_full(PROA_SHAPE(1), o->beta2, .dtype = PROA_F32);
    case PROA__START_INITIAL_VALUE: return proa_full(shape, o->initial_value, .dtype = dtype);
    case PROA__START_ZERO: break;
    }
    return proa_full(shape, 0.0, .dtype = dtype);
}

/* True unless the slot's switch is off. */
static bool is_kept(const proa_optimizer *opt, const proa__optimizer_slot *slot)
{
    for (int i = 0; slot->when && i < opt->kind->n_numbers; i++)
        if (opt->kind->numbers[i].at == slot->when) return opt->numbers[i] != 0;
    return true;
}

static proa_status fill_entry(proa_optimizer *opt, entry *e)
{
    for (int i = 0; i < opt->kind->n_slots; i++) {
        if (!is_kept(opt, &opt->kind->slots[i])) continue;
        proa_tensor *t = new_slot(opt, &opt->kind->slots[i], e->param);
        if (!t) return proa_error();
        e->slots[i] = proa_keep(t);
    }
    return PROA_OK;
}

static bool is_listed(const proa_tensor *t, proa_tensor *const *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] == t) return true;
    return false;
}

static proa_status check_params(const proa_optimizer *opt, proa_tensors params)
{
    const char *kind = opt->kind->name;
    if (params.count < 0 || (params.count && !params.at))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: params is no list", kind);
    for (int64_t i = 0; i < params.count; i++) {
        proa_tensor *p = params.at[i];
        if (!p || p == proa_none || p->kind != PROA_DENSE || !is_float(p) || p->flags & PROA_T_STRIDED ||
            proa_is_symbolic(p))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "%s: parameter %lld is %s; expected a contiguous floating tensor", kind,
                             (long long)i, p ? proa__tensor_text(p) : "NULL");
        if (is_listed(p, opt->params, opt->count) || is_listed(p, params.at, i))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "%s: parameter %lld (%s) is in a group already; a step would change it twice",
                             kind, (long long)i, p->name ? p->name : "unnamed");
    }
    return PROA_OK;
}

/* Frees the entries from index `first` on. */
static void drop_entries(proa_optimizer *opt, int64_t first)
{
    while (opt->count > first) {
        const entry *e = &opt->entries[--opt->count];
        for (int i = 0; i < PROA__SLOTS_MAX; i++) proa_release(e->slots[i]);
        proa_release(e->master);
        proa_release(e->param);
    }
}

proa_status proa_add_group_opt(proa_optimizer *opt, proa_tensors params, proa_group_opts opts)
{
    PROA_TRY(proa_error());
    if (!opt) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "add_group: opt is NULL: did making it fail?");
    PROA_TRY(check_params(opt, params));
    PROA_SCOPED;
    PROA_NO_GRAD;
    size_t n = (size_t)(opt->count + params.count), groups = (size_t)opt->n_groups + 1;
    group *g = proa__realloc(opt->groups, groups * sizeof *g);
    if (!g) return proa_error();
    opt->groups = g;
    entry *entries = proa__realloc(opt->entries, (n + 1) * sizeof *entries);
    if (!entries) return proa_error();
    opt->entries = entries;
    proa_tensor **list = proa__realloc(opt->params, (n + 1) * sizeof *list);
    if (!list) return proa_error();
    opt->params = list;
    int64_t before = opt->count;
    g[opt->n_groups] = (group){option(opts.lr_scale, 1), option(opts.weight_decay, opt->opts.weight_decay)};
    for (int64_t i = 0; i < params.count; i++) {
        entry *e = &opt->entries[opt->count];
        *e = (entry){.param = proa_keep(params.at[i]), .group = opt->n_groups};
        opt->params[opt->count++] = params.at[i];
        if (fill_entry(opt, e) == PROA_OK) continue;
        drop_entries(opt, before);
        return proa_error();
    }
    opt->n_groups++;
    return PROA_OK;
}

proa_optimizer *proa_optimizer_new(const char *kind, proa_tensors params, proa_optimizer_opts opts)
{
    const proa__optimizer_kind *found = proa_error() ? NULL : find_kind(kind);
    proa_optimizer *opt = found ? proa__calloc(sizeof *opt) : NULL;
    if (!opt) {
        proa_schedule_free(opts.schedule);
        return NULL;
    }
    opt->kind = found;
    opt->opts = opts;
    resolve(opt);
    if (check(kind, &opt->opts) == PROA_OK && proa_add_group(opt, params) == PROA_OK) return opt;
    proa_optimizer_free(opt);
    return NULL;
}

void proa_optimizer_free(proa_optimizer *opt)
{
    if (!opt) return;
    drop_entries(opt, 0);
    proa_schedule_free(opt->opts.schedule);
    proa__free(opt->entries);
    proa__free(opt->params);
    proa__free(opt->groups);
    proa__free(opt);
}

/* ---- the step -------------------------------------------------------------------------- */

/* Half parameters are updated in float32; a parameter may have become half after the optimizer was made. */
static proa_status ensure_master(entry *e)
{
    if (e->master || !is_half(e->param)) return PROA_OK;
    PROA_SCOPED;
    proa_tensor *t = proa_cast(e->param, PROA_F32);
    if (!t) return proa_error();
    e->master = proa_keep(t);
    return PROA_OK;
}

/* L2 regularization: the gradient of weight_decay / 2 · |param|². */
static proa_tensor *decayed(proa_tensor *grad, const entry *e, double weight_decay)
{
    proa_tensor *p = e->master && grad->dtype == PROA_F32 ? e->master : e->param;
    if (proa_is_rows(grad))
        return proa__rows_add(proa_scale(p, .scale = PROA_SCALAR(weight_decay)), grad, true);
    return proa_add(grad, proa_scale(p, .scale = PROA_SCALAR(weight_decay)));
}

static proa_tensor *rate(double lr, proa_dtype dtype)
{
    float single = (float)lr;
    if (dtype == PROA_F64) return proa_from_data(&lr, PROA_SHAPE(1), PROA_F64);
    return proa_from_data(&single, PROA_SHAPE(1), PROA_F32);
}

static proa_status new_lists(batch *b, int64_t n)
{
    proa_tensors *lists[PROA__SLOTS_MAX + 3] = {&b->params, &b->grads, &b->masters};
    for (int i = 0; i < PROA__SLOTS_MAX; i++) lists[3 + i] = &b->slots[i];
    for (int i = 0; i < PROA__SLOTS_MAX + 3; i++) {
        lists[i]->at = proa_scope_alloc((size_t)(n + 1) * sizeof(proa_tensor *));
        lists[i]->count = 0;
        if (!lists[i]->at) return proa_error();
    }
    return PROA_OK;
}

/* Operands of a step: the parameters that have gradients, and these gradients, clipped. */
typedef struct work {
    int64_t count;
    entry **entries;
    proa_tensors grads;
    proa_tensor *skip;
} work;

static bool is_in_batch(const entry *e, int32_t group_index, int dtype)
{
    return e->group == group_index && e->param->dtype == dtype;
}

/* Calls the kind's op. */
static proa_status apply(const proa_optimizer *opt, const batch *b)
{
    const proa__optimizer_kind *kind = opt->kind;
    _Alignas(16) char args[PROA__STEP_ARGS_MAX] = {0};
    *proa__list_at(args, kind->params_at) = b->params;
    *proa__list_at(args, kind->grads_at) = b->grads;
    *proa__list_at(args, kind->masters_at) = b->masters;
    *proa__tensor_at(args, kind->learning_rate_at) = b->lr;
    *proa__tensor_at(args, kind->skip_update_at) = b->skip;
    for (int i = 0; i < kind->n_slots; i++) *proa__list_at(args, kind->slots[i].at) = b->slots[i];
    for (int i = 0; i < kind->n_numbers; i++)
        proa__set_number(args, &kind->numbers[i], i == opt->own_decay ? b->weight_decay : opt->numbers[i]);
    return proa_call_op(kind->op, args);
}

static proa_status step_batch(proa_optimizer *opt, const work *w, int32_t group_index, int dtype)
{
    /* nothing is allocated for an empty batch: the batch before it has been applied, and a failure now could
     * not be undone */
    bool any = false;
    for (int64_t i = 0; i < w->count && !any; i++) any = is_in_batch(w->entries[i], group_index, dtype);
    if (!any) return PROA_OK;
    const group *g = &opt->groups[group_index];
    bool adds_l2 = opt->own_decay < 0 && g->weight_decay != 0;
    batch b = {.weight_decay = g->weight_decay, .skip = w->skip};
    PROA_TRY(new_lists(&b, w->count));
    for (int64_t i = 0; i < w->count; i++) {
        entry *e = w->entries[i];
        if (!is_in_batch(e, group_index, dtype)) continue;
        proa_tensor *grad = w->grads.at[i];
        if (adds_l2) grad = decayed(grad, e, g->weight_decay);
        if (!grad) return proa_error();
        b.params.at[b.params.count++] = e->param;
        b.grads.at[b.grads.count++] = grad;
        if (e->master) b.masters.at[b.masters.count++] = e->master;
        for (int j = 0; j < PROA__SLOTS_MAX; j++)
            if (e->slots[j]) b.slots[j].at[b.slots[j].count++] = e->slots[j];
    }
    b.lr = rate(proa_get_lr(opt) * g->lr_scale, (proa_dtype)dtype);
    return b.lr ? apply(opt, &b) : proa_error();
}

static proa_status gather(proa_optimizer *opt, work *w)
{
    w->entries = proa_scope_alloc((size_t)(opt->count + 1) * sizeof *w->entries);
    w->grads.at = proa_scope_alloc((size_t)(opt->count + 1) * sizeof *w->grads.at);
    if (!w->entries || !w->grads.at) return proa_error();
    for (int64_t i = 0; i < opt->count; i++) {
        entry *e = &opt->entries[i];
        proa_tensor *grad = proa_grad_of(e->param);
        if (!grad) return proa_error();
        if (grad == proa_none) continue;
        PROA_TRY(ensure_master(e));
        w->entries[w->count++] = e;
        w->grads.at[w->grads.count++] = grad;
    }
    return PROA_OK;
}

static proa_status step_keep(proa_optimizer *opt, proa_tensor *skip)
{
    PROA_TRY(proa_error());
    if (!opt) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "step: opt is NULL: did making it fail?");
    PROA_SCOPED;
    PROA_NO_GRAD;
    work w = {.skip = skip};
    PROA_TRY(gather(opt, &w));
    PROA_TRY(proa__clip_grads(opt->opts.clip, w.grads));
    for (int32_t g = 0; g < opt->n_groups; g++)
        for (int dtype = PROA_F16; dtype <= PROA_F64; dtype++) PROA_TRY(step_batch(opt, &w, g, dtype));
    return PROA_OK;
}

proa_status proa_step_keep(proa_optimizer *opt) { return step_keep(opt, proa_none); }

proa_status proa__step_unless(proa_optimizer *opt, proa_tensor *skip)
{
    PROA_TRY(step_keep(opt, skip));
    proa_clear_grads(opt);
    return proa_error();
}

proa_status proa_step(proa_optimizer *opt) { return proa__step_unless(opt, proa_none); }

void proa_clear_grads(proa_optimizer *opt)
{
    for (int64_t i = 0; opt && i < opt->count; i++) proa_clear_grad(opt->params[i]);
}

/* ---- accessors ------------------------------------------------------------------------- */

proa_tensors proa_optimizer_parameters(proa_optimizer *opt)
{
    return opt ? (proa_tensors){opt->count, opt->params} : (proa_tensors){0, NULL};
}

proa_schedule *proa_optimizer_schedule(const proa_optimizer *opt) { return opt ? opt->opts.schedule : NULL; }

double proa_get_lr(const proa_optimizer *opt)
{
    if (!opt) return 0;
    return opt->opts.schedule ? proa_schedule_lr(opt->opts.schedule) : opt->opts.lr;
}

proa_status proa_set_lr(proa_optimizer *opt, double lr)
{
    PROA_TRY(proa_error());
    if (!opt || !(lr >= 0))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "set_lr: needs an optimizer and a rate ≥ 0, got %g", lr);
    if (opt->opts.schedule)
        return proa_fail(PROA_ERR_BAD_STATE, "set_lr: this optimizer's rate follows a schedule; step that");
    opt->opts.lr = lr;
    return PROA_OK;
}

static const char *state_name(const entry *e, int64_t index, const char *slot)
{
    char stem[32];
    snprintf(stem, sizeof stem, "param_%lld", (long long)index);
    const char *param = e->param->name ? e->param->name : stem;
    size_t bytes = strlen(param) + strlen(slot) + 8;
    char *text = proa_scope_alloc(bytes);
    if (text) snprintf(text, bytes, "%s_%s_0", param, slot);
    return text;
}

proa_named_list proa_optimizer_state(proa_optimizer *opt)
{
    proa_named_list none = {0, NULL}, list = none;
    if (proa_error()) return none;
    if (!opt) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "optimizer_state: opt is NULL: did making it fail?");
        return none;
    }
    PROA_NO_GRAD;
    list.at = proa_scope_alloc((size_t)(opt->count * (PROA__SLOTS_MAX + 1) + 1) * sizeof *list.at);
    if (!list.at) return none;
    for (int64_t i = 0; i < opt->count; i++) {
        entry *e = &opt->entries[i];
        if (ensure_master(e) != PROA_OK) return none;
        for (int j = 0; j <= PROA__SLOTS_MAX; j++) {
            proa_tensor *t = j < PROA__SLOTS_MAX ? e->slots[j] : e->master;
            if (!t) continue;
            const char *name =
                state_name(e, i, j < PROA__SLOTS_MAX ? opt->kind->slots[j].state : "fp32_master");
            if (!name) return none;
            list.at[list.count++] = (proa_named){name, t, true};
        }
    }
    return list;
}
