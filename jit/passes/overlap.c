/* Moves what reads a collective's result behind independent ops, so that the collective runs beside them
 * (jit/plan/overlap.c). List scheduling in program order; collectives, and ops that draw random numbers, keep
 * their order. May use core and ops. */
#include "edit.h"

#include "core/group.h"
#include "core/internal.h"
#include "jit/plan/plan.h"

/* MAX_CALLS: collectives under way: what reads the oldest one follows, so that its memory can be used again.
 * MAX_WAIT: ops that may be moved up before an op that computes. More would keep more results alive. */
enum { OPTIMIZE = 2, MAX_CALLS = 4, MAX_WAIT = 16 };

typedef struct edge {
    int32_t to, next;
} edge;

typedef struct work {
    proa_block *block;
    int32_t n_ops, at; /* at: the op whose dependences are being found */
    /* by op: */
    int32_t *waiting; /* ops that must be emitted before it */
    int32_t *edges;   /* its first edge, to an op that must stay behind it; NOBODY */
    int32_t *call;    /* of a collective that may be asynchronous: its number, from 1; 0 */
    int32_t *needs;   /* number of the last collective whose result it reads; 0: none */
    int32_t *since;   /* of a blocked op: how many ops had been emitted when all but calls was there */
    int32_t *light;   /* 1: it only moves results on to optimizer steps */
    /* by variable: */
    int32_t *maker;    /* the last op that writes it; NOBODY */
    int32_t *reader;   /* its first entry in `reads`: readers since that op; NOBODY */
    int32_t *origin;   /* the persistable whose memory it shows; NOBODY */
    int32_t *heavy;    /* 1: an op that is not light reads it */
    edge *all, *reads; /* reads: op `to` reads the variable */
    int32_t n_all, all_capacity, n_reads, reads_capacity;
    int32_t last_random, last_call, barrier;
    /* the new order: */
    int32_t *ready, *blocked;                      /* a heap by index; a list by `since` */
    int32_t n_ready, n_blocked, emitted, complete; /* complete: number of the last call that is taken so */
} work;

static int32_t index_of(const work *w, const proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    return v && v->index < w->block->n_vars && w->block->vars[v->index] == v ? v->index : PROA__NOBODY;
}

/* ---- dependences ------------------------------------------------------------------------- */

static proa_status put_edge(edge **list, int32_t *n, int32_t *capacity, int32_t *first, int32_t to)
{
    PROA_TRY(proa__reserve(list, *n, capacity, sizeof **list));
    (*list)[*n] = (edge){to, *first};
    *first = (*n)++;
    return PROA_OK;
}

/* The current op must stay behind op `before`. */
static proa_status stay_behind(work *w, int32_t before)
{
    if (before == PROA__NOBODY || before == w->at) return PROA_OK;
    w->waiting[w->at]++;
    return put_edge(&w->all, &w->n_all, &w->all_capacity, &w->edges[before], w->at);
}

static proa_status read_var(work *w, int32_t v)
{
    int32_t maker = w->maker[v];
    PROA_TRY(stay_behind(w, maker));
    if (maker != PROA__NOBODY && w->call[maker] > w->needs[w->at]) w->needs[w->at] = w->call[maker];
    return put_edge(&w->reads, &w->n_reads, &w->reads_capacity, &w->reader[v], w->at);
}

static proa_status note_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    int32_t v = index_of(w, *slot);
    if (v == PROA__NOBODY) return PROA_OK;
    PROA_TRY(read_var(w, v));
    int32_t from = w->origin[v];
    if (from == PROA__NOBODY || from == v) return PROA_OK;
    return put_edge(&w->reads, &w->n_reads, &w->reads_capacity, &w->reader[from], w->at);
}

/* The current op overwrites v: it stays behind the ops that read v. */
static proa_status overwrite(work *w, int32_t v)
{
    for (int32_t i = w->reader[v]; i != PROA__NOBODY; i = w->reads[i].next)
        PROA_TRY(stay_behind(w, w->reads[i].to));
    PROA_TRY(stay_behind(w, w->maker[v]));
    w->reader[v] = PROA__NOBODY;
    return PROA_OK;
}

static proa_status note_write(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    int32_t v = index_of(w, *slot);
    if (v == PROA__NOBODY) return PROA_OK;
    if (f->flags & PROA_FIELD_MUTATED) {
        const proa_instr *instr = &w->block->ops[w->at];
        const proa_tensors from = proa__field_all(&instr->op->fields[f->alias], instr->args);
        int32_t source = index < from.count ? index_of(w, from.at[index]) : PROA__NOBODY;
        if (source != PROA__NOBODY && source != v) PROA_TRY(overwrite(w, source));
    }
    if (w->block->vars[v]->persistable) PROA_TRY(overwrite(w, v));
    w->maker[v] = w->at;
    return PROA_OK;
}

/* Notes that the first output of a view shows the memory of the view's input. */
static void note_view(work *w, const proa_instr *instr)
{
    proa_tensor **in =
        instr->op->flags & PROA_OP_VIEW ? proa__field_one(&instr->op->fields[0], instr->args) : NULL;
    int32_t from = in ? index_of(w, *in) : PROA__NOBODY;
    int32_t to = in ? index_of(w, *proa__out_slot(instr->op, instr->args, 0, NULL)) : PROA__NOBODY;
    if (from != PROA__NOBODY && to != PROA__NOBODY) w->origin[to] = w->origin[from];
}

/* Ops that keep their order among each other, and those that nothing moves across. */
static proa_status note_order(work *w, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    PROA_TRY(stay_behind(w, w->barrier));
    if (proa__has_block(op) || op->flags & PROA_OP_DATA_SHAPE) {
        int32_t first = w->barrier == PROA__NOBODY ? 0 : w->barrier + 1;
        for (int32_t i = first; i < w->at; i++) PROA_TRY(stay_behind(w, i));
        w->barrier = w->at;
    }
    if (op->flags & PROA_OP_RANDOM || !op->n_out) {
        PROA_TRY(stay_behind(w, w->last_random));
        w->last_random = w->at;
    }
    if (proa__op_communicates(op)) {
        PROA_TRY(stay_behind(w, w->last_call));
        w->last_call = w->at;
    }
    return PROA_OK;
}

static proa_status find_dependences(work *w)
{
    int32_t calls = 0;
    for (w->at = 0; w->at < w->n_ops; w->at++) {
        const proa_instr *instr = &w->block->ops[w->at];
        PROA_TRY(note_order(w, instr));
        PROA_TRY(proa__args_visit_reads(instr->op, instr->args, note_read, w));
        if (proa__may_be_async(instr->op)) w->call[w->at] = ++calls;
        note_view(w, instr);
        PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, note_write, w));
    }
    return PROA_OK;
}

/* ---- light ops ------------------------------------------------------------------------- */

static bool is_cheap(const proa_op *op)
{
    static const char *const names[] = {"split", "concat", "assign", "scale", "cast", "fused_elementwise"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op->name, names[i]) == 0) return true;
    return op->flags & (PROA_OP_VIEW | PROA_OP_ELEMENTWISE) || proa__op_communicates(op);
}

static proa_status look_heavy(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    int32_t v = index_of(w, *slot);
    if (v != PROA__NOBODY && !w->block->vars[v]->persistable && w->heavy[v]) w->light[w->at] = 0;
    return PROA_OK;
}

static proa_status note_heavy(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    work *w = context;
    (void)f, (void)index;
    int32_t v = index_of(w, *slot);
    if (v != PROA__NOBODY) w->heavy[v] = 1;
    return PROA_OK;
}

static proa_status find_light(work *w)
{
    for (w->at = w->n_ops - 1; w->at >= 0; w->at--) {
        const proa_instr *instr = &w->block->ops[w->at];
        bool step = instr->role & OPTIMIZE || proa__is_step(instr);
        w->light[w->at] = step || is_cheap(instr->op);
        if (!step) PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, look_heavy, w));
        if (!w->light[w->at]) PROA_TRY(proa__args_visit_reads(instr->op, instr->args, note_heavy, w));
    }
    return PROA_OK;
}

/* ---- the new order ----------------------------------------------------------------------- */

static void push_ready(work *w, int32_t op)
{
    int32_t at = w->n_ready++;
    for (; at > 0 && w->ready[(at - 1) / 2] > op; at = (at - 1) / 2) w->ready[at] = w->ready[(at - 1) / 2];
    w->ready[at] = op;
}

static int32_t pop_ready(work *w)
{
    int32_t top = w->ready[0], last = w->ready[--w->n_ready], at = 0;
    for (int32_t child; (child = 2 * at + 1) < w->n_ready; at = child) {
        if (child + 1 < w->n_ready && w->ready[child + 1] < w->ready[child]) child++;
        if (w->ready[child] >= last) break;
        w->ready[at] = w->ready[child];
    }
    w->ready[at] = last;
    return top;
}

/* All that the op must stay behind is emitted. */
static void free_op(work *w, int32_t op)
{
    if (w->needs[op] <= w->complete) {
        push_ready(w, op);
        return;
    }
    w->since[op] = w->emitted;
    w->blocked[w->n_blocked++] = op;
}

/* Takes the calls up to number `call` as complete. */
static void complete(work *w, int32_t call)
{
    if (call <= w->complete) return;
    w->complete = call;
    int32_t kept = 0;
    for (int32_t i = 0; i < w->n_blocked; i++) {
        int32_t op = w->blocked[i];
        if (w->needs[op] <= call) push_ready(w, op);
        else w->blocked[kept++] = op;
    }
    w->n_blocked = kept;
}

/* The next op: the first in program order that reads no result of a call under way, unless an op that
 * computes has waited long enough. */
static int32_t next_op(work *w)
{
    int32_t soonest = INT32_MAX;
    for (int32_t i = 0; i < w->n_blocked; i++) {
        int32_t op = w->blocked[i];
        if (w->needs[op] < soonest) soonest = w->needs[op];
        if (w->light[op] || w->emitted - w->since[op] < MAX_WAIT) continue;
        complete(w, w->needs[op]);
        break;
    }
    if (!w->n_ready) complete(w, soonest);
    return pop_ready(w);
}

/* Fills `order` with the ops' numbers; *same: it is the present one. */
static void schedule(work *w, int32_t *order, bool *same)
{
    *same = true;
    for (int32_t i = 0; i < w->n_ops; i++)
        if (!w->waiting[i]) free_op(w, i);
    while (w->emitted < w->n_ops) {
        int32_t op = next_op(w);
        *same &= op == w->emitted;
        order[w->emitted++] = op;
        if (w->call[op]) complete(w, w->call[op] + 1 - MAX_CALLS);
        for (int32_t e = w->edges[op]; e != PROA__NOBODY; e = w->all[e].next)
            if (--w->waiting[w->all[e].to] == 0) free_op(w, w->all[e].to);
    }
}

static proa_status rebuild(proa_block *b, const int32_t *order)
{
    int32_t n;
    proa_instr *ops = proa__take_ops(b, &n);
    proa_status status = PROA_OK;
    for (int32_t i = 0; i < n && status == PROA_OK; i++) status = proa__emit_old(b, &ops[order[i]]);
    proa__drop_ops(ops, 0, n);
    b->program->version++;
    return status;
}

/* ---- the pass ---------------------------------------------------------------------------- */

static bool start(work *w, proa_block *b)
{
    int32_t n = b->n_ops, v = b->n_vars;
    int32_t **zero_by_op[] = {&w->waiting, &w->call, &w->needs, &w->since, &w->light, &w->ready, &w->blocked};
    int32_t **by_var[] = {&w->maker, &w->reader, &w->origin, &w->heavy};
    size_t ops = sizeof zero_by_op / sizeof *zero_by_op, vars = sizeof by_var / sizeof *by_var;
    *w = (work){.block = b,
                .n_ops = n,
                .last_random = PROA__NOBODY,
                .last_call = PROA__NOBODY,
                .barrier = PROA__NOBODY};
    int32_t *memory = proa_scope_alloc(((ops + 1) * (size_t)n + vars * (size_t)v + 1) * sizeof *memory);
    if (!memory) return false;
    memset(memory, 0, ops * (size_t)n * sizeof *memory);
    for (size_t i = 0; i < ops; i++, memory += n) *zero_by_op[i] = memory;
    w->edges = memory;
    memory += n;
    for (int32_t i = 0; i < n; i++) w->edges[i] = PROA__NOBODY;
    for (size_t i = 0; i < vars; i++, memory += v) *by_var[i] = memory;
    for (int32_t i = 0; i < v; i++) {
        w->maker[i] = w->reader[i] = PROA__NOBODY;
        w->origin[i] = b->vars[i]->persistable ? i : PROA__NOBODY;
        w->heavy[i] = 0;
    }
    return true;
}

proa_status proa__pass_overlap(proa_block *b, const proa__pass_context *context)
{
    (void)context;
    b->program->overlaps = true;
    bool any = false;
    for (int32_t i = 0; i < b->n_ops && !any; i++) any = proa__may_be_async(b->ops[i].op);
    if (!any || b->parent >= 0) return PROA_OK; /* bodies of branches and loops stay as they are */
    work w;
    if (!start(&w, b)) return proa_error();
    int32_t *order = proa_scope_alloc(((size_t)b->n_ops + 1) * sizeof *order);
    proa_status status = order ? find_dependences(&w) : proa_error();
    if (status == PROA_OK) status = find_light(&w);
    bool same = true;
    if (status == PROA_OK) schedule(&w, order, &same);
    if (!same) status = rebuild(b, order);
    proa__free(w.all);
    proa__free(w.reads);
    return status;
}
