/* The device that an op of a program was placed on (Paddle's op_device: "gpu:1", "cpu", "gpu:all"), as a
 * number. Programs keep it and pass it on to gradients; pipelines are cut by it. May use core. */
#ifndef PROA_CORE_OP_DEVICE_H
#define PROA_CORE_OP_DEVICE_H

#include <proa/core.h>

/* The device of ops that this thread appends to programs; 0: none. */
extern _Thread_local int32_t proa__op_device __attribute__((tls_model("initial-exec")));

/* The number of a device's name, the same in the whole process; NULL and "" are 0. -1, without an error: the
 * name is too long, or there are too many. */
int32_t proa__op_device_number(const char *name);
/* The name of a number; "" for 0. */
const char *proa__op_device_name(int32_t number);

#endif
