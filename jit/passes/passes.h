/* Optimizing passes: each changes one block's ops so that it computes the same with less. They run on an
 * executor's private copy of a program, never on a user's. May use core and ops. */
#ifndef PROA_JIT_PASSES_PASSES_H
#define PROA_JIT_PASSES_PASSES_H

#include "jit/ir/program.h"

/* What a pass is told beside the block. */
typedef struct proa__pass_context {
    bool frozen;    /* persistables that no op writes never change */
    bool on_device; /* it is to run on another device than the CPU, as far as can be told by now */
} proa__pass_context;

typedef struct proa__pass {
    const char *name, *doc;
    bool frozen; /* for programs whose parameters never change only */
    bool whole;  /* sees forward and backward together: runs before a program is cut in two */
    proa_status (*run)(proa_block *b, const proa__pass_context *context);
} proa__pass;

/* In the order in which they run; ends with a name of NULL. */
extern const proa__pass proa__pass_table[];

/* Runs passes on every block. names: NULL or "all": all; "" or "none": none; otherwise names by comma,
 * where "-name" leaves one out ("-cse,-layout": all but these). FLAGS_passes, in the same form, is
 * asked where names is NULL. An unknown name is an error that lists those there are. With
 * FLAGS_dump_passes, prints the program to stderr before the first pass and after each that changed
 * it. */
proa_status proa__passes_run(proa_program *p, const char *names, bool frozen);

/* The same, of passes that see forward and backward together; FLAGS_passes says which. */
proa_status proa__passes_run_whole(proa_program *p);

proa_status proa__pass_fold(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_identity(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_cse(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_batch_norm(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_conv_relu_pool(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_max_pool_indices(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_recompute(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_epilogue_fusion(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_linear(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_transpose_folding(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_layout(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_inverted_residual(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_elementwise(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_optimizer(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_optimizer_interleaving(proa_block *b, const proa__pass_context *context);
proa_status proa__pass_dead(proa_block *b, const proa__pass_context *context);

#endif
