"""Cells, RNN and BiRNN, and SimpleRNN, LSTM, GRU: values, states and gradients."""
import paddle
from paddle import nn

from parity import case, fill, rand

TOL = 1e-4  # rounding grows with steps and layers


@case("paddle.nn.SimpleRNNCell", "paddle.nn.LSTMCell", "paddle.nn.GRUCell", "paddle.nn.SimpleRNNCell.state_shape",
      "paddle.nn.LSTMCell.state_shape", "paddle.nn.GRUCell.state_shape", "paddle.nn.RNNCellBase.state_shape")
def cells():
    x, h, c = rand(3, 4), rand(3, 5), rand(3, 5)
    a, b, d = fill(nn.SimpleRNNCell(4, 5, activation="relu")), fill(nn.LSTMCell(4, 5)), fill(nn.GRUCell(4, 5))
    return (a(x, h), b(x, (h, c)), d(x, h), a(x), b(x), d(x), a.state_shape, b.state_shape, d.state_shape, repr(a),
            repr(b), list(a.state_dict()))


@case("paddle.nn.RNNCellBase", "paddle.nn.RNNCellBase.get_initial_states", grad=False)
def initial_states():
    x = rand(3, 4)
    return (nn.LSTMCell(4, 5).get_initial_states(x), nn.GRUCell(4, 5).get_initial_states(x, [2, 3], "float64", 1.5),
            nn.GRUCell(4, 5).get_initial_states(rand(6, 2, 4), batch_dim_idx=1))


@case("paddle.nn.RNN", tol=TOL)
def rnn_wrapper():
    x, lengths = rand(3, 5, 4), paddle.to_tensor([5, 2, 3])
    cell = fill(nn.LSTMCell(4, 3))
    return (nn.RNN(cell)(x), nn.RNN(cell, is_reverse=True)(x), nn.RNN(cell)(x, None, lengths),
            nn.RNN(cell, is_reverse=True)(x, sequence_length=lengths), nn.RNN(cell, time_major=True)(x))


@case("paddle.nn.BiRNN", tol=TOL)
def birnn():
    x, h = rand(2, 4, 3), rand(2, 5)
    net = nn.BiRNN(fill(nn.GRUCell(3, 5)), fill(nn.GRUCell(3, 5)))
    return net(x), net(x, (h, h * 2)), repr(net)


@case("paddle.nn.LSTM", tol=TOL)
def lstm():
    net = fill(nn.LSTM(4, 5, num_layers=2))
    x, h, c = rand(3, 6, 4), rand(2, 3, 5), rand(2, 3, 5)
    return net(x), net(x, (h, c)), repr(net), list(net.state_dict())


@case("paddle.nn.LSTM", "paddle.nn.LSTM.flatten_parameters", tol=TOL)
def lstm_bidirectional():
    net = fill(nn.LSTM(4, 3, num_layers=2, direction="bidirect"))
    net.flatten_parameters()
    return net(rand(3, 6, 4), sequence_length=paddle.to_tensor([6, 2, 4])), [n for n, _ in net.named_parameters()]


@case("paddle.nn.GRU", tol=TOL)
def gru():
    net = fill(nn.GRU(4, 5, direction="bidirectional", time_major=True))
    return net(rand(6, 3, 4)), net(rand(6, 3, 4), rand(2, 3, 5)), repr(net)


@case("paddle.nn.SimpleRNN", tol=TOL)
def simple_rnn():
    a, b = fill(nn.SimpleRNN(4, 5, 2)), fill(nn.SimpleRNN(4, 5, activation="relu"))
    x = rand(3, 6, 4)
    return a(x), b(x, sequence_length=paddle.to_tensor([6, 1, 3])), [n for n, _ in a.named_parameters()]


@case("paddle.nn.LSTM", tol=1e-9)
def lstm_float64():
    paddle.set_default_dtype("float64")  # Paddle's LSTM.to() fails
    try:
        net = fill(nn.LSTM(3, 4))
    finally:
        paddle.set_default_dtype("float32")
    return net(rand(2, 5, 3, dtype="float64"))
