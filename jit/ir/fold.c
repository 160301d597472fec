/* Constant folding: replays a program, runs at once the ops that depend on constants only, and stores their
 * results as persistables. May use core, kernels and ops. */
#include "program.h"

#include "core/blocked.h"
#include "core/deferred.h"
#include "core/copy.h"
#include "core/group.h"
#include "core/internal.h"
#include "core/run.h"
#include "core/args_visit.h"
#include "kernels/page_release.h"

/* Results of one op are folded up to this many bytes (64 KiB), or up to twice the bytes of its inputs if that
 * is more, so that folding does not inflate a model. */
enum { FOLD_FREE_BYTES = 1 << 16 };

typedef struct folding {
    bool frozen;
    proa__hash_map written;  /* persistable variables that ops write */
    proa__hash_map constant; /* folded results */
    /* of one op: */
    proa_program *program;
    bool possible;
    int64_t bytes_in, bytes_out;
} folding;

static proa_status note_write(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    folding *fold = context;
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    return v && v->persistable ? proa__hash_map_put(&fold->written, v, v) : PROA_OK;
}

static int64_t bytes_of(const proa_tensor *t)
{
    return t->numel * (int64_t)proa_dtype_size((proa_dtype)t->dtype);
}

static proa_status look_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    folding *fold = context;
    const proa_tensor *t = *slot;
    (void)f, (void)index;
    if (proa__slot_empty(t)) return PROA_OK;
    const proa_var *v = proa__hash_map_find(&fold->program->concrete, t);
    bool constant = proa__hash_map_find(&fold->constant, t) ||
                    (fold->frozen && v && !proa__hash_map_find(&fold->written, v));
    if (t->flags & PROA_T_SYMBOLIC || !constant) fold->possible = false;
    if (fold->possible) fold->bytes_in += bytes_of(t);
    return PROA_OK;
}

static proa_status look_write(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    folding *fold = context;
    (void)f, (void)index;
    if (!proa__slot_empty(*slot)) fold->possible = false; /* written in place: not foldable */
    return PROA_OK;
}

static void add_meta(folding *fold, const proa_meta *m)
{
    int64_t bytes = (int64_t)proa_dtype_size(m->dtype);
    for (int d = 0; d < m->ndim; d++)
        if (m->shape[d] < 0 || __builtin_mul_overflow(bytes, m->shape[d], &bytes)) fold->possible = false;
    if (m->ndim >= 0 && __builtin_add_overflow(fold->bytes_out, bytes, &fold->bytes_out))
        fold->possible = false;
}

static proa_status size_outputs(folding *fold, const proa_op *op, void *args)
{
    char metas[PROA_METAS_MAX] __attribute__((aligned(16)));
    proa_call call = {op, args, 0};
    memset(metas, 0, sizeof metas);
    PROA_TRY(proa__infer_call(&call, metas));
    proa__meta_ref m = proa__meta_first(metas);
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_metas all = proa__metas_of(m, &op->fields[i]);
        for (int64_t k = 0; k < all.count; k++) add_meta(fold, &all.at[k]);
        m = proa__meta_next(m, &op->fields[i]);
    }
    if (fold->bytes_out > FOLD_FREE_BYTES && fold->bytes_out > 2 * fold->bytes_in) fold->possible = false;
    return PROA_OK;
}

static proa_status note_constant(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    folding *fold = context;
    (void)f, (void)index;
    if (proa__slot_empty(*slot)) return PROA_OK;
    *slot = proa_return(proa__contiguous(*slot)); /* not a view, so that plans read it without a copy */
    return *slot ? proa__hash_map_put(&fold->constant, *slot, *slot) : proa_error();
}

void proa__constant_was_read(const proa_tensor *t)
{
    if (t->data && !(t->flags & PROA_T_DEVICE)) proa__release_pages(t->data, (size_t)bytes_of(t));
}

/* A slot of `args` itself, whose owner has another copy; lists are shared with that copy. */
static bool is_own(const proa_tensor *t, const proa_field *f)
{
    return !proa__makes_list(f) && !proa__slot_empty(t);
}

static proa_status read_once(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)index, (void)context;
    if (is_own(*slot, f)) *slot = proa__deferred_once(*slot);
    return proa_error();
}

static proa_status was_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)index, (void)context;
    if (is_own(*slot, f)) proa__constant_was_read(*slot);
    return PROA_OK;
}

/* Views share the memory of what they read, and lists of outputs are the scope's. */
static bool keeps_scope(const proa_op *op)
{
    bool keeps = op->view;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) keeps |= proa__makes_list(&op->fields[i]);
    return keeps;
}

/* Runs an op on constants, whose elements then leave memory if nobody else has asked for them. */
static proa_status run_now(folding *fold, const proa_op *op, void *args)
{
    if (keeps_scope(op)) {
        PROA_TRY(proa_call_from(PROA_DOOR_WATCH, op, args));
        return proa__args_visit(op, args, PROA_OUT, note_constant, fold);
    }
    PROA_SCOPED;
    PROA_TRY(proa__args_visit(op, args, PROA_IN, read_once, NULL));
    PROA_TRY(proa_call_from(PROA_DOOR_WATCH, op, args));
    PROA_TRY(proa__args_visit(op, args, PROA_IN, was_read, NULL));
    return proa__args_visit(op, args, PROA_OUT, note_constant, fold);
}

static proa_status fold_op(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    folding *fold = context;
    const proa_op *op = instr->op;
    fold->possible = block->parent < 0 && op->n_out > 0 && !proa__has_block(op) &&
                     !(op->flags & (PROA_OP_RANDOM | PROA_OP_MUTATES | PROA_OP_DATA_SHAPE)) &&
                     !proa__op_communicates(op);
    fold->bytes_in = fold->bytes_out = 0;
    if (fold->possible) {
        PROA_TRY(proa__args_visit_reads(op, args, look_read, fold));
        PROA_TRY(proa__args_visit(op, args, PROA_OUT, look_write, fold));
    }
    if (fold->possible) PROA_TRY(size_outputs(fold, op, args));
    if (!fold->possible) return proa_call_from(PROA_DOOR_CAPTURE, op, args);
    proa_block *was = proa__capture_into(NULL);
    proa_status status = run_now(fold, op, args);
    proa__capture_into(was);
    return status;
}

proa_status proa__program_fold(proa_program *p, bool frozen)
{
    PROA_TRY(proa_error());
    folding fold = {.frozen = frozen, .program = p};
    proa_status status = PROA_OK;
    for (int32_t k = 0; k < p->n_blocks; k++)
        for (int32_t i = 0; status == PROA_OK && i < p->blocks[k]->n_ops; i++) {
            const proa_instr *instr = &p->blocks[k]->ops[i];
            status = proa__args_visit(instr->op, instr->args, PROA_OUT, note_write, &fold);
        }
    if (status == PROA_OK) status = proa__program_replay(p, &(proa__replay_hook){fold_op, &fold});
    if (status == PROA_OK) status = proa__program_prune(p, true);
    proa__hash_map_clear(&fold.written);
    proa__hash_map_clear(&fold.constant);
    return status;
}
