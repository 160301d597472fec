/* Splits optimizer steps by parameter and moves the parts up to where their gradient is ready and no op needs
 * the parameter's old value, in groups of at least FLAGS_update_bytes of parameters (the last ones fewer). A
 * gradient is then still in a cache, and its memory is free for later gradients. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "core/run.h"

enum { OPTIMIZE = 2 };

/* A movable unit: one parameter of a step, with the ops that only prepare its gradient (decay, clipping by
 * its own norm), or an op of the optimizer's that makes single numbers (a parameter's own rate). */
typedef struct item {
    int32_t op;
    int32_t entry; /* index in the step's lists; NOBODY: the op as a whole moves */
    int32_t ready; /* the last op that it must stay behind; NOBODY: none */
    int32_t chain; /* the first of the ops that prepare its gradient; NOBODY: none */
    int32_t next;  /* the next item with the same `ready` */
    int32_t peer;  /* the next item of the same group */
    int64_t bytes;
} item;

typedef struct work {
    proa__uses uses;
    const proa_instr *ops;
    int32_t n_ops, at;
    item *items;
    int32_t n_items, items_capacity;
    /* by op: */
    int32_t *first_item; /* of a step that moves: its first entry's item; NOBODY */
    int32_t *owner;      /* the item that it moves with: its own, or whose gradient it prepares; NOBODY */
    int32_t *chain_next;
    int32_t *bucket;  /* the first item with `ready` = i − 1 */
    int32_t *group;   /* of a step: its items that are ready and wait to be emitted together */
    int64_t *waiting; /* bytes */
    int64_t enough;   /* bytes of parameters from which a group is emitted, as each step has a fixed cost */
    /* by variable: */
    int32_t *wanted;           /* the item that alone reads it; NOBODY */
    int32_t *writer;           /* the item that overwrites the persistable; NOBODY */
    int32_t *made;             /* the op that makes it; NOBODY: available from the start */
    int32_t *touched, *stored; /* the last op that names the persistable or a view; the last that writes it */
    int32_t *origin;           /* the persistable whose memory the variable shows */
    int32_t barrier;           /* the last op so far that nothing may move across */
    /* scratch of one query: */
    int32_t who, latest;
    bool fits;
} work;

static int32_t later(int32_t a, int32_t b) { return a > b ? a : b; }

/* The variable's index, if it is the block's own. */
static int32_t index_of(const work *w, const proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    return v && v->index < w->uses.n_vars && w->uses.block->vars[v->index] == v ? v->index : PROA__NOBODY;
}

/* ---- what can move: last op first ------------------------------------------------------------ */

/* True if every list has an entry for each parameter or is empty. */
static bool has_even_lists(const proa_instr *instr, int64_t count)
{
    for (const proa_field *f = instr->op->fields; f < instr->op->fields + instr->op->n_fields; f++) {
        const proa_tensors *list = proa__field_list(f, instr->args);
        int64_t n = list ? list->count : 0;
        if (n ? n != count : f->role == PROA_OUT && !list) return false;
    }
    return count > 0;
}

static proa_status claim(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f;
    int32_t v = index_of(w, *slot);
    bool free = v != PROA__NOBODY && w->uses.block->vars[v]->persistable && w->writer[v] == PROA__NOBODY;
    if (free) w->writer[v] = w->n_items + (int32_t)index;
    w->fits &= free;
    return PROA_OK;
}

static proa_status unclaim(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    int32_t v = index_of(w, *slot);
    if (v != PROA__NOBODY && w->writer[v] >= w->n_items) w->writer[v] = PROA__NOBODY;
    return PROA_OK;
}

/* True if the step may be split by parameters: no tensor that it overwrites is named twice, or overwritten by
 * a later step. */
static bool splits(work *w, const proa_instr *instr, int64_t *count)
{
    if (!proa__is_step(instr)) return false;
    *count = proa_field_tensors(&instr->op->fields[0], instr->args)->count;
    if (!has_even_lists(instr, *count)) return false;
    w->fits = true;
    proa__args_visit(instr->op, instr->args, PROA_OUT, claim, w);
    if (!w->fits) proa__args_visit(instr->op, instr->args, PROA_OUT, unclaim, w);
    return w->fits;
}

/* Notes that item `who` needs t, if the current op is the only reader of t. */
static void want(work *w, const proa_tensor *t, int32_t who)
{
    int32_t v = index_of(w, t);
    if (v == PROA__NOBODY || proa__only_reader(&w->uses, w->uses.block->vars[v]) != w->at) return;
    w->wanted[v] = who;
}

static proa_status want_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    want(w, *slot, w->who);
    return PROA_OK;
}

static proa_status add_item(work *w, item made)
{
    PROA_TRY(proa__reserve(&w->items, w->n_items, &w->items_capacity, sizeof *w->items));
    w->items[w->n_items++] = made;
    return PROA_OK;
}

static proa_status add_step(work *w, const proa_instr *instr, int64_t count)
{
    const proa_op *op = instr->op;
    w->first_item[w->at] = w->n_items;
    for (int64_t k = 0; k < count; k++) {
        const proa_tensor *param = proa_field_tensors(&op->fields[0], instr->args)->at[k];
        int64_t bytes = param->numel * (int64_t)proa_dtype_size((proa_dtype)param->dtype);
        for (int i = 0; i < op->n_in; i++) {
            const proa_tensors *list = proa__field_list(&op->fields[i], instr->args);
            if (list && list->count) want(w, list->at[k], w->n_items);
        }
        PROA_TRY(add_item(w, (item){.op = w->at,
                                    .entry = (int32_t)k,
                                    .ready = PROA__NOBODY,
                                    .chain = PROA__NOBODY,
                                    .bytes = bytes}));
    }
    return PROA_OK;
}

/* Checks whether one item alone needs all outputs of the op. */
static proa_status look_wanted(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    if (proa__slot_empty(*slot)) return PROA_OK;
    int32_t v = index_of(w, *slot), who = v == PROA__NOBODY ? PROA__NOBODY : w->wanted[v];
    w->fits &= who != PROA__NOBODY && (w->who == PROA__NOBODY || w->who == who);
    w->who = who;
    return PROA_OK;
}

static proa_status look_single(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    int32_t v = index_of(w, *slot);
    if (proa__slot_empty(*slot)) return PROA_OK;
    w->fits &= v != PROA__NOBODY && !w->uses.block->vars[v]->persistable && (*slot)->numel == 1;
    return PROA_OK;
}

static proa_status find_movable(work *w)
{
    for (w->at = w->n_ops - 1; w->at >= 0; w->at--) {
        const proa_instr *instr = &w->ops[w->at];
        int64_t count;
        if (splits(w, instr, &count)) {
            PROA_TRY(add_step(w, instr, count));
            continue;
        }
        if (!(instr->role & OPTIMIZE) || !proa__is_pure(instr->op)) continue;
        w->fits = true;
        w->who = PROA__NOBODY;
        PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, look_wanted, w));
        if (!w->fits || w->who == PROA__NOBODY) continue;
        w->owner[w->at] = w->who;
        w->chain_next[w->at] = w->items[w->who].chain;
        w->items[w->who].chain = w->at;
        PROA_TRY(proa__args_visit_reads(instr->op, instr->args, want_read, w));
    }
    return PROA_OK;
}

/* ---- how far up: first op first -------------------------------------------------------------- */

/* Raises `latest` to the op behind which the item, or the op as a whole, may read this tensor. */
static proa_status read_late(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    int32_t v = index_of(w, *slot);
    if (v == PROA__NOBODY) return PROA_OK;
    if (!w->uses.block->vars[v]->persistable) w->latest = later(w->latest, w->made[v]);
    else if (w->who != PROA__NOBODY && w->writer[v] == w->who) w->latest = later(w->latest, w->touched[v]);
    else w->latest = later(w->latest, w->stored[v]);
    return PROA_OK;
}

/* Notes reads of persistables, at op `at` or wherever that op moves up to. */
static proa_status note_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    int32_t v = index_of(w, *slot), origin = v == PROA__NOBODY ? v : w->origin[v];
    if (origin != PROA__NOBODY && !(w->who != PROA__NOBODY && w->writer[origin] == w->who))
        w->touched[origin] = later(w->touched[origin], w->at);
    return PROA_OK;
}

static proa_status note_write(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    int32_t v = index_of(w, *slot);
    if (v == PROA__NOBODY) return PROA_OK;
    w->made[v] = w->latest;
    if (w->uses.block->vars[v]->persistable) w->touched[v] = w->stored[v] = w->at;
    return PROA_OK;
}

/* Notes that the first output of a view shows the memory of the view's input. */
static void note_view(work *w, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    proa_tensor **in = op->flags & PROA_OP_VIEW ? proa__field_one(&op->fields[0], instr->args) : NULL;
    if (!in) return;
    int32_t from = index_of(w, *in);
    int32_t to = index_of(w, *proa__out_slot(op, instr->args, 0, NULL));
    if (from != PROA__NOBODY && to != PROA__NOBODY) w->origin[to] = w->origin[from];
}

static proa_status ready_step(work *w, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    int32_t first = w->first_item[w->at];
    w->latest = w->barrier;
    w->who = PROA__NOBODY;
    for (int i = 0; i < op->n_in; i++) {
        proa_tensor **one = proa__field_one(&op->fields[i], instr->args);
        if (one) PROA_TRY(read_late(one, NULL, 0, w));
    }
    int32_t common = w->latest;
    int64_t count = proa_field_tensors(&op->fields[0], instr->args)->count;
    for (int32_t k = 0; k < count; k++) {
        item *it = &w->items[first + k];
        w->who = first + k;
        w->latest = later(common, it->ready);
        for (int i = 0; i < op->n_in; i++) {
            proa_tensors *list = proa__field_list(&op->fields[i], instr->args);
            if (list && list->count) PROA_TRY(read_late((proa_tensor **)(uintptr_t)&list->at[k], NULL, 0, w));
        }
        it->ready = w->latest;
    }
    w->who = PROA__NOBODY;
    w->latest = w->at;
    PROA_TRY(proa__args_visit_reads(op, instr->args, note_read, w));
    return proa__args_visit(op, instr->args, PROA_OUT, note_write, w);
}

/* An op that prepares a gradient moves with its item, which then reads what the op makes. */
static proa_status ready_chain(work *w, const proa_instr *instr)
{
    w->who = w->owner[w->at];
    item *it = &w->items[w->who];
    w->latest = later(w->barrier, it->ready);
    PROA_TRY(proa__args_visit_reads(instr->op, instr->args, read_late, w));
    it->ready = w->latest;
    return proa__args_visit_reads(instr->op, instr->args, note_read,
                                  w); /* what it makes is there for the item */
}

/* Handles all other ops. Ops that make the optimizer's own scalars move up as far as they can. */
static proa_status ready_other(work *w, const proa_instr *instr)
{
    int32_t at = w->at;
    w->who = PROA__NOBODY;
    w->latest = w->barrier;
    w->fits = instr->role & OPTIMIZE && proa__is_pure(instr->op);
    PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, look_single, w));
    if (w->fits) {
        PROA_TRY(proa__args_visit_reads(instr->op, instr->args, read_late, w));
        PROA_TRY(
            add_item(w, (item){.op = at, .entry = PROA__NOBODY, .ready = w->latest, .chain = PROA__NOBODY}));
        w->owner[at] = w->n_items - 1;
        w->at = w->latest;
    } else w->latest = at;
    note_view(w, instr);
    PROA_TRY(proa__args_visit_reads(instr->op, instr->args, note_read, w));
    PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, note_write, w));
    w->at = at;
    if (proa__has_block(instr->op) || instr->op->flags & PROA_OP_DATA_SHAPE) w->barrier = at;
    return PROA_OK;
}

static proa_status find_ready(work *w)
{
    for (w->at = 0; w->at < w->n_ops; w->at++) {
        const proa_instr *instr = &w->ops[w->at];
        if (w->first_item[w->at] != PROA__NOBODY) PROA_TRY(ready_step(w, instr));
        else if (w->owner[w->at] != PROA__NOBODY) PROA_TRY(ready_chain(w, instr));
        else PROA_TRY(ready_other(w, instr));
    }
    return PROA_OK;
}

/* ---- building the block anew ----------------------------------------------------------------- */

/* Sorts items by `ready`; for one `ready`, scalars come first, then the others in program order. */
static void fill_buckets(work *w)
{
    for (int32_t numbers = 0; numbers < 2; numbers++)
        for (int32_t i = w->n_items - 1; i >= 0; i--) {
            item *it = &w->items[i];
            if ((it->entry == PROA__NOBODY) != numbers) continue;
            it->next = w->bucket[it->ready + 1];
            w->bucket[it->ready + 1] = i;
        }
}

/* Reverses a group's list, which begins with the item added last. */
static int32_t in_order(work *w, int32_t group)
{
    int32_t turned = PROA__NOBODY;
    for (int32_t i = group, peer; i != PROA__NOBODY; i = peer) {
        peer = w->items[i].peer;
        w->items[i].peer = turned;
        turned = i;
    }
    return turned;
}

/* Selects the list entries of a group's items, in memory of the scope. */
static proa_status pick(const work *w, const proa_instr *instr, int32_t group, void *args)
{
    const proa_op *op = instr->op;
    int64_t n = 0;
    for (int32_t i = group; i != PROA__NOBODY; i = w->items[i].peer) n++;
    memcpy(args, instr->args, op->args_size);
    for (int i = 0; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        const proa_tensors *all = proa__field_list(f, instr->args);
        if (!all) continue;
        proa_tensors some = {0, NULL};
        if (all->count) some.at = proa_scope_alloc((size_t)n * sizeof(proa_tensor *));
        if (all->count && !some.at) return proa_error();
        for (int32_t k = group; all->count && k != PROA__NOBODY; k = w->items[k].peer)
            ((proa_tensor **)(uintptr_t)some.at)[some.count++] = all->at[w->items[k].entry];
        *proa_field_tensors(f, args) = some;
    }
    return PROA_OK;
}

/* Emits the step for the items that wait, after the ops that prepare their gradients. */
static proa_status emit_group(work *w, int32_t step)
{
    proa_block *b = w->uses.block;
    proa_instr *ops = (proa_instr *)(uintptr_t)w->ops;
    int32_t group = in_order(w, w->group[step]);
    if (group == PROA__NOBODY) return PROA_OK;
    w->group[step] = PROA__NOBODY;
    w->waiting[step] = 0;
    for (int32_t i = group; i != PROA__NOBODY; i = w->items[i].peer)
        for (int32_t k = w->items[i].chain; k != PROA__NOBODY; k = w->chain_next[k])
            PROA_TRY(proa__emit_old(b, &ops[k]));
    char args[PROA_ARGS_MAX] __attribute__((aligned(16)));
    proa_status status = PROA_OK;
    PROA_SCOPE {
        status = pick(w, &ops[step], group, args);
        if (status == PROA_OK) status = proa__emit(b, ops[step].op->name, args, &ops[step]);
    }
    return status;
}

/* Emits the items that are ready behind op `at`; steps wait until their group is large enough. */
static proa_status emit_ready(work *w, int32_t at)
{
    proa_instr *ops = (proa_instr *)(uintptr_t)w->ops;
    for (int32_t i = w->bucket[at + 1]; i != PROA__NOBODY; i = w->items[i].next) {
        item *it = &w->items[i];
        if (it->entry == PROA__NOBODY) {
            PROA_TRY(proa__emit_old(w->uses.block, &ops[it->op]));
            continue;
        }
        it->peer = w->group[it->op];
        w->group[it->op] = i;
        w->waiting[it->op] += it->bytes;
    }
    for (int32_t i = w->bucket[at + 1]; i != PROA__NOBODY; i = w->items[i].next) {
        int32_t op = w->items[i].op;
        if (w->items[i].entry != PROA__NOBODY && w->waiting[op] >= w->enough) PROA_TRY(emit_group(w, op));
    }
    return PROA_OK;
}

static proa_status emit_all(work *w, proa_instr *ops)
{
    PROA_TRY(emit_ready(w, PROA__NOBODY));
    for (int32_t i = 0; i < w->n_ops; i++) {
        if (w->first_item[i] != PROA__NOBODY) {
            PROA_TRY(emit_group(w, i));
            proa__instr_clear(&ops[i]);
        } else if (w->owner[i] == PROA__NOBODY) PROA_TRY(proa__emit_old(w->uses.block, &ops[i]));
        PROA_TRY(emit_ready(w, i));
    }
    return PROA_OK;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* An array of n int32_t, all NOBODY, taken from one block of memory. */
static int32_t *take(int32_t **memory, int32_t n)
{
    int32_t *at = *memory;
    for (int32_t i = 0; i < n; i++) at[i] = PROA__NOBODY;
    *memory += n;
    return at;
}

static proa_status start(work *w, proa_block *b, int32_t **memory)
{
    PROA_TRY(proa__uses_find(&w->uses, b));
    int32_t n = b->n_ops + 1, v = b->n_vars;
    w->n_ops = b->n_ops;
    w->ops = b->ops;
    *memory = proa__alloc(((size_t)n * 5 + (size_t)v * 6 + 1) * sizeof **memory);
    w->waiting = proa__calloc((size_t)n * sizeof *w->waiting);
    if (!*memory || !w->waiting) return proa_error();
    int32_t *at = *memory;
    int32_t **by_op[] = {&w->first_item, &w->owner, &w->chain_next, &w->bucket, &w->group};
    int32_t **by_var[] = {&w->wanted, &w->writer, &w->made, &w->touched, &w->stored, &w->origin};
    for (size_t i = 0; i < sizeof by_op / sizeof *by_op; i++) *by_op[i] = take(&at, n);
    for (size_t i = 0; i < sizeof by_var / sizeof *by_var; i++) *by_var[i] = take(&at, v);
    for (int32_t i = 0; i < v; i++)
        if (b->vars[i]->persistable) w->origin[i] = i;
    w->barrier = PROA__NOBODY;
    w->enough = proa__flag_int(PROA_FLAG_update_bytes);
    return PROA_OK;
}

static proa_status rebuild(work *w)
{
    int32_t n;
    fill_buckets(w);
    proa_instr *ops = proa__take_ops(w->uses.block, &n);
    proa_status status = emit_all(w, ops);
    proa__drop_ops(ops, 0, n);
    w->uses.block->program->version++;
    return status;
}

proa_status proa__pass_optimizer_interleaving(proa_block *b, const proa__pass_context *context)
{
    (void)context;
    work w = {0};
    int32_t *memory = NULL;
    proa_status status = start(&w, b, &memory);
    if (status == PROA_OK) status = find_movable(&w);
    if (status == PROA_OK && w.n_items) status = find_ready(&w);
    if (status == PROA_OK && w.n_items) status = rebuild(&w);
    proa__uses_free(&w.uses);
    proa__free(w.items);
    proa__free(w.waiting);
    proa__free(memory);
    return status;
}
