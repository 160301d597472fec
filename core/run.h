/* Parts of the run door (run.c), the innermost dispatch layer, that others use: inference of outputs, checks
 * of dtypes, its steps (attributes to the host, blocked operands, the kernel), and the op that a thread is
 * running. May use core. */
#ifndef PROA_CORE_RUN_H
#define PROA_CORE_RUN_H

#include "core/internal.h"
#include "core/tensor.h"

/* Largest args and metas structs, in bytes; the op generator rejects larger ones. */
enum { PROA_ARGS_MAX = 1024, PROA_METAS_MAX = 1024 };

/* Checks the first input's dtype, then fills `metas` (struct proa_<op>_metas, ≤ PROA_METAS_MAX bytes). An op
 * without an infer function gets the first input's meta. */
proa_status proa__infer_call(proa_call *call, void *metas);
/* Checks that a further operand t has the first one's dtype. If not, fails with WRONG_TYPE where the op does
 * not take t's dtype at all, else with INVALID_ARGUMENT. */
proa_status proa__same_dtype(const proa_op *op, const char *argument, const proa_tensor *t,
                             const proa_tensor *first);

/* The first tensor among the inputs, and its field; NULL where the call has none. */
const proa_tensor *proa__first_tensor(const proa_op *op, const void *args, const proa_field **field);

/* proa__dispatch for a call whose device is known: runs it on the thread's device. */
proa_status proa__dispatch_host(proa_call *call);
/* proa__dispatch_host for a call with blocked inputs; they stay blocked where the op's kernels take them. */
proa_status proa__dispatch_blocked(proa_call *call);
/* Selects a kernel and runs it on args whose outputs are allocated. any: OR of the inputs' flags; fresh: see
 * proa_run. */
proa_status proa__run_kernel(const proa_op *op, void *args, uint32_t any, bool fresh);
/* True if some kernel of the op takes blocked operands, on the thread's device. */
bool proa__takes_blocked(const proa_op *op);
/* Runs an op with PROA_OP_ELEMENTWISE over blocked memory (flat.c). *done false: not possible, run it on
 * row-major tensors. */
proa_status proa__run_flat(proa_call *call, const proa_meta *meta, bool *done);

/* The address at which this thread stores the op whose kernel it is running (NULL between kernels); NULL if
 * the thread has not run an op yet. Valid as long as the thread. Only reads, so signal handlers may call
 * it. */
PROA_API const proa_op *const volatile *proa_running_op(void);

#endif
