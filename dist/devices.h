/* A group's communicators between devices (proa/device.h), which carry calls whose tensors are in devices'
 * memory. May use core. */
#ifndef PROA_DIST_DEVICES_H
#define PROA_DIST_DEVICES_H

#include "dist/engine.h"

#include <proa/communicator.h>

typedef struct proa__devices proa__devices;
/* NULL with an error. */
proa__devices *proa__devices_new(const proa__engine_setup *setup);
void proa__devices_free(proa__devices *d);

/* The communicators of a device; NULL: it has none, or the group has one rank. */
const proa_communicators *proa__communicators(const proa__ring *g, int device);
/* Runs a call, named `what` in errors, between the members' devices; `device` is this rank's, and `peer` a
 * rank of the group. The first call of a kind opens a communicator: for collectives one of all members, for
 * messages one for each sender and receiver. *done: false, without an error, if the call is to be made in
 * host memory: the same on all ranks. */
proa_status proa__device_call(proa__ring *g, int device, const char *what, const proa_device_call *call,
                              bool *done);

#endif
