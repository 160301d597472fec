/* The run door's parts that capture and plans share. */
#ifndef PROA_CORE_RUN_H
#define PROA_CORE_RUN_H

#include "core/internal.h"
#include "core/tensor.h"

/* Largest args and metas structs; the generator refuses ops beyond. */
enum { PROA_ARGS_MAX = 1024, PROA_METAS_MAX = 1024 };

/* Checks the first input's dtype, then fills `metas` (struct proa_<op>_metas, ≤ PROA_METAS_MAX bytes). Ops
 * without an infer function take over the first input's meta. */
proa_status proa__infer_call(proa_call *call, void *metas);

/* The first tensor among the inputs, and its field; NULL where the call has none. */
const proa_tensor *proa__first_tensor(const proa_op *op, const void *args, const proa_field **field);

/* The run door's work on the thread's device: what proa__dispatch does once that is settled. */
proa_status proa__dispatch_host(proa_call *call);
/* The same for a call with blocked inputs: they stay so where its kernels take them. */
proa_status proa__dispatch_blocked(proa_call *call);
/* Picks a kernel and runs it on args whose outputs are there. any: OR of the inputs' flags; fresh: see
 * proa_run. */
proa_status proa__run_kernel(const proa_op *op, void *args, uint32_t any, bool fresh);
/* True if some kernel of the op takes blocked operands, on the thread's device. */
bool proa__takes_blocked(const proa_op *op);
/* A call with blocked inputs of an op with PROA_OP_ELEMENTWISE; !*done: it must run on plain ones. */
proa_status proa__run_flat(proa_call *call, const proa_meta *meta, bool *done);

/* The slot in which this thread notes the op whose kernel it is in (NULL between kernels); NULL if it has run
 * nothing yet. Valid as long as the thread. For signal handlers: it only reads. */
PROA_API const proa_op *const volatile *proa_running_op(void);

#endif
