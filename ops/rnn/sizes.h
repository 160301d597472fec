/* A recurrent network's sizes, and how many elements its saved state (reserve) has; shared by shape inference
 * and the kernels of all devices. Uses the table's enums. */
#ifndef PROA_OPS_RNN_SIZES_H
#define PROA_OPS_RNN_SIZES_H

#include <proa/ops/types.h>

typedef struct rnn_sizes {
    int64_t steps, batch, input, hidden, layers, directions, gates; /* of a cell: LSTM 4, GRU 3, else 1 */
} rnn_sizes;

static inline int64_t rnn_gates(proa_rnn_mode mode)
{
    return mode == PROA_RNN_MODE_LSTM ? 4 : mode == PROA_RNN_MODE_GRU ? 3 : 1;
}

/* Elements that one layer and direction saves for each step and sequence: activated gates, hidden state, and
 * for LSTM the cell state, for GRU the candidate's U·h + b. */
static inline int64_t rnn_kept(const rnn_sizes *s, proa_rnn_mode mode)
{
    return s->gates * s->hidden + s->hidden * (rnn_gates(mode) > 1 ? 2 : 1);
}

/* Elements of `reserve`: the saved state of all layers and directions, then the inputs of all layers above
 * the first. */
static inline int64_t rnn_reserve(const rnn_sizes *s, proa_rnn_mode mode)
{
    return s->steps * s->batch * s->directions *
           (s->layers * rnn_kept(s, mode) + (s->layers - 1) * s->hidden);
}

#endif
