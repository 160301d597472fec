/* Helpers of layer constructors and forwards, shared by the files of nn/. May use core, ops, autograd. */
#ifndef PROA_NN_LAYER_H
#define PROA_NN_LAYER_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/autograd.h>
#include <proa/nn.h>

/* The end of every constructor: returns layer, or frees it and returns NULL if an error is set. */
static inline proa_layer *proa__layer_done(proa_layer *layer)
{
    if (!proa_error()) return layer;
    proa_layer_free(layer);
    return NULL;
}

/* Dropout by the layer's mode: x itself in inference or with p = 0. */
proa_tensor *proa__layer_dropout(const proa_layer *self, proa_tensor *x, double p);
/* Returns true if 0 ≤ p ≤ 1, else false after setting an error that names the argument. */
bool proa__is_probability(const char *who, const char *argument, double p);

/* Makes the layers children "0", "1", … of self and returns it; on error frees self and those
 * that have no parent. */
proa_layer *proa__layer_of(proa_layer *self, const char *who, int64_t n, proa_layer *const *layers);

#endif
