/* Runs programs: finds or makes the plan for the inputs' shapes, binds its handles to memory, and runs kernel
 * after kernel. Once warm, allocates only the outputs, and, for a forward that saves values in its arena,
 * that arena. May use core and ops. */
#include "executor.h"

#include "core/blocked.h"
#include "core/copy.h"
#include "core/device.h"
#include "core/thread.h"
#include "planner.h"
#include "core/args_visit.h"

/* With more kept outputs than this, packing buffers around them takes too long. */
enum { KEPT_INSIDE = 4096 };

/* ---- making and freeing ---------------------------------------------------------------- */

proa_executor *proa__executor_of(const proa_block *b, proa_program *own)
{
    proa_executor *e = proa__calloc(sizeof *e);
    if (!e) return NULL;
    e->block = b;
    e->fed.metas = proa__calloc(((size_t)b->n_inputs + 1) * sizeof *e->fed.metas);
    e->fed.formats = proa__calloc(((size_t)b->n_inputs + 1) * sizeof *e->fed.formats);
    e->fed.strides = proa__calloc(((size_t)b->n_inputs + 1) * sizeof *e->fed.strides);
    e->fed.strided = proa__calloc(((size_t)b->n_inputs + 1) * sizeof *e->fed.strided);
    e->fed.offsets = proa__calloc(((size_t)b->n_inputs + 1) * sizeof *e->fed.offsets);
    e->inputs = proa__calloc(((size_t)b->n_inputs + 1) * sizeof *e->inputs);
    e->outputs = proa__calloc(((size_t)b->n_outputs + 1) * sizeof *e->outputs);
    bool made = e->fed.metas && e->fed.formats && e->fed.strides && e->fed.strided && e->fed.offsets &&
                e->inputs && e->outputs;
    if (made && proa__liveness_find(&e->facts, b) == PROA_OK) {
        e->own = own;
        return e;
    }
    proa_executor_free(e);
    return NULL;
}

int64_t proa__executor_inputs(const proa_executor *e) { return e->block->n_inputs; }

void proa__executor_keep(proa_executor *e, int32_t n, proa_executor *next)
{
    e->facts.n_handed = e->block->n_outputs - n;
    e->lends = true;
    e->next = n <= KEPT_INSIDE ? next : NULL;
}

proa_executor *proa_executor_new(const proa_program *p)
{
    if (proa_error() != PROA_OK) return NULL;
    if (p && proa__root(p)->n_outputs > 0) return proa__executor_of(proa__root(p), NULL);
    proa_fail(PROA_ERR_INVALID_ARGUMENT, "executor: needs a program with outputs");
    return NULL;
}

void proa_executor_free(proa_executor *e)
{
    if (!e) return;
    for (int32_t i = 0; i < e->n_plans; i++) proa__segment_free(e->plans[i].root);
    proa__free(e->plans);
    for (int32_t i = 0; i < e->n_arenas; i++)
        if (e->arenas[i].storage) proa__storage_release(e->arenas[i].storage);
    proa__liveness_free(&e->facts);
    proa__free(e->arenas);
    proa__free(e->key);
    proa__free(e->fed.metas);
    proa__free(e->fed.formats);
    proa__free(e->fed.strides);
    proa__free(e->fed.strided);
    proa__free(e->fed.offsets);
    proa__free(e->inputs);
    proa__free(e->outputs);
    proa__free(e->path);
    proa_program_free(e->own);
    proa__free(e);
}

proa_executor_stats proa_executor_get_stats(const proa_executor *e)
{
    proa_executor_stats s = {0, 0, 0, 0};
    if (!e) return s;
    for (int32_t i = 0; i < e->n_arenas; i++) s.arena_bytes += e->arenas[i].bytes;
    s.plans = e->n_plans;
    s.plans_made = e->plans_made;
    s.overlapped = e->overlapped;
    return s;
}

/* ---- keys ------------------------------------------------------------------------------ */

static proa_status make_capacity(proa_executor *e, size_t bytes)
{
    if (e->key_capacity - e->key_bytes >= bytes && e->key) return PROA_OK;
    size_t capacity = (e->key_bytes + bytes) * 2 + 256;
    char *grown = proa__realloc(e->key, capacity);
    if (!grown) return proa_error();
    e->key = grown;
    e->key_capacity = capacity;
    return PROA_OK;
}

static proa_status put(proa_executor *e, const void *data, size_t bytes)
{
    PROA_TRY(make_capacity(e, bytes));
    if (bytes) memcpy(e->key + e->key_bytes, data, bytes);
    e->key_bytes += bytes;
    return PROA_OK;
}

static proa_status put_meta(proa_executor *e, const proa_tensor *t, int format, bool strided)
{
    char head[5] = {(char)t->dtype, (char)t->ndim, (char)format, (char)(format >> 8), strided};
    PROA_TRY(put(e, head, sizeof head));
    PROA_TRY(put(e, t->shape, (size_t)t->ndim * sizeof *t->shape));
    return strided ? put(e, t->strides, (size_t)t->ndim * sizeof *t->strides) : PROA_OK;
}

/* Records the metadata of input i, which is t in `format`, and adds it to the key. */
static proa_status note_input(proa_executor *e, int32_t i, const proa_tensor *t, int format, bool strided)
{
    e->fed.metas[i] = proa_meta_of(t);
    e->fed.formats[i] = format;
    e->fed.strided[i] = strided;
    if (strided) memcpy(e->fed.strides[i], t->strides, (size_t)t->ndim * sizeof *t->strides);
    return put_meta(e, t, format, strided);
}

/* True if input i is used without a contiguous copy: t is strided, and some op that reads it takes any
 * strides. */
static bool stays_strided(const proa_executor *e, int32_t i, const proa_tensor *t)
{
    if (!(t->flags & PROA_T_STRIDED) || t->flags & PROA_T_BLOCKED) return false;
    for (int d = 0; d < t->ndim; d++)
        if (t->strides[d] < 0) return false;
    return !proa__must_be_dense(&e->facts, e->block->inputs[i]);
}

/* Begins the key with the settings that the choice of kernels depends on, apart from the inputs. */
static proa_status start_key(proa_executor *e, bool inside)
{
    int64_t settings[6] = {proa_threads(),
                           proa__flag_int(PROA_FLAG_cpu_level),
                           (int64_t)proa__stream()->device << 1 | proa__flag_int(PROA_FLAG_device_fallback),
                           (proa__flag_int(PROA_FLAG_deterministic) != 0) << 2 |
                               (proa__flag_int(PROA_FLAG_blocked) != 0) << 1 |
                               (proa__flag_int(PROA_FLAG_winograd) != 0),
                           proa__flag_int(PROA_FLAG_backends),
                           inside};
    e->fed.inside = inside;
    e->key_bytes = 0;
    return put(e, settings, sizeof settings);
}

static bool holds(const proa__guard *g)
{
    if (proa__format(g->tensor) != g->format) return false;
    if (g->same_data && proa__version(g->tensor) != g->version) return false;
    if (g->packed) return g->tensor->storage == g->packed;
    return (g->format ? proa__blocked_data(g->tensor) : proa__data_now(g->tensor)) == g->data;
}

static bool matches(const proa_executor *e, const proa__segment *s)
{
    if (s->key_bytes != e->key_bytes || memcmp(s->key, e->key, e->key_bytes) != 0) return false;
    for (int32_t i = 0; i < s->n_guards; i++)
        if (!holds(&s->guards[i])) return false;
    return true;
}

/* ---- inputs ---------------------------------------------------------------------------- */

static proa_status check_input(const proa_executor *e, int32_t i, const proa_tensor *t)
{
    const proa_var *v = e->block->inputs[i];
    const proa_tensor *h = v->handle;
    if (!t || proa__absent(t))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "executor: input %d (%s) is %s", i, v->name,
                         t ? "PROA_NONE" : "NULL");
    if (t->flags & (PROA_T_SYMBOLIC | PROA_T_META | PROA_T_NOT_DENSE))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "executor: input %d (%s) must be a dense tensor with data", i, v->name);
    bool fits = t->dtype == h->dtype && t->ndim == h->ndim;
    for (int d = 0; fits && d < h->ndim; d++) fits = h->shape[d] < 0 || h->shape[d] == t->shape[d];
    if (fits) return PROA_OK;
    return proa_fail(t->dtype == h->dtype ? PROA_ERR_INVALID_ARGUMENT : PROA_ERR_WRONG_TYPE,
                     "executor: input %d (%s) must be %s, got %s", i, v->name, proa__tensor_text(h),
                     proa__tensor_text(t));
}

static proa_status take_inputs(proa_executor *e, proa_tensors inputs)
{
    const proa_block *p = e->block;
    if (inputs.count != p->n_inputs || (inputs.count && !inputs.at))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "executor: the program has %d inputs, got %lld",
                         p->n_inputs, (long long)inputs.count);
    PROA_TRY(start_key(e, e->inside));
    for (int32_t i = 0; i < p->n_inputs; i++) {
        PROA_TRY(check_input(e, i, inputs.at[i]));
        if (proa__device_id(inputs.at[i]) != proa__stream()->device && inputs.at[i]->numel != 1)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "executor: input %d (%s) is on %s, another is on %s; move it (proa_to_device)",
                             i, p->inputs[i]->name, proa_device_of(inputs.at[i]), proa_get_device());
        if (!proa__format(inputs.at[i])) PROA_TRY(proa__plain(inputs.at[i]));
        bool in_place =
            proa__device_id(inputs.at[i]) == proa__stream()->device && stays_strided(e, i, inputs.at[i]);
        e->inputs[i] = in_place ? inputs.at[i] : proa__copy_to(inputs.at[i], proa__stream()->device);
        if (!e->inputs[i]) return proa_error();
        const proa_tensor *t = e->inputs[i];
        PROA_TRY(note_input(e, i, t, proa__format(t), in_place));
        bool there = e->inside && proa__storage_behind(t) == e->inside;
        e->fed.offsets[i] = there ? proa__memory(t) - e->inside->data : -1;
    }
    return e->inside ? put(e, e->fed.offsets, (size_t)p->n_inputs * sizeof *e->fed.offsets) : PROA_OK;
}

/* ---- running --------------------------------------------------------------------------- */

/* The step that is passing through the watch door; the run door takes its kernel from here. */
static _Thread_local const proa__step *watched;

/* Copies between layouts; with `from` NULL sets the padding of `to` to zero. */
static proa_status convert_layout(proa_tensor *to, const proa_tensor *from)
{
    if (!from) return proa__zero_padding(to) ? PROA_OK : PROA_ERR_INTERNAL;
    if (proa__format(to)) {
        if (!proa__format(from)) PROA_TRY(proa__plain(from));
        return proa__convert_blocked(from, proa__format(from), proa__memory(from), proa__format(to),
                                     proa__blocked_data(to));
    }
    if (!proa__format(from)) return proa__copy(to, from);
    if (!proa__on_device(to)) return proa__blocked_copy_out(from, to->data);
    return proa__convert_blocked(from, proa__format(from), proa__memory(from), 0, to->data);
}

static inline proa_status run_picked(const proa__step *step)
{
    proa_run run = {.state = step->state, .stream = proa__stream(), .fresh = step->fresh};
    if (run.stream->device != PROA_CPU)
        return proa__run_picked(step->op, step->args, step->kernel, step->state, step->fresh);
    return step->kernel->run(step->args, &run);
}

static proa_status run_watched(proa_call *call)
{
    const proa__step *step = watched;
    if (!step || call->args != step->args) return proa__dispatch(call);
    watched = NULL; /* ops that the kernel itself calls are not steps */
    proa_status status = run_picked(step);
    if (proa__thread_self) proa__thread_self->ran = step->kernel;
    return status;
}

proa_status proa__executor_step(const proa__step *step, bool watch)
{
    if (!step->op) return convert_layout(step->to, step->from);
    if (!watch) return run_picked(step);
    bool was = proa_door_set(PROA_DOOR_RUN, true);
    watched = step;
    proa_status status = proa_call_from(PROA_DOOR_WATCH, step->op, step->args);
    watched = NULL;
    proa_door_set(PROA_DOOR_RUN, was);
    return status;
}

__attribute__((constructor)) static void install(void) { proa_door_install(PROA_DOOR_RUN, run_watched); }

static proa_status each_step(proa__segment *s, bool watch)
{
    for (int32_t i = 0; i < s->n_steps; i++) {
        PROA_TRY(proa__executor_step(&s->steps[i], watch));
        PROA_TRY(proa_error());
    }
    return PROA_OK;
}

static proa_status run_steps(proa_executor *e, proa__segment *s)
{
    bool watch = proa_door_is_open(PROA_DOOR_WATCH) || proa__watching();
    if (proa__executor_overlaps(e, s)) PROA_TRY(proa__executor_overlap(e, s, watch));
    else if (watch || proa__stream()->device == PROA_CPU) PROA_TRY(each_step(s, watch));
    else PROA_TRY(proa__run_device_graph(s, each_step));
    for (int32_t i = 0; i < s->n_written; i++) proa__bump_unguarded(s->written[i]);
    return PROA_OK;
}

void proa__executor_announce(proa_executor *e) { e->facts.announces = true; }

void proa__executor_set_early(proa_executor *e, proa__executor_early early, void *context)
{
    e->early = early;
    e->early_context = context;
}

void proa__executor_set_hook(proa_executor *e, proa__executor_hook hook, void *context)
{
    e->hook = hook;
    e->hook_context = context;
}

/* Calls the hook for each output of a step, with the name of its variable. */
static proa_status show_outputs(const proa_executor *e, const proa__segment *s, const proa__step *step)
{
    proa_tensor **slot;
    for (int64_t k = 0; step->op && (slot = proa__out_slot(step->op, step->args, k, NULL)); k++) {
        const proa_tensor *t = *slot;
        for (int32_t i = 0; !proa__slot_empty(t) && i < e->facts.n_vars; i++) {
            if (s->values[i].handle != t) continue;
            PROA_TRY(proa__plain(t));
            e->hook(step->op->name, e->block->vars[i]->name, t, e->hook_context);
            break;
        }
    }
    return proa_error();
}

static proa_status run_shown(const proa_executor *e, proa__segment *s)
{
    bool watch = proa_door_is_open(PROA_DOOR_WATCH) || proa__watching();
    for (int32_t i = 0; i < s->n_steps; i++) {
        PROA_TRY(proa__executor_step(&s->steps[i], watch));
        PROA_TRY(show_outputs(e, s, &s->steps[i]));
    }
    for (int32_t i = 0; i < s->n_written; i++) proa__bump_unguarded(s->written[i]);
    return PROA_OK;
}

static proa_status visit_segment(proa_executor *e, proa__segment *s)
{
    PROA_TRY(proa__reserve(&e->path, e->n_path, &e->path_capacity, sizeof *e->path));
    e->path[e->n_path++] = s;
    PROA_TRY(proa__executor_point(e, s));
    return e->hook ? run_shown(e, s) : run_steps(e, s);
}

/* Makes the key of a cut's outcome: shapes that the last op made, and values that attributes will need. */
static proa_status cut_key(proa_executor *e, const proa__segment *s)
{
    e->key_bytes = 0;
    if (s->sized_by_data) {
        const proa__step *step = &s->steps[s->n_steps - 1];
        proa_tensor **slot;
        for (int64_t k = 0; (slot = proa__out_slot(step->op, step->args, k, NULL)); k++)
            PROA_TRY(proa__slot_empty(*slot) ? put(e, "-", 1) : put_meta(e, *slot, 0, false));
    }
    for (int32_t i = 0; i < s->n_cut; i++) {
        const proa_tensor *t = s->values[s->cut_vars[i]].handle;
        size_t bytes = (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
        PROA_TRY(make_capacity(e, bytes));
        PROA_TRY(proa_copy_out(t, e->key + e->key_bytes, bytes));
        e->key_bytes += bytes;
    }
    return PROA_OK;
}

static proa__segment *follow(proa_executor *e, proa__segment *s)
{
    if (cut_key(e, s) != PROA_OK) return NULL;
    int32_t stale = -1;
    for (int32_t i = 0; i < s->n_next; i++) {
        if (matches(e, s->next[i])) return s->next[i];
        if (s->next[i]->key_bytes == e->key_bytes && !memcmp(s->next[i]->key, e->key, e->key_bytes))
            stale = i;
    }
    proa__segment *made = proa__segment_new(&e->facts, s, NULL, e->key, e->key_bytes);
    if (!made) return NULL;
    e->plans_made++;
    if (stale < 0 && s->n_next < PROA__OUTCOMES) return s->next[s->n_next++] = made;
    int32_t at = stale >= 0 ? stale : s->replace++ % PROA__OUTCOMES;
    proa__segment_free(s->next[at]);
    return s->next[at] = made;
}

/* Index of the least recently used plan; −1: there is none. */
static int32_t oldest_plan(const proa_executor *e)
{
    int32_t oldest = -1;
    for (int32_t i = 0; i < e->n_plans; i++)
        if (oldest < 0 || e->plans[i].used < e->plans[oldest].used) oldest = i;
    return oldest;
}

/* A free entry for one more plan: drops outdated plans, and the least recently used one beyond the limit. */
static proa__executor_plan *free_plan(proa_executor *e)
{
    int64_t bound = proa__flag_int(PROA_FLAG_kept_plans);
    int32_t oldest;
    while ((oldest = oldest_plan(e)) >= 0 && (e->n_plans >= bound || e->plans[oldest].used == 0)) {
        proa__segment_free(e->plans[oldest].root);
        e->plans[oldest] = e->plans[--e->n_plans];
    }
    if (proa__reserve(&e->plans, e->n_plans, &e->plans_capacity, sizeof *e->plans) != PROA_OK) return NULL;
    return &e->plans[e->n_plans];
}

static proa__executor_plan *find_plan(proa_executor *e)
{
    for (int32_t i = 0; i < e->n_plans; i++) {
        proa__executor_plan *c = &e->plans[i];
        if (matches(e, c->root)) {
            c->used = ++e->clock;
            return c;
        }
        bool outdated = c->root->key_bytes == e->key_bytes && !memcmp(c->root->key, e->key, e->key_bytes);
        if (outdated) c->used = 0; /* persistables have changed: the next to go */
    }
    proa__segment *root = proa__segment_new(&e->facts, NULL, &e->fed, e->key, e->key_bytes);
    proa__executor_plan *to = root ? free_plan(e) : NULL;
    if (!to) {
        proa__segment_free(root);
        return NULL;
    }
    e->plans_made++, e->n_plans++;
    *to = (proa__executor_plan){root, ++e->clock, -1};
    return to;
}

/* ---- a forward that lends its arena to the backward ----------------------------------------- */

/* Describes input i of `next`, which will be value `v` of segment s: at its offset in the arena, or in other
 * memory. */
static proa_status announce(proa_executor *next, int32_t i, const proa__value *v, bool kept)
{
    const proa__buffer *b = v->buffer;
    bool strided = kept && stays_strided(next, i, v->handle);
    bool copied = v->handle->flags & PROA_T_STRIDED && !strided;
    bool there = kept && b->place == PROA__IN_ARENA && b->depth == 0 && !copied;
    next->fed.offsets[i] = there ? b->offset + v->offset : -1;
    return note_input(next, i, v->handle, v->handle->flags & PROA_T_BLOCKED && kept ? b->format : 0, strided);
}

/* Sets *bytes to the size that `next` will need of the arena in which s has run. */
static proa_status ask_next(proa_executor *e, const proa__segment *s, int64_t *bytes)
{
    proa_executor *next = e->next;
    const proa_block *b = e->block;
    int32_t n = 0;
    PROA_TRY(start_key(next, true));
    for (int32_t i = e->facts.n_handed; i < b->n_outputs; i++)
        PROA_TRY(announce(next, n++, &s->values[b->outputs[i]->index], true));
    for (int32_t i = 0; i < e->facts.n_handed; i++)
        if (b->outputs[i]->handle->dtype >= PROA_F16)
            PROA_TRY(announce(next, n++, &s->values[b->outputs[i]->index], false));
    PROA_TRY(put(next, next->fed.offsets, (size_t)n * sizeof *next->fed.offsets));
    const proa__executor_plan *found = find_plan(next);
    if (found) *bytes = found->root->arena_bytes;
    return proa_error();
}

/* The size of the first arena of a run, in bytes. If `next` cannot be planned, that is no error of this
 * run. */
static int64_t capacity_of(proa_executor *e, const proa__executor_plan *p)
{
    int64_t bytes = 0;
    const proa__segment *s = p->root;
    if (e->next && !proa__segment_is_cut(s, &e->facts) && ask_next(e, s, &bytes) != PROA_OK)
        proa_clear_error();
    return bytes > s->arena_bytes ? bytes : s->arena_bytes;
}

/* A tensor on blocked memory inside the arena, which it keeps alive. */
static proa_tensor *keep_window(const proa_executor *e, const proa__value *v)
{
    proa_tensor *t = proa__tensor_alias(v->handle);
    proa_storage *window = t ? proa__window_new(v->handle, v->buffer->format) : NULL;
    if (!window) return NULL;
    proa__window_point(window, proa__executor_arena(e, v->buffer->depth), proa__blocked_data(v->handle));
    proa__point(t, window, NULL);
    proa__storage_release(window);
    return t;
}

/* A tensor for a value that stays where it was computed. */
static proa_tensor *keep_value(const proa_executor *e, const proa__value *v)
{
    if (!(v->handle->flags & PROA_T_BLOCKED) || v->buffer->place == PROA__IN_FIXED)
        return proa__tensor_alias(v->handle);
    if (v->buffer->place == PROA__IN_INPUT) return proa__tensor_alias(e->inputs[v->buffer->index]);
    if (v->buffer->place == PROA__IN_OUTPUT) return proa__tensor_alias(e->outputs[v->buffer->index]);
    return keep_window(e, v);
}

proa_status proa__executor_collect(proa_executor *e, const proa__segment *last, int32_t i)
{
    if (e->outputs[i]) return PROA_OK;
    const proa__value *v = &last->values[e->block->outputs[i]->index];
    proa_meta meta = proa_meta_of(v->handle);
    PROA_TRY(proa__executor_hand_out(e, i, &meta, 0));
    return convert_layout(e->outputs[i], v->handle);
}

static proa_status collect(proa_executor *e, const proa__segment *last)
{
    for (int32_t i = 0; i < e->facts.n_handed; i++) PROA_TRY(proa__executor_collect(e, last, i));
    for (int32_t i = e->facts.n_handed; i < e->block->n_outputs; i++) {
        if (e->outputs[i]) continue;
        e->outputs[i] = keep_value(e, &last->values[e->block->outputs[i]->index]);
        if (!e->outputs[i]) return proa_error();
    }
    return PROA_OK;
}

static proa_status run(proa_executor *e, proa_tensors inputs)
{
    PROA_TRY(take_inputs(e, inputs));
    proa__executor_plan *found = find_plan(e);
    if (found && e->inside && found->root->arena_bytes > (int64_t)e->inside->bytes) {
        e->inside = NULL; /* settings have changed since the lender ran: use an own arena */
        PROA_TRY(take_inputs(e, inputs));
        found = find_plan(e);
    }
    if (!found) return proa_error();
    if (e->lends && found->capacity < 0) found->capacity = capacity_of(e, found);
    e->least = e->lends ? found->capacity : 0;
    proa__segment *s = found->root;
    for (;;) {
        PROA_TRY(visit_segment(e, s));
        if (!proa__segment_is_cut(s, &e->facts)) return collect(e, s);
        s = follow(e, s);
        if (!s) return proa_error();
    }
}

/* The device of a run: that of its inputs, else of its parameters, else the thread's. */
static int device_of_run(const proa_executor *e, proa_tensors inputs)
{
    int device = -1;
    for (int64_t i = 0; inputs.at && i < inputs.count && device <= PROA_CPU; i++)
        if (inputs.at[i] && inputs.at[i]->storage) device = inputs.at[i]->storage->device;
    const proa_block *b = e->block;
    for (int32_t i = 0; i < b->n_vars && device < 0; i++)
        if (b->vars[i]->persistable && b->vars[i]->value) device = proa__device_id(b->vars[i]->value);
    return device < 0 ? proa__stream()->device : device;
}

static proa_tensors run_whole(proa_executor *e, proa_tensors inputs, proa_storage **lent)
{
    proa_tensors none = {0, NULL};
    int32_t n = e->block->n_outputs;
    proa_tensors list = {n, proa_scope_alloc(((size_t)n + 1) * sizeof *list.at)};
    if (!list.at) return none;
    proa_status status = PROA_OK;
    int chosen = proa_device_use(device_of_run(e, inputs));
    PROA_SCOPE {
        memset(e->outputs, 0, (size_t)n * sizeof *e->outputs);
        status = run(e, inputs);
        if (lent && status == PROA_OK) {
            *lent = e->arenas[0].storage;
            atomic_fetch_add_explicit(&(*lent)->refs, 1, memory_order_relaxed);
        }
        proa__executor_let_go(e);
        for (int32_t i = 0; i < n && status == PROA_OK; i++) list.at[i] = proa_return(e->outputs[i]);
    }
    proa_device_use(chosen);
    return status == PROA_OK ? list : none;
}

proa_tensors proa_executor_run(proa_executor *e, proa_tensors inputs)
{
    if (proa_error() == PROA_OK && e) return run_whole(e, inputs, NULL);
    if (!e) proa_fail(PROA_ERR_INVALID_ARGUMENT, "executor_run: the executor is NULL");
    return (proa_tensors){0, NULL};
}

proa_tensors proa__executor_run_lending(proa_executor *e, proa_tensors inputs, proa_storage **block)
{
    *block = NULL;
    return run_whole(e, inputs, block);
}

proa_tensors proa__executor_run_inside(proa_executor *e, proa_tensors inputs, proa_storage *block,
                                       proa_tensor *const *into)
{
    e->inside = block;
    e->into = into;
    proa_tensors made = run_whole(e, inputs, NULL);
    e->inside = NULL;
    e->into = NULL;
    return made;
}
