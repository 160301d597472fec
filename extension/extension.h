/* A registered custom op: the description that its library gave, and what Proa made of it. May use core,
 * proa/extension.h and proa/wire.h. */
#ifndef PROA_EXTENSION_INTERNAL_H
#define PROA_EXTENSION_INTERNAL_H

#include "core/args_visit.h"
#include "core/internal.h"

#include <proa/extension.h>
#include <proa/wire.h>

/* Source of an input of a gradient op: a part of the call of the op that it is the gradient of. */
typedef enum proa__source { PROA__FROM_INPUT, PROA__FROM_OUTPUT, PROA__FROM_GRADIENT } proa__source;

typedef struct proa__origin {
    proa__source source;
    int32_t index; /* of the input; of the output, or of the output whose gradient it is */
} proa__origin;

struct proa_extension_handle {
    proa_op op;
    proa_wire wire;
    proa_kernel kernel;
    const proa_kernel *kernels[2];
    const proa_extension_op *description;
    const proa_extension_op *forward; /* the op that this is the gradient of; NULL: none */
    /* The rest only where the op has a gradient. */
    const proa_extension_handle *gradient;
    const proa__origin *origins; /* of each input of the gradient op */
    const int32_t *attr_origins; /* of each attribute of the gradient op: the index among the op's own */
    const int32_t *gradient_of;  /* of each output of the gradient op: the index of the op's input */
};

/* Makes a registered op of a description, and of its gradients first; those that are registered are left. */
proa_status proa__extension_register(const proa_extension_op *description);

/* The index of the input whose gradient a slot is named after, "X@GRAD" or, where the input's own name is
 * such, "X@GRAD@NEW"; −1: none. */
int32_t proa__extension_input_of(const proa_extension_op *description, const char *gradient);
/* True for "Out@GRAD" of "Out". */
bool proa__extension_is_gradient_of(const char *gradient, const char *slot);

/* The parts of a call: see proa_extension_api. */
proa_tensors proa__extension_input(const proa_extension_handle *h, const void *args, int32_t index);
void proa__extension_attribute(const proa_extension_handle *h, const void *args, int32_t index,
                               proa_extension_value *value);
proa_status proa__extension_begin(const proa_extension_handle *h, const void *args,
                                  proa_extension_frame *frame);
proa_status proa__extension_end(const proa_extension_handle *h, const void *args, const proa_run *run,
                                const proa_tensors *results, proa_extension_frame *frame);
proa_status proa__extension_infer(const proa_extension_handle *h, const void *args, void *metas,
                                  const proa_extension_metas *inferred);
proa_status proa__extension_differentiate(const proa_extension_handle *h, const void *args, void *grads);

#endif
