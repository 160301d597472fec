/* Queries and edits of a block, for passes. May use core and ops. */
#ifndef PROA_JIT_PASSES_EDIT_H
#define PROA_JIT_PASSES_EDIT_H

#include "passes.h"

#include "core/args_visit.h"

#include <string.h>

enum { PROA__NOBODY = -1 };

/* Uses of a variable, found by one walk over the block, and over other blocks for what they name of it. */
typedef struct proa__use {
    int32_t maker;                   /* the op that makes it; NOBODY: fed or persistable */
    int32_t n_reads, last_read;      /* number of slots that read it; the last op that does */
    int32_t first_write, last_write; /* of a persistable; NOBODY: never */
    int32_t n_writes;
    bool kept;        /* must be made unchanged: an input or output of the block, or named by another block */
    bool overwritten; /* an op overwrites its memory: may not replace a variable or be replaced */
} proa__use;

typedef struct proa__uses {
    proa_block *block;
    proa__use *of; /* indexed by variable */
    int32_t n_vars;
    proa_var **instead; /* by variable: the variable to read instead; NULL: itself */
} proa__uses;

proa_status proa__uses_find(proa__uses *u, proa_block *b);
void proa__uses_free(proa__uses *u);
/* The uses of v; NULL for variables of other blocks. */
proa__use *proa__use_of(const proa__uses *u, const proa_var *v);
/* True if v has the same value wherever the block reads it: it is made by an op, fed, or never written. */
bool proa__is_value(const proa__uses *u, const proa_var *v);
/* True if reading v may be moved from op `from` to the later op `to`. */
bool proa__may_move(const proa__uses *u, const proa_var *v, int32_t from, int32_t to);
/* proa__may_move for the variables of n slots; slots without one do not matter. */
bool proa__all_may_move(const proa__uses *u, proa_tensor *const *slots, int n, int32_t from, int32_t to);
/* The op that reads v, if exactly one slot reads v and v need not be kept; NOBODY otherwise. */
int32_t proa__only_reader(const proa__uses *u, const proa_var *v);
/* True if nobody reads v and it need not be kept. */
bool proa__is_unused(const proa__uses *u, const proa_var *v);
/* The variable that is to be read in place of v: v itself unless it was replaced. */
proa_var *proa__instead_of(const proa__uses *u, proa_var *v);
/* True if `by` may be read where v is, considering ops that overwrite their inputs. */
bool proa__may_replace(const proa__uses *u, const proa_var *v, const proa_var *by);
/* Replaces v by `by` in all its readers. v's op may be removed if v need not be kept. */
void proa__replace(proa__uses *u, proa_var *v, proa_var *by);
/* Replaces an op's inputs by the variables that are to be read instead. */
proa_status proa__read_instead(const proa__uses *u, proa_instr *instr);
/* Replaces the block's outputs, too, and removes ops without args. */
void proa__uses_apply(proa__uses *u);

/* Examines the op at `at`; may replace it and ops around it. */
typedef proa_status (*proa__rewrite)(proa__uses *u, int32_t at, const proa__pass_context *context);
/* Calls `rewrite` for every op of the block in order, except ops that were removed before their turn. */
proa_status proa__rewrite_ops(proa_block *b, const proa__pass_context *context, proa__rewrite rewrite);

/* Replaces an op by another call; args (copied) hold handles of variables. */
proa_status proa__instr_become(proa_instr *instr, const proa_op *op, const void *args);
/* Appends a new op to a block that a pass rebuilds. */
proa_status proa__emit(proa_block *b, const char *op, const void *args, const proa_instr *like);
/* Takes away a block's ops; the pass puts them back with proa__emit_old one by one. */
proa_instr *proa__take_ops(proa_block *b, int32_t *n);
/* Appends an op as it is; frees it when that fails. */
proa_status proa__emit_old(proa_block *b, proa_instr *instr);
/* Frees the ops that were not put back, from index `at` on, and the array. */
void proa__drop_ops(proa_instr *ops, int32_t at, int32_t n);
/* The tensor of a constant: a persistable with data that is never written; else NULL. */
proa_tensor *proa__constant_of(const proa__uses *u, const proa_tensor *slot);
/* The elements of a constant, row-major in the CPU's memory, read now if they are deferred. NULL: t is
 * strided or on a device, or (with an error) cannot be read. */
const void *proa__constant_data(const proa_tensor *t);
/* The handle of a new persistable with these data. */
proa_tensor *proa__new_constant(proa_block *b, proa_tensor *value);
/* True if the two shapes are equal; unknown dims must be unknown in both. */
bool proa__same_shape(const proa_tensor *a, const proa_tensor *b);
/* True if two lists of constants are equal. */
bool proa__same_ints(const proa_ints *a, const proa_ints *b);
/* True if every entry is `value`. */
bool proa__all_are(const proa_ints *v, int64_t value);
/* True if op is the one of that name. */
static inline bool proa__is_op(const proa_instr *instr, const char *name)
{
    return instr->args && strcmp(instr->op->name, name) == 0;
}
/* True for an optimizer step over lists of parameters, which it overwrites. */
bool proa__is_step(const proa_instr *instr);
/* True for ops that passes may move, merge or remove: they have results that depend on their inputs only,
 * change no input, do not communicate, and have no sub-blocks. */
bool proa__is_pure(const proa_op *op);

#endif
