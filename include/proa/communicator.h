/* Communicators of a device plug-in: they connect a device with devices of other processes, so that groups
 * communicate without copies through the host. A plug-in may export an entry for them beside that of
 * proa/device.h (docs/add-a-device.md). Needs proa/device.h. */
#ifndef PROA_COMMUNICATOR_H
#define PROA_COMMUNICATOR_H

#include <proa/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A call between the ranks of a communicator. Memory is the device's; ranks are the communicator's. Sizes are
 * equal on all ranks, except those of PROA_DEVICE_ALL_TO_ALL. */
typedef enum proa_device_call_kind {
    PROA_DEVICE_ALL_REDUCE,     /* out on every rank becomes the result */
    PROA_DEVICE_REDUCE,         /* out on rank `peer` becomes the result; it is unchanged on the others */
    PROA_DEVICE_REDUCE_SCATTER, /* out: this rank's part of the reduced in */
    PROA_DEVICE_BROADCAST,      /* out on every rank becomes rank `peer`'s */
    PROA_DEVICE_ALL_GATHER,     /* out: the ranks' in, one after the other */
    PROA_DEVICE_SCATTER,        /* out: this rank's part of rank `peer`'s in */
    PROA_DEVICE_ALL_TO_ALL,     /* part r of in to rank r; out: what came from each */
    PROA_DEVICE_SEND,           /* in to rank `peer` */
    PROA_DEVICE_RECV            /* out from rank `peer` */
} proa_device_call_kind;

typedef struct proa_device_call {
    proa_device_call_kind kind;
    const void *in; /* NULL: this rank has none */
    void *out;
    int64_t count; /* of a rank's part: elements of reductions, otherwise bytes */
    proa_dtype dtype;
    int op; /* of reductions: 0 sum, 1 max, 2 min, 3 prod, 4 avg */
    int peer;
    const size_t *in_bytes, *out_bytes; /* PROA_DEVICE_ALL_TO_ALL: to and from each rank */
    /* from `mark`, owned by the caller: the call waits only for work queued before it; NULL: for all that is
     * queued now. */
    void *ready;
} proa_device_call;

/* The caller's part of a wait: functions of a communicator call check(state) again and again while they wait,
 * and give up, with the error that stands then, when that is not PROA_OK. The communicator cannot be used
 * after that. */
typedef struct proa_device_wait {
    proa_status (*check)(void *state);
    void *state;
} proa_device_wait;

/* Communicators: they connect a device with devices of other processes. Functions are called by any thread,
 * those of one communicator by one at a time. */
typedef struct proa_communicators {
    const char *name; /* of the library: "nccl" */
    /* A text that tells the device from all others of all hosts; NULL, with the reason in *why, if it cannot
     * be connected. */
    const char *(*identity)(void *context, const char **why);
    /* Whether elements of that dtype are reduced by `op` (proa_device_call). */
    bool (*reduces)(proa_dtype dtype, int op);
    /* An id of a new communicator, which its ranks pass to `open`; id_bytes bytes. */
    size_t id_bytes;
    proa_status (*new_id)(void *context, void *id);
    /* Connects the ranks, all of which call it; returns a communicator, NULL with an error. */
    void *(*open)(void *context, const void *id, int rank, int size, const proa_device_wait *wait);
    void (*close)(void *communicator);
    /* The present end of what is queued on the device, until unmark. NULL, without an error: not now. */
    void *(*mark)(void *context);
    void (*unmark)(void *context, void *mark);
    /* Runs one call; its data are complete on return. */
    proa_status (*call)(void *communicator, const proa_device_call *call, const proa_device_wait *wait);
} proa_communicators;

/* The optional second symbol of a plug-in: the communicators of one of its devices; NULL: it has none. Asked
 * once a device, when the plug-in is loaded. */
#define PROA_COMMUNICATORS_ENTRY "proa_communicators_entry"
typedef const proa_communicators *(*proa_communicators_entry_fn)(const proa_device_table *device);

#ifdef __cplusplus
}
#endif
#endif
