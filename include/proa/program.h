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
PROA_API void proa_program_free(proa_program *p);
/* Drops ops that no output needs. proa_capture does so by itself. */
PROA_API proa_status proa_program_prune(proa_program *p);
/* One line an op, for people. */
PROA_API proa_status proa_program_print(const proa_program *p, FILE *to);
PROA_API int64_t proa_program_input_count(const proa_program *p);
PROA_API int64_t proa_program_output_count(const proa_program *p);
/* The symbolic tensor (name, dtype, shape with −1) of an input or output. Borrowed. */
PROA_API const proa_tensor *proa_program_input(const proa_program *p, int64_t i);
PROA_API const proa_tensor *proa_program_output(const proa_program *p, int64_t i);

/* Runs a program with plans per input shapes (bounded cache) and one arena. Not for two threads at once:
 * clones share the program and have arenas of their own. The program must outlive it. */
PROA_API proa_executor *proa_executor_new(const proa_program *p);
PROA_API void proa_executor_free(proa_executor *e);
/* inputs in the program's order; result: new tensors, in its output order. */
PROA_API proa_tensors proa_executor_run(proa_executor *e, proa_tensors inputs);
/* Bytes of the largest arena so far, plans in the cache, plans made in all. */
typedef struct proa_executor_stats {
    int64_t arena_bytes, plans, plans_made;
} proa_executor_stats;
PROA_API proa_executor_stats proa_executor_get_stats(const proa_executor *e);

#ifdef __cplusplus
}
#endif
#endif
