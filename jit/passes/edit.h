/* Queries and edits of a block, for passes. May use core and ops. */
#ifndef PROA_JIT_PASSES_EDIT_H
#define PROA_JIT_PASSES_EDIT_H

#include "passes.h"

#include "core/args_visit.h"

#include <string.h>

enum { PROA__NOBODY = -1 };

/* By variable of the block, from one walk over it. */
typedef struct proa__use {
    int32_t maker;                   /* the op that makes it; NOBODY: fed or persistable */
    int32_t n_reads, last_read;      /* slots that read it; the last op that does */
    int32_t first_write, last_write; /* of a persistable; NOBODY: never */
    int32_t n_writes;
    bool kept;        /* an output, or named by another block: it must be made as it is */
    bool overwritten; /* an op works in its memory: nothing may stand for it, or it for anything */
} proa__use;

typedef struct proa__uses {
    proa_block *block;
    proa__use *of; /* by index of the variable */
    int32_t n_vars;
    proa_var **instead; /* what reads of a variable are to read; NULL: itself */
} proa__uses;

proa_status proa__uses_find(proa__uses *u, proa_block *b);
void proa__uses_free(proa__uses *u);
/* The uses of v; NULL for variables of other blocks. */
proa__use *proa__use_of(const proa__uses *u, const proa_var *v);
/* True if what v holds is the same wherever the block reads it: made by an op, fed, or never written. */
bool proa__is_value(const proa__uses *u, const proa_var *v);
/* True if reading v may move from op `from` to op `to` behind it. */
bool proa__may_move(const proa__uses *u, const proa_var *v, int32_t from, int32_t to);
/* The one op that reads v, if v need not be kept and one slot alone reads it; NOBODY otherwise. */
int32_t proa__only_reader(const proa__uses *u, const proa_var *v);
/* True if nobody reads v and it need not be kept. */
bool proa__is_unused(const proa__uses *u, const proa_var *v);
/* The variable that reads of v are to read. */
proa_var *proa__instead_of(const proa__uses *u, proa_var *v);
/* Whether `by` may be read where v is, as far as ops that overwrite their inputs go. */
bool proa__may_replace(const proa__uses *u, const proa_var *v, const proa_var *by);
/* From now on `by` is read where v was; v's op may go when nobody keeps it. */
void proa__replace(proa__uses *u, proa_var *v, proa_var *by);
/* Lets an op read what stands for its inputs by now. */
proa_status proa__read_instead(const proa__uses *u, proa_instr *instr);
/* The block's outputs become what stands for them; ops without args go. */
void proa__uses_apply(proa__uses *u);

/* Looks at the op at `at`, and may put another in the place of it and of those around it. */
typedef proa_status (*proa__rewrite)(proa__uses *u, int32_t at, const proa__pass_context *context);
/* The walk that most passes are: every op of the block in order, but for those that are gone by then. */
proa_status proa__rewrite_ops(proa_block *b, const proa__pass_context *context, proa__rewrite rewrite);

/* Puts another call in the place of an op: args (copied) hold handles of variables. */
proa_status proa__instr_become(proa_instr *instr, const proa_op *op, const void *args);
/* Puts a new op at the end of a block that a pass builds anew. */
proa_status proa__emit(proa_block *b, const char *op, const void *args, const proa_instr *like);
/* Takes a block's ops away, to be put back with proa__emit_old one by one. */
proa_instr *proa__take_ops(proa_block *b, int32_t *n);
/* Appends an op as it is; frees it when that fails. */
proa_status proa__emit_old(proa_block *b, proa_instr *instr);
/* After a failure: frees what of `ops` was not put back, from `at` on, and the array. */
void proa__drop_ops(proa_instr *ops, int32_t at, int32_t n);
/* A variable's tensor, where it is a constant: persistable, with data, never written; else NULL. */
proa_tensor *proa__constant_of(const proa__uses *u, const proa_tensor *slot);
/* The handle of a new persistable with these data. */
proa_tensor *proa__new_constant(proa_block *b, proa_tensor *value);
/* True if the two shapes are one, as far as they are known. */
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
/* True for an optimizer's step over lists of parameters, which it overwrites. */
bool proa__is_step(const proa_instr *instr);
/* True for ops that passes may move, merge or drop: functions of their inputs alone, without sub-blocks. */
bool proa__is_pure(const proa_op *op);

#endif
