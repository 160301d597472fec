/* Devices as Proa's own folders see them: finding one, being on one for a while, copies and fills
 * wherever the memory is. May use proa/device.h. */
#ifndef PROA_CORE_DEVICE_H
#define PROA_CORE_DEVICE_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/device.h>

/* The row of a device's id; NULL if there is none. The CPU's has a name only. */
const proa_device_table *proa__device(int device);
/* The id of the device of that name, plug-ins looked through; −1 and an error that starts with `who`. */
PROA_API int proa_device_find(const char *who, const char *name);
/* Makes new tensors and ops without inputs go to `device` on this thread; returns where they went before. */
PROA_API int proa_device_use(int device);

static inline void proa__device_back(const int *was) { proa_device_use(*was); }
/* PROA__ON_CPU; as a declaration: new tensors are the CPU's in the rest of the block, so that their
 * elements can be written. */
#define PROA__ON_CPU \
    int proa_device_was_ __attribute__((cleanup(proa__device_back), unused)) = proa_device_use(PROA_CPU)

static inline int proa__device_id(const proa_tensor *t) { return t->storage ? t->storage->device : PROA_CPU; }
static inline bool proa__on_device(const proa_tensor *t) { return t->flags & PROA_T_DEVICE; }

/* Loads the plug-ins that may bring a device of that name; `why` (PROA__WHY bytes) gets the end of a sentence
 * that says what to do if they do not. */
enum { PROA__WHY = 512 };
void proa__plugins_for(const char *name, char *why);

/* proa__copy when one side or both are not the CPU's. */
proa_status proa__copy_devices(proa_tensor *dst, const proa_tensor *src);
/* Writes one element's bytes all over dst, which may be strided; value is host memory, NULL means zero. */
proa_status proa__fill(proa_tensor *dst, const void *value);
/* New contiguous copy of t on a device; t itself if it is contiguous and there. */
proa_tensor *proa__copy_to(proa_tensor *t, int device);
/* New contiguous copy on a device of t, dense and the CPU's, which the device makes beside what is queued,
 * where it can: it is used after proa_arrive. Any thread may do either. */
PROA_API proa_tensor *proa_send_to(proa_tensor *t, int device);
/* Lets the thread's device use what proa_send_to gave; nothing for other tensors. */
PROA_API proa_status proa_arrive(const proa_tensor *t);
/* Copies `bytes` host bytes to element 0 of t, which is contiguous. */
proa_status proa__put(proa_tensor *t, const void *from, size_t bytes);

/* ---- running ops there ------------------------------------------------------------------ */

/* True if the call is the business of proa__run_placed: some tensor of it, or the thread, is on a device. */
static inline bool proa__is_placed(const proa_call *call, int chosen)
{
    return call->any & PROA_T_DEVICE || chosen != PROA_CPU;
}
/* Finds the device of a call, brings numbers there and attributes here, and runs it on that device. */
proa_status proa__run_placed(proa_call *call);
/* Runs a picked kernel on the thread's device: attributes' tensors are brought to the host first. fresh: see
 * proa_run. */
proa_status proa__run_picked(const proa_op *op, void *args, const proa_kernel *kernel, void *state,
                             bool fresh);
/* Copies of the tensors of a device that supply attributes take their place in `shadow`, a copy of args. */
proa_status proa__attributes_to_host(const proa_op *op, void *shadow);
/* Sentinel in place of a kernel: the op runs on the CPU, with copies (FLAGS_device_fallback). */
extern const proa_kernel proa__fallback_kernel;

#endif
