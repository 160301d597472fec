/* Shared parts of optim/. May use core, ops, autograd, nn. */
#ifndef PROA_OPTIM_OPTIMIZER_H
#define PROA_OPTIM_OPTIMIZER_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/autograd.h>
#include <proa/optim.h>

/* proa_step, which where `skip` (a bool, or PROA_NONE) is true changes nothing; whether it is, nobody
 * waits for. */
proa_status proa__step_unless(proa_optimizer *opt, proa_tensor *skip);

/* Replaces the gradients of a list by clipped ones; new tensors. */
proa_status proa__clip_grads(proa_clip clip, proa_tensors grads);

#endif
