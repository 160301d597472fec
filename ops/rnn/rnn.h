/* What shape inference, wire forms and kernels of the rnn ops all need to know of a network: its sizes and
 * where the forward op keeps what backward needs. Private to this folder; may use core. */
#ifndef PROA_OPS_RNN_H
#define PROA_OPS_RNN_H

#include "ops_impl.h"

#include "ops/rows.h"

typedef struct rnn_sizes {
    int64_t steps, batch, input, hidden, layers, directions, gates; /* gates: 4, 3 or 1 times hidden */
} rnn_sizes;

static inline int64_t rnn_gates(proa_rnn_mode mode)
{
    return mode == PROA_RNN_MODE_LSTM ? 4 : mode == PROA_RNN_MODE_GRU ? 3 : 1;
}

/* Rows · columns of what one layer and direction keeps: activated gates, states, and LSTM's cells or GRU's
 * U·h + b of the candidate. */
static inline int64_t rnn_kept(const rnn_sizes *s, proa_rnn_mode mode)
{
    return s->gates * s->hidden + s->hidden * (rnn_gates(mode) > 1 ? 2 : 1);
}

/* Elements of reserve: that of all layers and directions, then the inputs of the layers above the first. */
static inline int64_t rnn_reserve(const rnn_sizes *s, proa_rnn_mode mode)
{
    return s->steps * s->batch * s->directions *
           (s->layers * rnn_kept(s, mode) + (s->layers - 1) * s->hidden);
}

/* The hidden size: weights are parameters and know it even where the states' shape is only computed. */
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
