/* Shared parts of optim/. May use core, ops, autograd, nn. */
#ifndef PROA_OPTIM_OPTIMIZER_H
#define PROA_OPTIM_OPTIMIZER_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/autograd.h>
#include <proa/create.h>
#include <proa/optim.h>

enum { PROA__SLOTS = 5 }; /* most accumulators that an optimizer keeps for a parameter */

/* A parameter and what its optimizer keeps beside it. All tensors are kept. */
typedef struct proa__entry {
    proa_tensor *param, *master;     /* master: float32 twin of a half parameter, made at first need */
    proa_tensor *slots[PROA__SLOTS]; /* in the order of the rule's */
    int32_t group;
} proa__entry;

/* What one multi-tensor op gets: lists of one length. They end with the scope. */
typedef struct proa__step_batch {
    proa_tensors params, grads, masters, slots[PROA__SLOTS];
    proa_tensor *lr, *skip; /* skip: a bool, or PROA_NONE */
    double weight_decay;
} proa__step_batch;

/* An accumulator: its name in Paddle, and how it begins. */
typedef struct proa__slot {
    const char *name;
    enum { PROA__ZEROS, PROA__INITIAL_VALUE, PROA__BETA1, PROA__BETA2 } start;
} proa__slot;

/* An optimizer's kind. */
typedef struct proa__rule {
    const char *kind;
    proa__slot slots[PROA__SLOTS];
    double epsilon, weight_decay; /* defaults */
    bool own_decay; /* the op applies weight decay itself; otherwise L2 is added to the gradient */
    proa_status (*apply)(const proa_optimizer_opts *o, const proa__step_batch *b);
} proa__rule;

/* The rule of that kind; NULL and NOT_FOUND. */
const proa__rule *proa__find_rule(const char *kind);

/* proa_step, which where `skip` (a bool, or PROA_NONE) is true changes nothing; whether it is, nobody
 * waits for. */
proa_status proa__step_unless(proa_optimizer *opt, proa_tensor *skip);

/* Replaces the gradients of a list by clipped ones; new tensors. */
proa_status proa__clip_grads(proa_clip clip, proa_tensors grads);

#endif
