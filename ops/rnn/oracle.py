"""rnn (LSTM, GRU and simple recurrent networks) in real Paddle, except training with dropout between layers, which
is random. One function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as
Paddle tensors, and saves the outputs that it returns, in the op table's order (None: not compared), for
tests/ops/test_ops.py."""
import paddle
from paddle import _C_ops


def rnn(input, pre_state, weight_list, sequence_length=None, mode="LSTM", num_layers=1, is_bidirec=False,
        dropout_prob=0.0, training=True):
    out, _, state = _C_ops.rnn(input, list(pre_state), list(weight_list), sequence_length,
                               paddle.zeros([1], dtype="uint8"), dropout_prob, is_bidirec, input.shape[-1],
                               pre_state[0].shape[-1], num_layers, mode, 0, not training)
    return out, None, list(state), None
