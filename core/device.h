/* Devices for Proa's own folders: finding a device, making it the thread's for a while, copies and fills of
 * tensors on any device, and running ops on devices. May use proa/device.h. */
#ifndef PROA_CORE_DEVICE_H
#define PROA_CORE_DEVICE_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/device.h>

/* The table entry of a device id; NULL if there is none. The CPU's has only a name. */
const proa_device_table *proa__device(int device);
/* The id of the device of that name, after loading plug-ins if needed; −1 and an error that starts with
 * `who`. */
PROA_API int proa_device_find(const char *who, const char *name);
/* Sets the thread's device, on which new tensors and ops without inputs are placed; returns the former
 * one. */
PROA_API int proa_device_use(int device);

static inline void proa__device_back(const int *was) { proa_device_use(*was); }
/* Declaration: makes the CPU the thread's device until the end of the enclosing block, so that the host can
 * write the elements of new tensors. */
#define PROA__ON_CPU \
    int proa_device_was_ __attribute__((cleanup(proa__device_back), unused)) = proa_device_use(PROA_CPU)

static inline int proa__device_id(const proa_tensor *t) { return t->storage ? t->storage->device : PROA_CPU; }
static inline bool proa__on_device(const proa_tensor *t) { return t->flags & PROA_T_DEVICE; }

/* Loads the plug-ins that may provide a device of that name. If that fails, `why` (PROA__WHY bytes) gets the
 * end of an error sentence that says what to do. */
enum { PROA__WHY = 512 };
void proa__plugins_for(const char *name, char *why);

/* proa__copy where src, dst or both are on a device other than the CPU. */
proa_status proa__copy_devices(proa_tensor *dst, const proa_tensor *src);
/* Fills dst, which may be strided, with one element. value: its bytes, in host memory; NULL means zero. */
proa_status proa__fill(proa_tensor *dst, const void *value);
/* A new contiguous copy of t on a device; t itself if it is contiguous and on that device already. */
proa_tensor *proa__copy_to(proa_tensor *t, int device);
/* A new contiguous copy on a device of t, a dense CPU tensor. The device makes the copy concurrently with its
 * queued work, where it can: call proa_arrive before using the copy. Any thread may call either. */
PROA_API proa_tensor *proa_send_to(proa_tensor *t, int device);
/* Makes the thread's stream wait for the copy that proa_send_to gave; does nothing for other tensors. */
PROA_API proa_status proa_arrive(const proa_tensor *t);
/* An event of a device (its name): a point behind the work that is queued now. NULL: an error.
 * proa_mark_done: 1 if that work is done, 0 if it is not, which `wait` waits for; -1 and an error. A device
 * without events waits for all of its work there. */
typedef struct proa_mark proa_mark;
PROA_API proa_mark *proa_mark_new(const char *device);
PROA_API int proa_mark_done(proa_mark *m, bool wait);
PROA_API void proa_mark_free(proa_mark *m);
/* Copies `bytes` bytes of host memory to the start of t, which is contiguous. */
proa_status proa__put(proa_tensor *t, const void *from, size_t bytes);

/* ---- running ops on devices -------------------------------------------------------------- */

/* True if proa__run_placed must run the call: one of its tensors, or the thread, is on a device other than
 * the CPU. */
static inline bool proa__is_placed(const proa_call *call, int chosen)
{
    return call->any & PROA_T_DEVICE || chosen != PROA_CPU;
}
/* Finds the device of a call, copies one-element CPU inputs to it and attribute tensors to the host, and runs
 * the op there. */
proa_status proa__run_placed(proa_call *call);
/* Runs a selected kernel on the thread's device, after copying the tensors that supply attributes to the
 * host. fresh: as in proa_run. */
proa_status proa__run_picked(const proa_op *op, void *args, const proa_kernel *kernel, void *state,
                             bool fresh);
/* In `shadow`, a copy of args, replaces device tensors that supply attributes by copies on the host. */
proa_status proa__attributes_to_host(const proa_op *op, void *shadow);
/* Sentinel in place of a kernel: the op runs on the CPU, with copies (FLAGS_device_fallback). */
extern const proa_kernel proa__fallback_kernel;

#endif
