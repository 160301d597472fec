"""NumPy references of rnn and rnn_grad, except training with dropout between layers, which is random. One function
per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares
Proa's outputs with the outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _cell(mode, x, h, c, w_ih, w_hh, b_ih, b_hh):
    return gated(mode, x @ w_ih.T + b_ih, h @ w_hh.T + b_hh, h, c)


def gated(mode, gx, gh, h, c):
    """States after a step whose products with biases are gx and gh."""
    if mode == "LSTM":
        i, f, g, o = np.split(gx + gh, 4, axis=-1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        return _sigmoid(o) * np.tanh(c), c
    if mode == "GRU":
        (xr, xz, xc), (hr, hz, hc) = np.split(gx, 3, axis=-1), np.split(gh, 3, axis=-1)
        r, z = _sigmoid(xr + hr), _sigmoid(xz + hz)
        n = np.tanh(xc + r * hc)
        return (h - n) * z + n, c
    return (np.tanh(gx + gh) if mode == "RNN_TANH" else np.maximum(gx + gh, 0)), c


def rnn(input, pre_state, weight_list, sequence_length=None, mode="LSTM", num_layers=1, is_bidirec=False,
        dropout_prob=0.0, training=True):
    """(out, None for the dropout mask, final states, None for reserve, whose layout is the kernel's)."""
    assert not (training and dropout_prob > 0 and num_layers > 1), "random: compared by statistics instead"
    ways = 2 if is_bidirec else 1
    steps, batch = input.shape[:2]
    length = np.full(batch, steps) if sequence_length is None else sequence_length
    x, finals = input, [[] for _ in pre_state]
    biases = 2 * num_layers * ways
    for layer in range(num_layers):
        outs = []
        for way in range(ways):
            k = layer * ways + way
            w = weight_list[2 * k], weight_list[2 * k + 1], weight_list[biases + 2 * k], weight_list[biases + 2 * k + 1]
            h = pre_state[0][k]
            c = pre_state[1][k] if mode == "LSTM" else h
            y = np.zeros((steps, batch, h.shape[-1]), input.dtype)
            for t in (reversed(range(steps)) if way else range(steps)):
                on = (t < length)[:, None]
                nh, nc = _cell(mode, x[t], h, c, *w)
                h, c = np.where(on, nh, h), np.where(on, nc, c)
                y[t] = np.where(on, nh, 0)
            outs.append(y)
            for final, value in zip(finals, (h, c)):
                final.append(value)
        x = np.concatenate(outs, axis=-1)
    return x, None, [np.stack(f) for f in finals], None


def rnn_grad(input, pre_state, weight_list, sequence_length, dropout_state, out, reserve, d_out, d_state, mode,
             num_layers, is_bidirec, dropout_prob):
    """(d_input, d_pre_state, d_weight_list) by complex-step differentiation of rnn: Im f(x + ih) / h."""
    leaves = [np.asarray(t, np.complex128) for t in (input, *pre_state, *weight_list)]
    states, h, slopes = len(pre_state), 1e-30, []

    def loss():
        y, _, finals, _ = rnn(leaves[0], leaves[1:1 + states], leaves[1 + states:], sequence_length, mode, num_layers,
                              is_bidirec, training=False)
        return sum((a * b).sum() for a, b in zip((y, *finals), (d_out, *d_state)))
    for leaf in leaves:
        slope = np.zeros(leaf.shape)
        for at in np.ndindex(leaf.shape):
            leaf[at] += 1j * h
            slope[at] = loss().imag / h
            leaf[at] -= 1j * h
        slopes.append(slope.astype(input.dtype))
    return slopes[0], slopes[1:1 + states], slopes[1 + states:]
