"""attention_lstm of Paddle 1.x, which passes of inference write, for the operator-by-operator interpreter in late.py."""
from .. import _core
from .host_matching import described, offsets_of, refuse, spans
from .host_rnn import _activation, _only


def _shape_is(op, slot, x, shape):
    if x is None or list(x.shape) != shape:
        raise refuse(op, slot, "missing" if x is None else described(x), f"{shape}")


class _Attention:
    """The softmax over a sequence of what a layer makes of each row beside the last cell."""

    def __init__(self, given, width, cells):
        weight, self.bias = given["AttentionWeight"][0], _only(given, "AttentionBias")
        _shape_is("attention_lstm", "AttentionWeight", weight, [width + cells, 1])
        self.of_row, self.of_cell = weight[:width], weight[width:]
        self.scalar, self.scalar_bias = _only(given, "AttentionScalar"), _only(given, "AttentionScalarBias")

    def rows(self, x):
        """The part that does not change with the steps, [rows, 1]."""
        out = _core.matmul(x, self.of_row)
        return out if self.bias is None else _core.add(out, self.bias)

    def __call__(self, rows, cell):
        out = _core.relu(_core.add(rows, _core.matmul(cell, self.of_cell)))
        if self.scalar is not None:
            out = _core.multiply(out, self.scalar)
            out = _core.relu(out if self.scalar_bias is None else _core.add(out, self.scalar_bias))
        return out, _core.softmax(out, 0)


def attention_lstm(given, outputs, attrs):
    """An LSTM each step of which reads the sum of its sequence's rows, weighted by attention to its last cell."""
    op, x = "attention_lstm", given["X"][0]
    weight, bias, cells = given["LSTMWeight"][0], given["LSTMBias"][0], given["C0"][0]
    if x.ndim != 2 or bias.ndim != 2 or bias.shape[1] % 4:
        raise refuse(op, "LSTMBias", described(bias), f"[1, 4 · cells] for X {described(x)}, [rows, width]")
    images, width, count = spans(offsets_of(op, given, "X")), x.shape[1], bias.shape[1] // 4
    hidden = _only(given, "H0")
    _shape_is(op, "LSTMWeight", weight, [count + width, 4 * count])
    _shape_is(op, "C0", cells, [len(images), count])
    if hidden is not None:
        _shape_is(op, "H0", hidden, [len(images), count])
    gate, of_cell, candidate = (_activation(attrs, f"{name}_activation", default) for name, default in (
        ("gate", "sigmoid"), ("cell", "tanh"), ("candidate", "tanh")))
    attention = _Attention(given, width, count)
    rows = attention.rows(x)
    zeros = _core.full([1, count], 0, x.dtype)
    made, kept, scores = [], [], _core.full([0, 1], 0, x.dtype)
    read, gates = _core.full([1, width], 0, x.dtype), _core.full([1, 4 * count], 0, x.dtype)
    for i, (a, b) in enumerate(images):
        cell, state = cells[i:i + 1], zeros if hidden is None else hidden[i:i + 1]
        for _ in range(a, b):
            scores, shares = attention(rows[a:b], cell)
            read = _core.sum(_core.multiply(x[a:b], shares), [0], keepdim=True)
            gates = _core.add(_core.matmul(_core.concat([state, read], 1), weight), bias)
            forget, enter, leave, new = (gates[:, k * count:(k + 1) * count] for k in range(4))
            cell = _core.add(_core.multiply(gate(forget), cell), _core.multiply(gate(enter), candidate(new)))
            state = _core.multiply(gate(leave), of_cell(cell))
            made.append(state)
            kept.append(cell)
    results = {"Hidden": _core.concat(made, 0) if made else zeros[:0], "Cell": _core.concat(kept, 0) if kept else zeros[:0]}
    for one in results.values():
        one._lod = x._lod
    results.update(AttentionedX=rows, AttentionFCOut=scores, LSTMX=read, LSTMOUT=gates)
    return {slot: [one] for slot, one in results.items()}
