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

/* Records fn, called once with symbolic inputs, as a program whose outputs are what fn returned. Concrete
 * tensors that fn uses become the program's persistable variables (shared, not copied). What cannot be
 * captured so that it agrees with eager execution is an error. */
PROA_API proa_program *proa_capture(proa_tensors (*fn)(proa_tensors inputs, void *context),
                                    const proa_input_spec *inputs, int64_t n_inputs, void *context);
/* Accepts NULL; a program that is open on this thread is closed first. Its symbolic tensors may live on, and
 * are BAD_STATE where they are used. */
PROA_API void proa_program_free(proa_program *p);
/* Drops ops that no output needs. proa_capture does so by itself. */
PROA_API proa_status proa_program_prune(proa_program *p);
/* Drops every op that no output needs, writes of persistable variables too: what is left only predicts. */
PROA_API proa_status proa_program_trim(proa_program *p);
/* One line an op, for people. */
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
/* An empty one: no ops, inputs or outputs. */
PROA_API proa_program *proa_program_new(void);
/* A deep copy; persistable variables share their tensors. for_test: what only trains goes (ops of the
 * backward and optimize roles), and dropout and batch norm do what they do in evaluation. */
PROA_API proa_program *proa_program_clone(const proa_program *p, bool for_test);
/* A deep copy of a program for evaluation, in which dropout and batch norm do what they do in training: a
 * loaded model that is to be tuned. */
PROA_API proa_program *proa_program_clone_to_train(const proa_program *p);
/* Opens p for this thread and returns what was open before (NULL: nothing); p NULL: ops run eagerly. */
PROA_API proa_program *proa_program_open(proa_program *p);
/* The program that is open on this thread; NULL: ops run eagerly. */
PROA_API proa_program *proa_program_current(void);
/* Role of ops appended from now on, as Paddle's op_role: 0 forward, 1 backward, 2 optimize, 16 learning-rate
 * schedule. Returns the role before. */
PROA_API int32_t proa_program_set_role(proa_program *p, int32_t role);
/* Sends every op through the doors once more: inside PROA_AUTOCAST what it converts is converted, and
 * variables keep name and identity (static mixed precision, before gradients are added). marked_only: only
 * ops that were appended under a mark are converted. */
PROA_API proa_status proa_program_recast(proa_program *p, bool marked_only);
/* Whether ops appended from now on carry the mark; returns whether they did. */
PROA_API bool proa_program_mark(proa_program *p, bool mark);
/* A fed variable (static.data): the next input. New symbolic tensor. */
PROA_API proa_tensor *proa_program_data(proa_program *p, const proa_input_spec *spec);
/* Gives an input another shape, also one of another rank, and sends all ops through the doors again, so that
 * what they make follows. On an error (an op that cannot take it) the program stays as it was. */
PROA_API proa_status proa_program_reshape_input(proa_program *p, const proa_tensor *input, proa_ints shape);
/* Says that the rows of an input form sequences (Paddle's LoD): makes one more input a level,
 * "<name>@LOD_<level>", int64 [sequences + 1], for their offsets. In Paddle's files these have no name. */
PROA_API proa_status proa_program_data_lod(proa_program *p, const proa_tensor *data, int32_t levels);
/* The offsets of the levels of sequences of a variable of p (NULL: the program that is open), outermost
 * first; none where it has no sequences, or nobody said which. Ops whose result has the rows of their
 * first input hand them on. New tensors. */
PROA_API proa_tensors proa_variable_lod(const proa_program *p, const proa_tensor *variable);
/* Says which variables of the same program hold them; an empty list takes them away. */
PROA_API proa_status proa_set_variable_lod(proa_program *p, proa_tensor *variable, proa_tensors levels);
/* A persistable variable that has no data yet: bind them, or run the program whose ops write it. The shape
 * has no unknown dims. New symbolic tensor, stop_gradient true. */
PROA_API proa_tensor *proa_program_persistable(proa_program *p, const char *name, proa_ints shape,
                                               proa_dtype dtype);
/* A variable that an op appended later makes: an op that is given it as its output,
 * proa_program_append, or proa_program_define. dims of −1 and dtype are a guess that the op corrects. New
 * symbolic tensor; reading it before is an error. */
PROA_API proa_tensor *proa_program_declare(proa_program *p, const proa_input_spec *spec);
PROA_API bool proa_program_is_declared(const proa_program *p, const char *name);
/* Gives the declared variable's name and place to `made`, which an op of the root block made. Tensors of the
 * declared one are good for proa_program_follow alone afterwards. */
PROA_API proa_status proa_program_define(proa_program *p, const char *name, const proa_tensor *made);
/* Makes a symbolic tensor stand for the variable that has the name now. */
PROA_API proa_status proa_program_follow(const proa_program *p, proa_tensor *t, const char *name);
/* Gives a persistable variable of that name its tensor (shared, not copied); NULL takes it away. */
PROA_API proa_status proa_program_bind(proa_program *p, const char *name, proa_tensor *value);
/* The tensor of a persistable variable; NULL (no error) if it has none, or there is no such variable.
 * Borrowed. */
PROA_API proa_tensor *proa_program_value(const proa_program *p, const char *name);
/* Moves the tensors of all persistable variables, which others may share, to a device: a run must have them
 * where its inputs are. */
PROA_API proa_status proa_program_to_device(proa_program *p, const char *device);
/* New symbolic tensor of a variable; NULL (no error) if there is none. */
PROA_API proa_tensor *proa_program_find(const proa_program *p, const char *name);
/* The name of the variable that a tensor stands for in p (a symbolic one's own, or the persistable that a
 * concrete one is the value of); NULL (no error) if it stands for none. Borrowed. */
PROA_API const char *proa_program_name_of(const proa_program *p, const proa_tensor *t);
/* Renames a variable; a taken name is an error. */
PROA_API proa_status proa_program_rename(proa_program *p, const char *name, const char *to);
/* A variable so marked lets no gradient pass: see proa_program_gradients. */
PROA_API proa_status proa_program_stop_gradient(proa_program *p, const proa_tensor *variable, bool stop);
/* Whether a persistable variable is one of the model's parameters, as opposed to an optimizer's state. */
PROA_API proa_status proa_program_mark_parameter(proa_program *p, const char *name, bool parameter);
/* Sets the outputs, which runs, prune and save go by. Symbolic tensors of p. */
PROA_API proa_status proa_program_set_outputs(proa_program *p, proa_tensors outputs);
/* Sets the inputs, in order: symbolic tensors of the root block of p. */
PROA_API proa_status proa_program_set_inputs(proa_program *p, proa_tensors inputs);
/* Grows with every change: what was made from p is to be made anew when it has. */
PROA_API uint64_t proa_program_version(const proa_program *p);

/* Blocks (0: the root), their variables and ops, for whoever lists them. */
typedef struct proa_var_info {
    const char *name;          /* borrowed */
    const proa_tensor *tensor; /* its symbolic tensor (dtype, shape with −1); borrowed */
    bool persistable, is_input, has_value, stop_gradient, is_parameter;
} proa_var_info;
/* Number of blocks; the root is one. */
PROA_API int64_t proa_program_block_count(const proa_program *p);
PROA_API int64_t proa_program_block_parent(const proa_program *p, int64_t block); /* −1: none */
PROA_API int64_t proa_program_var_count(const proa_program *p, int64_t block);
/* Fills *info; OUT_OF_RANGE for a block or variable that there is not. */
PROA_API proa_status proa_program_var(const proa_program *p, int64_t block, int64_t i, proa_var_info *info);
PROA_API int64_t proa_program_op_count(const proa_program *p, int64_t block);
/* The table's name of an op, and its role; NULL on error. */
PROA_API const char *proa_program_op(const proa_program *p, int64_t block, int64_t i, int32_t *role);

/* Floating-point operations of an op: products, convolutions, attention, recurrent layers and their
 * gradients, a multiply-add as two, with dims that are unknown until a run taken to be `unknown` long. 0 for
 * all other ops; -1 where its shapes do not follow, or with an error: OUT_OF_RANGE for an op that there is
 * not. */
PROA_API double proa_program_op_flops(const proa_program *p, int64_t block, int64_t i, int64_t unknown);

/* ---- differentiation -------------------------------------------------------------------------- */

/* Appends to p the ops that compute d(sum of targets · their gradients)/d(inputs). targets and inputs are
 * symbolic tensors of p, or the concrete tensors behind its persistables. target_grads: one a target, or an
 * empty list (ones). Result: one symbolic tensor an input, called <name>@GRAD where that is free; PROA_NONE
 * where no gradient arrives. A variable marked by proa_program_stop_gradient lets none pass; so do
 * `no_grad`'s. Hooks and custom functions have no place in a program: what went through one is differentiated
 * as the ops that it consists of. */
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

/* ---- training calls ---------------------------------------------------------------------------
 * A captured function that is one step of the eager tape: its backward is a captured program as well. */
typedef struct proa_compiled proa_compiled;
/* Bytes of the largest arenas, plans kept (an executor: FLAGS_kept_plans at most), plans made in all. */
typedef struct proa_executor_stats {
    int64_t arena_bytes, plans, plans_made;
} proa_executor_stats;
/* Captures fn for these inputs (as proa_capture). With `training`, backward of every call runs the captured
 * gradient with respect to inputs and persistables that want one. */
PROA_API proa_compiled *proa_compile(proa_tensors (*fn)(proa_tensors inputs, void *context),
                                     const proa_input_spec *inputs, int64_t n_inputs, void *context,
                                     bool training);
/* The same of a program that exists (borrowed; it must outlive the result): a loaded model to be tuned. */
PROA_API proa_compiled *proa_compile_program(const proa_program *p, bool training);
PROA_API void proa_compiled_free(proa_compiled *c); /* accepts NULL */
/* New tensors, recorded as one call while recording is on and something wants a gradient. */
PROA_API proa_tensors proa_compiled_call(proa_compiled *c, proa_tensors inputs);
/* The forward program; borrowed. */
PROA_API const proa_program *proa_compiled_program(const proa_compiled *c);
/* Of the executors that c keeps, together; a function keeps programs for at most 16 choices of what wants
 * gradients. */
PROA_API proa_executor_stats proa_compiled_get_stats(const proa_compiled *c);

/* ---- running ---------------------------------------------------------------------------------- */

/* Runs a program with plans per input shapes (bounded cache) and one arena. Not for two threads at once:
 * clones share the program and have arenas of their own. The program must outlive it. */
PROA_API proa_executor *proa_executor_new(const proa_program *p);
typedef struct proa_executor_opts {
    char _;
    proa_tensors inputs,
        outputs;        /* symbolic tensors of p: what is fed and fetched; empty: the program's own */
    bool prune;         /* leave out what the outputs do not need, writes of persistables included */
    bool frozen;        /* persistables that no op writes are constants: they are folded */
    const char *passes; /* passes to run on a private copy, "" none, NULL all that fit; names by comma */
} proa_executor_opts;
/* Runs optimizing passes on p itself, as an executor does on its copy: to look at what they make of it. p can
 * be run and printed afterwards, but not saved or differentiated: fused ops have no spelling in Paddle. */
PROA_API proa_status proa_program_optimize(proa_program *p, const char *passes, bool frozen);
/* An executor on a private, optimized copy of p as it is now. */
PROA_API proa_executor *proa_executor_with(const proa_program *p, proa_executor_opts opts);
PROA_API void proa_executor_free(proa_executor *e); /* accepts NULL */
/* inputs in the program's order; result: new tensors, in its output order. */
PROA_API proa_tensors proa_executor_run(proa_executor *e, proa_tensors inputs);
PROA_API proa_executor_stats proa_executor_get_stats(const proa_executor *e);

#ifdef __cplusplus
}
#endif
#endif
