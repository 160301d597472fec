/* Hooks of saved tensors: the tape keeps what a pack hook made of a tensor, in place of the tensor, and an
 * unpack hook gives the tensor back when the gradient rule runs. May use core. */
#ifndef PROA_AUTOGRAD_SAVED_HOOKS_H
#define PROA_AUTOGRAD_SAVED_HOOKS_H

#include "autograd/node.h"

/* A saved tensor in the form that its pack hook gave it. */
struct proa_packed {
    struct proa_packed *next;
    proa_tensor **slot; /* in the node's args: holds a handle without data */
    void *value;
    proa_saved_hooks hooks;
};

/* This thread's hooks; pack is NULL: there are none. */
extern _Thread_local proa_saved_hooks proa__saved_hooks __attribute__((tls_model("initial-exec")));

/* Saves t by the thread's pack hook: `kept` gets a handle without data. False on error. */
bool proa__pack_saved(proa_node *node, proa_tensor *t, proa_tensor **kept);
/* Puts what the unpack hooks return into the slots of the node's args, and takes it out again. */
proa_status proa__unpack_saved(proa_node *node);
void proa__repack_saved(proa_node *node);
void proa__release_packed(proa_node *node);

#endif
