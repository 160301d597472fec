/* Data parallelism of programs: replays a program and inserts collectives that average gradients over the
 * ranks, on all of them or on a gradient's owner, one for each bucket, behind the op that makes the bucket's
 * last gradient. May use core, ops and jit. */
#include "core/args_visit.h"
#include "core/hash_map.h"
#include "core/internal.h"
#include "jit/ir/program.h"

#include <proa/autograd.h>
#include <proa/dist.h>

typedef struct gradient {
    proa_var *var;       /* in the original program */
    proa_tensor *handle; /* its tensor in the new program */
    proa_tensor **slot;  /* output slot of the op that is being replayed; else NULL */
    proa_var *average;   /* in the new program, if it was not put into the slot */
    int64_t owner;       /* the rank that gets the average; -1: all do */
    int64_t bucket;
    bool made;
} gradient;

typedef struct averaging {
    const char *who; /* the function that was called */
    int64_t group, ranks;
    gradient *all;
    int64_t count;
    int64_t *waiting; /* each bucket's gradients that no op has made yet */
    proa__hash_map by_var;
} averaging;

/* ---- buckets --------------------------------------------------------------------------- */

enum {
    PARTS = 16,         /* of all gradients: what backward does not hide is the exchange of the last part */
    SMALLEST = 1 << 20, /* bytes of a part, if the caller allows as many: large against a call's latency */
};

static proa_status note_made(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    averaging *a = context;
    (void)f, (void)index;
    gradient *g = proa__hash_map_find(&a->by_var, proa__slot_var(*slot));
    if (g && !g->made) {
        g->made = true;
        a->all[a->count++] = *g; /* copies, to be sorted; by_var still points to g */
    }
    return PROA_OK;
}

/* Brings the gradients of one owner together; each owner's keep their order. */
static proa_status group_by_owner(averaging *a)
{
    gradient *sorted = proa_scope_alloc((size_t)a->count * sizeof *sorted);
    if (!sorted) return proa_error();
    int64_t n = 0;
    for (int64_t owner = -1; owner < a->ranks; owner++)
        for (int64_t i = 0; i < a->count; i++)
            if (a->all[i].owner == owner) sorted[n++] = a->all[i];
    a->all = sorted;
    return PROA_OK;
}

static int64_t bytes_of(const gradient *g)
{
    const proa_tensor *t = g->var->handle;
    return t->numel * (int64_t)proa_dtype_size((proa_dtype)t->dtype);
}

/* Bytes at which a bucket is closed: a part of all gradients, so that most of them are sent before backward
 * ends, and at most the caller's. */
static int64_t closing_bytes(const averaging *a, int64_t most)
{
    int64_t total = 0;
    for (int64_t i = 0; i < a->count; i++) total += bytes_of(&a->all[i]);
    int64_t part = total / PARTS > SMALLEST ? total / PARTS : SMALLEST;
    return part < most ? part : most;
}

/* Sorts the gradients by owner and by the op that makes them, assigns them to buckets of one dtype and at
 * most `bytes` bytes (a larger gradient has its own), and makes by_var refer to the sorted entries. */
static proa_status deal(averaging *a, const proa_block *b, int64_t bytes)
{
    for (int32_t i = 0; i < b->n_ops; i++)
        PROA_TRY(proa__args_visit(b->ops[i].op, b->ops[i].args, PROA_OUT, note_made, a));
    PROA_TRY(group_by_owner(a));
    int64_t bucket = -1, used = 0, most = closing_bytes(a, bytes);
    for (int64_t i = 0; i < a->count; i++) {
        const proa_tensor *t = a->all[i].var->handle;
        int64_t size = bytes_of(&a->all[i]);
        bool joins = bucket >= 0 && t->dtype == a->all[i - 1].var->handle->dtype && used + size <= most &&
                     a->all[i].owner == a->all[i - 1].owner;
        bucket += !joins;
        used = joins ? used + size : size;
        a->all[i].bucket = bucket;
        a->all[i].made = false;
        a->waiting[bucket]++;
        PROA_TRY(proa__hash_map_put(&a->by_var, a->all[i].var, &a->all[i]));
    }
    return PROA_OK;
}

/* ---- the replay ------------------------------------------------------------------------ */

static proa_tensor *averaged(const averaging *a, proa_tensor *t, int64_t owner)
{
    proa_tensor *share = proa_scale(t, .scale = PROA_SCALAR(1.0 / (double)a->ranks));
    return owner < 0 ? proa_all_reduce(share, .group = a->group)
                     : proa_reduce_to(share, .dst = owner, .group = a->group);
}

/* Captures the average of a bucket: concatenates its gradients, reduces the vector, and splits it. The
 * gradients' handles refer to the averaged pieces from here on. */
static proa_status exchange(averaging *a, int64_t bucket)
{
    proa_tensor **flat = proa_scope_alloc((size_t)a->count * sizeof(proa_tensor *));
    int64_t *sizes = proa_scope_alloc((size_t)a->count * sizeof *sizes), n = 0, first = 0;
    if (!flat || !sizes) return proa_error();
    while (a->all[first].bucket != bucket) first++;
    for (; first + n < a->count && a->all[first + n].bucket == bucket; n++) {
        proa_tensor *t = a->all[first + n].handle;
        sizes[n] = t->numel;
        flat[n] = proa_reshape(t, PROA_INTS(-1));
    }
    proa_tensor *all = averaged(a, proa_concat(((proa_tensors){n, flat})), a->all[first].owner);
    proa_tensors parts = proa_split(all, .sections = ((proa_ints){n, sizes, NULL, NULL}));
    for (int64_t i = 0; i < n && proa_error() == PROA_OK; i++) {
        gradient *g = &a->all[first + i];
        proa_tensor *t = g->handle;
        proa_tensor *part = proa_reshape(parts.at[i], ((proa_ints){t->ndim, t->shape, NULL, NULL}));
        if (part && !g->slot) {
            proa__var_show(t, part->var);
            g->average = part->var; /* t may be changed in place later */
        } else if (part) {
            *g->slot = part;
        }
    }
    return proa_error();
}

/* Handles one output of a replayed op: if `before`, the original variable, is a gradient, notes the new
 * tensor and averages the bucket when this was its last gradient. */
static proa_status note_output(averaging *a, const proa_var *before, proa_tensor **now)
{
    gradient *g = before ? proa__hash_map_find(&a->by_var, before) : NULL;
    if (!g || g->made) return PROA_OK;
    g->made = true;
    g->handle = *now;
    g->slot = now;
    if (--a->waiting[g->bucket]) return PROA_OK;
    bool alone = (g == a->all || g[-1].bucket != g->bucket) &&
                 (g == a->all + a->count - 1 || g[1].bucket != g->bucket);
    if (!alone) return exchange(a, g->bucket);
    *now = averaged(a, *now, g->owner);
    return proa_error();
}

static proa_status send_on(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    averaging *a = context;
    (void)block;
    PROA_TRY(proa_call_op(instr->op, args));
    proa_tensor **before;
    for (int64_t k = 0; (before = proa__out_slot(instr->op, instr->args, k, NULL)); k++)
        PROA_TRY(note_output(a, proa__slot_var(*before), proa__out_slot(instr->op, args, k, NULL)));
    for (int64_t k = 0; (before = proa__out_slot(instr->op, instr->args, k, NULL)); k++) {
        gradient *g =
            proa__slot_var(*before) ? proa__hash_map_find(&a->by_var, proa__slot_var(*before)) : NULL;
        if (g) g->slot = NULL;
    }
    return PROA_OK;
}

/* ---- names ----------------------------------------------------------------------------- */

/* Gradients may be averaged over one group after the other. */
#define LOCAL "@LOCAL"
enum { MAX_AVERAGES = 4 };

/* Gives the averaged pieces the names of the gradients that they replace, which become NAME@LOCAL. Ops read
 * the averages already; a piece put into its op's output slot has the name already. */
static proa_status rename_averages(const averaging *a, proa_block *b)
{
    for (int64_t i = 0; i < a->count; i++) {
        gradient *g = &a->all[i];
        proa_var *now = g->average;
        if (!now || now == g->var) continue;
        size_t length = strlen(g->var->name), capacity = length + MAX_AVERAGES * strlen(LOCAL) + 1;
        char *name = proa_scope_alloc(capacity), *local = proa_scope_alloc(capacity);
        if (!name || !local) return proa_error();
        snprintf(name, capacity, "%s", g->var->name);
        snprintf(local, capacity, "%s", name);
        do strncat(local, LOCAL, capacity - strlen(local) - 1);
        while (proa__hash_map_find(&b->names, local) && strlen(local) + 1 < capacity);
        PROA_TRY(proa__var_rename(b, g->var, local));
        PROA_TRY(proa__var_rename(b, now, name));
    }
    return PROA_OK;
}

/* ---- the call -------------------------------------------------------------------------- */

static proa_status collect(averaging *a, const proa_program *p, proa_tensors grads, proa_ints owners,
                           gradient *given)
{
    for (int64_t i = 0; i < grads.count; i++) {
        proa_var *v = proa__var_behind(p, grads.at[i]);
        if (!v)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: gradient %lld is no variable of the program",
                             a->who, (long long)i);
        int64_t owner = owners.count ? owners.at[i] : -1;
        if (owners.count && (owner < 0 || owner >= a->ranks))
            return proa_fail(
                PROA_ERR_INVALID_ARGUMENT,
                "%s: the owner of gradient %lld must be a rank of the group, 0 to %lld, got %lld", a->who,
                (long long)i, (long long)a->ranks - 1, (long long)owner);
        given[i] = (gradient){.var = v, .owner = owner};
        PROA_TRY(proa__hash_map_put(&a->by_var, v, &given[i]));
    }
    return PROA_OK;
}

static proa_status average(const char *who, proa_program *p, proa_tensors grads, proa_ints owners,
                           const proa_group *group, int64_t bucket_bytes)
{
    PROA_TRY(proa_error());
    if (!p || bucket_bytes < 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "%s: needs a program, and bytes of a bucket that are not negative", who);
    if (!group) group = proa_world_group();
    if (!group) return proa_error();
    if (grads.count == 0 || proa_group_size(group) == 1) return PROA_OK;
    PROA_SCOPED;
    PROA_NO_GRAD;
    size_t n = (size_t)grads.count;
    averaging a = {.who = who, .group = proa_group_id(group), .ranks = proa_group_size(group)};
    gradient *given = proa_scope_alloc(n * sizeof *given);
    a.all = proa_scope_alloc(n * sizeof *a.all);
    a.waiting = proa_scope_alloc(n * sizeof *a.waiting);
    if (!given || !a.all || !a.waiting) return proa_error();
    memset(a.waiting, 0, n * sizeof *a.waiting);
    proa_status status = collect(&a, p, grads, owners, given);
    if (status == PROA_OK) status = deal(&a, proa__root(p), bucket_bytes ? bucket_bytes : 32 << 20);
    proa__replay_hook hook = {send_on, &a};
    int32_t role = p->role;
    if (status == PROA_OK) status = proa__program_replay(p, &hook);
    p->role = role;
    if (status == PROA_OK) status = rename_averages(&a, proa__root(p));
    proa__hash_map_clear(&a.by_var);
    return status;
}

proa_status proa_program_average_gradients(proa_program *p, proa_tensors grads, const proa_group *group,
                                           int64_t bucket_bytes)
{
    return average("program_average_gradients", p, grads, (proa_ints){0}, group, bucket_bytes);
}

proa_status proa_program_reduce_gradients(proa_program *p, proa_tensors grads, proa_ints owners,
                                          const proa_group *group, int64_t bucket_bytes)
{
    const char *who = "program_reduce_gradients";
    if (owners.count != grads.count)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "%s: expected an owner for each of %lld gradients, got %lld", who,
                         (long long)grads.count, (long long)owners.count);
    return average(who, p, grads, owners, group, bucket_bytes);
}
