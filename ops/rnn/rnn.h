/* Fills in a recurrent network's sizes (sizes.h) from its tensors and attributes. For ops/rnn and ops/int8;
 * may use core and kernels. */
#ifndef PROA_OPS_RNN_H
#define PROA_OPS_RNN_H

#include "impl/rnn.h"

#include "ops/rnn/sizes.h"
#include "kernels/rowwise.h"

/* The hidden size: h's last dim, or, while that is unknown (a program whose states have computed shapes), the
 * width of the recurrent weights. */
static inline int64_t rnn_hidden(const proa_tensor *h, proa_tensors weights)
{
    if (h->shape[2] >= 0 || weights.count < 2 || weights.at[1]->ndim != 2) return h->shape[2];
    return weights.at[1]->shape[1];
}

static inline rnn_sizes rnn_measure(const proa_tensor *input, const proa_tensor *h, proa_tensors weights,
                                    proa_rnn_mode mode, int64_t layers, bool both)
{
    return (rnn_sizes){.steps = input->shape[0],
                       .batch = input->shape[1],
                       .input = input->shape[2],
                       .hidden = rnn_hidden(h, weights),
                       .layers = layers,
                       .directions = both ? 2 : 1,
                       .gates = rnn_gates(mode)};
}

#endif
