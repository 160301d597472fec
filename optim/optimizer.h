/* The conditional step and clipping, shared by optim/ and amp/. May use core, ops, autograd, nn. */
#ifndef PROA_OPTIM_OPTIMIZER_H
#define PROA_OPTIM_OPTIMIZER_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/autograd.h>
#include <proa/optim.h>

/* proa_step that changes nothing if `skip` (a bool tensor, or PROA_NONE) is true; its value is read on the
 * device, so that the host does not wait. */
proa_status proa__step_unless(proa_optimizer *opt, proa_tensor *skip);

/* Replaces each entry of grads.at by a new tensor, the clipped gradient. */
proa_status proa__clip_grads(proa_clip clip, proa_tensors grads);

#endif
