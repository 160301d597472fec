/* Optimizing passes: each rewrites one block so that it computes the same results, up to rounding, with less
 * work or memory. They run on private copies of a program, and on a user's only through
 * proa_program_optimize. May use core and ops. */
#ifndef PROA_JIT_PASSES_PASSES_H
#define PROA_JIT_PASSES_PASSES_H

#include "jit/ir/program.h"
#include "op_types.h"

/* Arguments of a pass beside the block. */
typedef struct proa__pass_context {
    bool frozen;         /* persistables that no op of the program writes never change */
    bool on_device;      /* the program will probably run on another device than the CPU */
    proa__op_types int8; /* the op types that the pass int8 may convert */
} proa__pass_context;

typedef struct proa__pass {
    const char *name, *doc;
    bool frozen; /* only for programs whose parameters never change */
    bool whole;  /* needs forward and backward together: runs before a program is cut in two */
    bool asked;  /* runs only if it is named: results differ by more than float32 rounding */
    proa_status (*run)(proa_block *b, const proa__pass_context *context);
} proa__pass;

/* X(name, description for users, frozen, whole, asked) of each pass, in the order in which they run; its
 * function is proa__pass_<name>. docs/add-a-pass.md adds one. */
#define PROA__PASSES(X)                                                                                      \
    X(int8, "runs quantized products as INT8 kernels; adds, pooling and reshapes between them on integers",  \
      true, false, true)                                                                                     \
    X(fold, "folds ops whose inputs are constants", false, false, false)                                     \
    X(identity,                                                                                              \
      "removes copies, casts to the same dtype, scalings by one, and reshapes and transposes that cancel",   \
      false, false, false)                                                                                   \
    X(cse, "eliminates common subexpressions", false, false, false)                                          \
    X(batch_norm, "folds batch norm with fixed statistics into the weights before it", true, false, false)   \
    X(conv_relu_pool,                                                                                        \
      "fuses convolution + ReLU + max pooling in training; their gradients read the argmax alone", false,    \
      true, false)                                                                                           \
    X(max_pool_indices,                                                                                      \
      "saves argmax for the max-pool backward; moves the gradient of a ReLU to the pooled side", false,      \
      true, false)                                                                                           \
    X(recompute, "recomputes dropout outputs in the backward instead of storing them", false, true, false)   \
    X(epilogue_fusion, "fuses bias, residual and activation into convolutions and linear layers", false,     \
      false, false)                                                                                          \
    X(linear, "on a device, fuses GELU, its gradient and bias sums into matrix products of training", false, \
      false, false)                                                                                          \
    X(transpose_folding, "folds the transpose that merges attention heads into the product before it",       \
      false, false, false)                                                                                   \
    X(layout, "runs convolutions channels-last, so that no operand is reordered", true, false, false)        \
    X(inverted_residual, "fuses inverted residual blocks: 1x1, depthwise and 1x1 convolutions", true, false, \
      false)                                                                                                 \
    X(elementwise, "fuses chains of elementwise ops and runs them tile by tile", false, false, false)        \
    X(optimizer, "merges optimizer steps into one op over many parameters", false, false, false)             \
    X(optimizer_interleaving, "moves optimizer steps up to their gradients, whose memory is then free",      \
      false, false, false)                                                                                   \
    X(overlap, "moves what reads a collective's result behind work that runs beside the collective", false,  \
      false, false)                                                                                          \
    X(dead, "eliminates dead code", false, false, false)

#define PROA__PASS_FUNCTION(name, doc, frozen, whole, asked) \
    proa_status proa__pass_##name(proa_block *b, const proa__pass_context *context);
PROA__PASSES(PROA__PASS_FUNCTION)

/* The table of passes, ended by an entry without name. */
extern const proa__pass proa__pass_table[];

/* Runs passes on every block. names: NULL or "all": all but those that run only if named; "" or "none": none;
 * otherwise names separated by commas, where "-name" leaves one out ("-cse,-layout": all but these). The pass
 * overlap, which only changes the order of ops, runs unless names or FLAGS_passes have "-overlap". If names
 * is NULL, FLAGS_passes is used, in the same form. An unknown name is an error that lists the known ones.
 * With FLAGS_dump_passes, prints the program to stderr before the first pass and after each that changed
 * it. */
proa_status proa__passes_run(proa_program *p, const char *names, bool frozen);
/* The same for a frozen program, of which the pass int8 converts the listed op types. */
proa_status proa__passes_run_int8(proa_program *p, const char *names, proa__op_types int8);

/* Runs one pass on a frozen program, if names choose it. */
proa_status proa__passes_run_one(proa_program *p, const char *names, const char *pass);

/* Runs the passes that need forward and backward together, as FLAGS_passes says. */
proa_status proa__passes_run_whole(proa_program *p);

#endif
