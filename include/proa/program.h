/* Programs: recorded op calls that can be saved, loaded and executed. Implemented by jit/ (and io/ for
 * files, see proa/io.h). Needs proa/core.h. */
#ifndef PROA_PROGRAM_H
#define PROA_PROGRAM_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct proa_program proa_program;
typedef struct proa_executor proa_executor;

/* An input of a captured function; dim −1: any length. */
typedef struct proa_input_spec {
    const char *name; /* NULL: "x", "x_1", … */
    proa_ints shape;
    proa_dtype dtype; /* PROA_NODTYPE: float32 */
} proa_input_spec;

/* Captures fn, called once with symbolic inputs, as a program; its outputs are those that fn returned.
 * Concrete tensors that fn uses become the program's persistable variables (shared, not copied). Calls that
 * would give other results in a program than in eager execution are an error. */
PROA_API proa_program *proa_capture(proa_tensors (*fn)(proa_tensors inputs, void *context),
                                    const proa_input_spec *inputs, int64_t n_inputs, void *context);
/* Accepts NULL; a program that is open on this thread is closed first. Its symbolic tensors may live on, and
 * are BAD_STATE where they are used. */
PROA_API void proa_program_free(proa_program *p);
/* Removes ops that no output needs, except those that write persistable variables. proa_capture calls it. */
PROA_API proa_status proa_program_prune(proa_program *p);
/* Removes every op that no output needs, even if it writes a persistable variable: leaves a program for
 * inference. */
PROA_API proa_status proa_program_trim(proa_program *p);
/* Prints the program as text, one line an op. */
PROA_API proa_status proa_program_print(const proa_program *p, FILE *to);
/* Numbers of inputs and of outputs; 0 for NULL. */
PROA_API int64_t proa_program_input_count(const proa_program *p);
PROA_API int64_t proa_program_output_count(const proa_program *p);
/* The symbolic tensor (name, dtype, shape with −1) of an input or output. Borrowed. */
PROA_API const proa_tensor *proa_program_input(const proa_program *p, int64_t i);
PROA_API const proa_tensor *proa_program_output(const proa_program *p, int64_t i);

/* ---- building ---------------------------------------------------------------------------------
 * A program may also be built call by call: between open and close, every op call of this thread becomes
 * an op of the program. */
/* A new program without ops, inputs or outputs. */
PROA_API proa_program *proa_program_new(void);
/* A deep copy; persistable variables share their tensors. for_test: without the ops of the backward and
 * optimize roles, and with dropout and batch norm in evaluation mode. */
PROA_API proa_program *proa_program_clone(const proa_program *p, bool for_test);
/* A deep copy of a program for evaluation, with dropout and batch norm in training mode: to fine-tune a
 * loaded model. */
PROA_API proa_program *proa_program_clone_to_train(const proa_program *p);
/* Opens p for this thread and returns what was open before (NULL: nothing); p NULL: ops run eagerly. */
PROA_API proa_program *proa_program_open(proa_program *p);
/* The program that is open on this thread; NULL: ops run eagerly. */
PROA_API proa_program *proa_program_current(void);
/* Role of ops appended from now on, as Paddle's op_role: 0 forward, 1 backward, 2 optimize, 16 learning-rate
 * schedule. Returns the role before. */
PROA_API int32_t proa_program_set_role(proa_program *p, int32_t role);
/* Replays every op through the doors: inside PROA_AUTOCAST this inserts the casts of mixed precision, while
 * variables keep name and identity. Call it before gradients are added. marked_only: only ops that were
 * appended under a mark are converted. */
PROA_API proa_status proa_program_recast(proa_program *p, bool marked_only);
/* Sets whether ops appended from now on carry the mark of proa_program_recast; returns the former setting. */
PROA_API bool proa_program_mark(proa_program *p, bool mark);
/* The device (Paddle's op_device: "gpu:1", "cpu", "gpu:all") of ops that this thread appends to programs
 * from now on; their gradients' ops get the same. NULL or "": none. Runs do not heed it; pipelines are cut by
 * it. */
PROA_API proa_status proa_set_op_device(const char *device);
PROA_API const char *proa_op_device(void); /* "": none */
/* Keeps the ops of the root block with these numbers, ascending, and drops the others. Variables that are
 * read, but no longer made, become the inputs; outputs must be set anew. After OUT_OF_MEMORY the program can
 * only be freed. */
PROA_API proa_status proa_program_keep(proa_program *p, proa_ints ops);
/* Puts a receive (p2p_recv, from rank `peer` of a group) in front of op `before`: it makes the variable of
 * that name, which no op made; an input is none any more. */
PROA_API proa_status proa_program_receive(proa_program *p, const char *name, int64_t before, int64_t peer,
                                          int64_t group);
/* A fed variable (static.data): the next input. New symbolic tensor. */
PROA_API proa_tensor *proa_program_data(proa_program *p, const proa_input_spec *spec);
/* Changes the shape of an input, also its rank, and its dtype (PROA_NODTYPE: not), and replays all ops
 * through the doors, so that what is behind it follows. On error (an op that cannot take it) the program
 * stays as it was. */
PROA_API proa_status proa_program_reshape_input(proa_program *p, const proa_tensor *input, proa_ints shape,
                                                proa_dtype dtype);
/* The same for several inputs at once, for ops that take the new shapes of two of them only together. */
PROA_API proa_status proa_program_reshape_inputs(proa_program *p, proa_tensors inputs,
                                                 const proa_ints *shapes, const proa_dtype *dtypes);
/* Declares that the rows of an input form sequences (Paddle's LoD): adds one input per level,
 * "<name>@LOD_<level>", int64 [sequences + 1], for their offsets. In Paddle's files these have no name. */
PROA_API proa_status proa_program_data_lod(proa_program *p, const proa_tensor *data, int32_t levels);
/* The variables that hold the sequence offsets of a variable of p (NULL: of the open program), one per level,
 * outermost first; empty if it has no sequences or they were not declared. Ops whose result has the rows of
 * their first input pass them on. New tensors. */
PROA_API proa_tensors proa_variable_lod(const proa_program *p, const proa_tensor *variable);
/* Sets which variables of the same program hold a variable's sequence offsets; an empty list removes them. */
PROA_API proa_status proa_set_variable_lod(proa_program *p, proa_tensor *variable, proa_tensors levels);
/* A persistable variable without data: bind a tensor, or run a program whose ops write it. The shape has no
 * unknown dims. New symbolic tensor, stop_gradient true. */
PROA_API proa_tensor *proa_program_persistable(proa_program *p, const char *name, proa_ints shape,
                                               proa_dtype dtype);
/* Declares a variable that an op appended later will produce: an op that has it as its output,
 * proa_program_append, or proa_program_define. The op replaces the dtype and dims given here, where −1 is
 * unknown. New symbolic tensor; reading it before that is an error. */
PROA_API proa_tensor *proa_program_declare(proa_program *p, const proa_input_spec *spec);
PROA_API bool proa_program_is_declared(const proa_program *p, const char *name);
/* Gives the name and index of the declared variable to `made`, which an op of the root block made. Tensors of
 * the declared one are valid for proa_program_follow only afterwards. */
PROA_API proa_status proa_program_define(proa_program *p, const char *name, const proa_tensor *made);
/* Makes a symbolic tensor denote the variable that has this name now. */
PROA_API proa_status proa_program_follow(const proa_program *p, proa_tensor *t, const char *name);
/* Sets the tensor of the persistable variable of that name (shared, not copied); NULL removes it. */
PROA_API proa_status proa_program_bind(proa_program *p, const char *name, proa_tensor *value);
/* The tensor of a persistable variable; NULL (no error) if it has none, or there is no such variable.
 * Borrowed. */
PROA_API proa_tensor *proa_program_value(const proa_program *p, const char *name);
/* Moves the tensors of all persistable variables, which others may share, to a device: a run must have them
 * where its inputs are. */
PROA_API proa_status proa_program_to_device(proa_program *p, const char *device);
/* New symbolic tensor of a variable; NULL (no error) if there is none. */
PROA_API proa_tensor *proa_program_find(const proa_program *p, const char *name);
/* The name of the variable that a tensor denotes in p: a symbolic tensor's own, or the persistable with that
 * concrete value. NULL (no error) if there is none. Borrowed. */
PROA_API const char *proa_program_name_of(const proa_program *p, const proa_tensor *t);
/* Renames a variable; a taken name is an error. */
PROA_API proa_status proa_program_rename(proa_program *p, const char *name, const char *to);
/* Sets whether gradients stop at a variable: see proa_program_gradients. */
PROA_API proa_status proa_program_stop_gradient(proa_program *p, const proa_tensor *variable, bool stop);
/* Sets whether a persistable variable is a parameter of the model, as opposed to optimizer state. */
PROA_API proa_status proa_program_mark_parameter(proa_program *p, const char *name, bool parameter);
/* Sets the outputs, which executors fetch and prune and save keep. Symbolic tensors of p. */
PROA_API proa_status proa_program_set_outputs(proa_program *p, proa_tensors outputs);
/* Sets the inputs, in order: symbolic tensors of the root block of p. */
PROA_API proa_status proa_program_set_inputs(proa_program *p, proa_tensors inputs);
/* A counter that every change increments; anything derived from p is outdated when it has changed. */
PROA_API uint64_t proa_program_version(const proa_program *p);

/* A variable of a block, for listing programs. Block 0 is the root. */
typedef struct proa_var_info {
    const char *name;          /* borrowed */
    const proa_tensor *tensor; /* its symbolic tensor (dtype, shape with −1); borrowed */
    bool persistable, is_input, has_value, stop_gradient, is_parameter;
} proa_var_info;
/* Number of blocks; the root is one. */
PROA_API int64_t proa_program_block_count(const proa_program *p);
PROA_API int64_t proa_program_block_parent(const proa_program *p, int64_t block); /* −1: none */
PROA_API int64_t proa_program_var_count(const proa_program *p, int64_t block);
/* Fills *info; OUT_OF_RANGE for an unknown block or variable. */
PROA_API proa_status proa_program_var(const proa_program *p, int64_t block, int64_t i, proa_var_info *info);
PROA_API int64_t proa_program_op_count(const proa_program *p, int64_t block);
/* The op's name in the op table, and its role; NULL on error. */
PROA_API const char *proa_program_op(const proa_program *p, int64_t block, int64_t i, int32_t *role);

/* Names of the root variables that an op of the root block reads and writes. */
typedef struct proa_op_links {
    const char *op, *device; /* the op's name in the op table; its op_device, "" for none; borrowed */
    int32_t role;
    bool repeatable; /* runs again with the same results: not random, no message, no write to a persistable */
    int64_t n_reads, n_writes;
    const char *const *reads, *const *writes; /* in the current scope */
} proa_op_links;
/* Fills *links; OUT_OF_RANGE for an unknown op. */
PROA_API proa_status proa_program_op_links(const proa_program *p, int64_t i, proa_op_links *links);

/* Floating-point operations of an op: products, convolutions, attention, recurrent layers and their
 * gradients, a multiply-add as two. Unknown dims count as `unknown` long. 0 for all other ops; -1 where
 * shapes cannot be inferred, or with an error: OUT_OF_RANGE for an unknown op. */
PROA_API double proa_program_op_flops(const proa_program *p, int64_t block, int64_t i, int64_t unknown);

/* ---- differentiation -------------------------------------------------------------------------- */

/* Appends to p the ops that compute d(sum of targets · their gradients)/d(inputs). targets and inputs are
 * symbolic tensors of p, or the concrete tensors behind its persistables. target_grads: one a target, or an
 * empty list (ones). Result: one symbolic tensor an input, named <name>@GRAD if that is free; PROA_NONE where
 * no gradient arrives. Gradients stop at variables marked by proa_program_stop_gradient and at `no_grad`.
 * Hooks and custom functions do not exist in programs: the ops that they consist of are differentiated. */
PROA_API proa_tensors proa_program_gradients(proa_program *p, proa_tensors targets, proa_tensors inputs,
                                             proa_tensors target_grads, proa_tensors no_grad);

/* ---- control flow -----------------------------------------------------------------------------
 * With a concrete predicate, plain calls of the functions; with a symbolic one, ops with sub-blocks. A
 * function may be called several times. */
typedef proa_tensors (*proa_block_fn)(proa_tensors inputs, void *context);
/* pred: bool, one element. Both functions get no inputs and return as many tensors, of equal dtypes and
 * ranks; dims that differ are −1 in the result. */
PROA_API proa_tensors proa_cond(proa_tensor *pred, proa_block_fn then, proa_block_fn otherwise,
                                void *context);
/* Calls body (vars → vars) while condition (vars → one bool of one element) holds. A dim that the body
 * changes is −1 in the result; dtypes and ranks stay. */
PROA_API proa_tensors proa_while_loop(proa_block_fn condition, proa_block_fn body, proa_tensors vars,
                                      void *context);

/* While a program is built: x, which a function made of the inputs, with a backward of its own. `backward` is
 * called once, on the gradients of x, and returns one gradient an input. BAD_STATE outside a program. */
PROA_API proa_tensors proa_with_backward(proa_tensors x, proa_tensors inputs, proa_block_fn backward,
                                         void *context);

/* A captured function that is one node of the eager tape: its backward is a captured program as well. */
typedef struct proa_compiled proa_compiled;
/* arena_bytes: bytes of the largest arenas; plans: those in the cache (at most FLAGS_kept_plans per
 * executor); plans_made: since the executor was made; overlapped: collectives that were started, and
 * gradients that a reducer got, while later steps of the same run were still to come. */
typedef struct proa_executor_stats {
    int64_t arena_bytes, plans, plans_made, overlapped;
} proa_executor_stats;
/* Captures fn for these inputs (as proa_capture). With `training`, backward of every call runs the captured
 * gradient with respect to inputs and persistables that want one. */
PROA_API proa_compiled *proa_compile(proa_tensors (*fn)(proa_tensors inputs, void *context),
                                     const proa_input_spec *inputs, int64_t n_inputs, void *context,
                                     bool training);
/* proa_compile for an existing program (borrowed; it must outlive the result), as to fine-tune a loaded
 * model. */
PROA_API proa_compiled *proa_compile_program(const proa_program *p, bool training);
PROA_API void proa_compiled_free(proa_compiled *c); /* accepts NULL */
/* Runs the function: new tensors, recorded as one call if recording is on and an input or persistable wants a
 * gradient. */
PROA_API proa_tensors proa_compiled_call(proa_compiled *c, proa_tensors inputs);
/* The forward program; borrowed. */
PROA_API const proa_program *proa_compiled_program(const proa_compiled *c);
/* Sums over the executors of c: one without gradients, and a pair for each recent set of inputs and
 * persistables that want gradients (at most 16 sets). */
PROA_API proa_executor_stats proa_compiled_get_stats(const proa_compiled *c);

/* ---- running ---------------------------------------------------------------------------------- */

/* Runs a program with plans per input shapes (bounded cache) and one arena. Not for two threads at once:
 * clones share the program and have arenas of their own. The program must outlive it. */
PROA_API proa_executor *proa_executor_new(const proa_program *p);
typedef struct proa_executor_opts {
    char _;
    proa_tensors inputs,
        outputs;        /* symbolic tensors of p: what is fed and fetched; empty: the program's own */
    bool prune;         /* leave out ops that the outputs do not need, also those that write persistables */
    bool frozen;        /* persistables that no op writes are constants, and ops on them are folded */
    const char *passes; /* names of the passes to run on a private copy, separated by commas; "": none but
                         * overlap, which "-overlap" leaves out; NULL: all that apply */
} proa_executor_opts;
/* Runs optimizing passes on p itself, as an executor does on its copy, to inspect their result. Afterwards p
 * can be run and printed, but not saved or differentiated: fused ops have no form in Paddle's format. */
PROA_API proa_status proa_program_optimize(proa_program *p, const char *passes, bool frozen);
/* An executor on a private, optimized copy of p as it is now. */
PROA_API proa_executor *proa_executor_with(const proa_program *p, proa_executor_opts opts);
PROA_API void proa_executor_free(proa_executor *e); /* accepts NULL */
/* Runs the program. inputs: in its order; result: new tensors, in the order of its outputs. */
PROA_API proa_tensors proa_executor_run(proa_executor *e, proa_tensors inputs);
PROA_API proa_executor_stats proa_executor_get_stats(const proa_executor *e);

#ifdef __cplusplus
}
#endif
#endif
