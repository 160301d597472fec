"""Recurrent operators of Paddle 1.x over LoD sequences (lstm, lstmp, gru): sorted by length, the sequences that are
long enough advance together, one time step at a time. They call ops, so that gradients follow."""
from .. import _core

_ACTIVATIONS = {"identity": lambda x: x, "sigmoid": _core.sigmoid, "tanh": _core.tanh, "relu": _core.relu}


def _activation(attrs, name, default):
    chosen = attrs.get(name, default)
    if isinstance(chosen, int) and not isinstance(chosen, bool):
        chosen = ("identity", "sigmoid", "tanh", "relu")[chosen]
    if chosen not in _ACTIVATIONS:
        raise ValueError(f"(InvalidArgument) {name} must be one of {sorted(_ACTIVATIONS)}, got {chosen!r}")
    return _ACTIVATIONS[chosen]


class _Steps:
    """The rows of each step of a tensor's sequences."""

    def __init__(self, x, who, reverse):
        self.lod = x._lod
        if not self.lod:
            raise ValueError(f"(InvalidArgument) {who}: Input must carry sequences (LoD)")
        offsets = self.lod[-1]
        lengths = [b - a for a, b in zip(offsets, offsets[1:])]
        self.order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        self.rows = [[offsets[i + 1] - 1 - n if reverse else offsets[i] + n for i in self.order if lengths[i] > n]
                     for n in range(max(lengths, default=0))]

    def of(self, x):
        """x's rows, step by step."""
        return [_take(x, rows) for rows in self.rows]

    def first(self, state, width, like):
        """The first state, in the steps' order: zeros where none is given."""
        count = len(self.rows[0]) if self.rows else 0
        if state is None:
            return _core.full([count, width], 0, like.dtype)
        return _take(state, self.order[:count])

    def joined(self, steps):
        """Results of steps in the sequences' order, with their offsets; and in the steps' order."""
        batch = _core.concat(steps, 0)
        flat = [row for rows in self.rows for row in rows]
        back = [0] * len(flat)
        for place, row in enumerate(flat):
            back[row] = place
        out = _take(batch, back)
        out._lod = self.lod
        return out, batch


def _take(x, rows):
    return _core.gather(x, _core.to_tensor(rows, dtype="int64"), 0)


def _only(given, slot):
    return (given.get(slot) or [None])[0]


def _parts(x, count):
    """x in so many equal parts along the last axis."""
    width = x.shape[1] // count
    return [_core.slice(x, [1], [i * width], [(i + 1) * width]) for i in range(count)]


def _clipped(x, limit):
    return _core.clip(x, -limit, limit) if limit else x


def lstm(given, outputs, attrs):
    """lstm and, with ProjWeight, lstmp: gates are candidate, input, forget, output; peepholes follow the bias."""
    x, weight, bias = (_only(given, slot) for slot in ("Input", "Weight", "Bias"))
    project = _only(given, "ProjWeight")
    gate, of_cell, candidate = (_activation(attrs, f"{name}_activation", default) for name, default in
                                (("gate", "sigmoid"), ("cell", "tanh"), ("candidate", "tanh")))
    of_projection = _activation(attrs, "proj_activation", "tanh")
    steps, width = _Steps(x, "lstm", attrs.get("is_reverse", False)), weight.shape[1] // 4
    peepholes = None
    if bias is not None:
        x = x + _core.slice(bias, [1], [0], [4 * width])
        if attrs.get("use_peepholes", True) and bias.shape[1] == 7 * width:
            peepholes = _parts(_core.slice(bias, [1], [4 * width], [7 * width]), 3)
    hidden = steps.first(_only(given, "H0"), project.shape[1] if project is not None else width, x)
    cell = steps.first(_only(given, "C0"), width, x)
    made = {"hidden": [], "cell": [], "gates": [], "before": [], "inner": []}
    for row in steps.of(x):
        count = row.shape[0]
        hidden, cell = hidden[:count], cell[:count]
        new, i, f, o = _parts(row + _core.matmul(hidden, weight), 4)
        new = candidate(new)
        if peepholes:
            i, f = i + peepholes[0] * cell, f + peepholes[1] * cell
        i, f = gate(i), gate(f)
        cell = _clipped(f * cell + i * new, attrs.get("cell_clip", 0.0))
        o = gate(o + peepholes[2] * cell if peepholes else o)
        before = of_cell(cell)
        hidden = inner = o * before
        if project is not None:
            hidden = _clipped(of_projection(_core.matmul(inner, project)), attrs.get("proj_clip", 0.0))
        for into, one in zip(made.values(), (hidden, cell, _core.concat([new, i, f, o], 1), before, inner)):
            into.append(one)
    hidden, _ = steps.joined(made["hidden"])
    cell, _ = steps.joined(made["cell"])
    batch = [steps.joined(made[what])[1] for what in ("gates", "before", "inner")]
    return {"Hidden": [hidden], "Projection": [hidden], "Cell": [cell], "BatchGate": batch[:1], "BatchCellPreAct": batch[1:2],
            "BatchHidden": batch[2:]}


def gru(given, outputs, attrs):
    """gru: gates are update and reset, [width, 2 · width] of the weight's elements, then the candidate's."""
    x, weight, bias = (_only(given, slot) for slot in ("Input", "Weight", "Bias"))
    gate, state = _activation(attrs, "gate_activation", "sigmoid"), _activation(attrs, "activation", "tanh")
    steps, width = _Steps(x, "gru", attrs.get("is_reverse", False)), weight.shape[0]
    flat = _core.reshape(weight, [-1])
    of_gates = _core.reshape(_core.slice(flat, [0], [0], [2 * width * width]), [width, 2 * width])
    of_state = _core.reshape(_core.slice(flat, [0], [2 * width * width], [3 * width * width]), [width, width])
    x = x if bias is None else x + bias
    hidden = steps.first(_only(given, "H0"), width, x)
    made = [], [], []
    for row in steps.of(x):
        hidden = hidden[:row.shape[0]]
        update, reset = _parts(gate(_core.slice(row, [1], [0], [2 * width]) + _core.matmul(hidden, of_gates)), 2)
        kept = reset * hidden
        new = state(_core.slice(row, [1], [2 * width], [3 * width]) + _core.matmul(kept, of_state))
        hidden = update * hidden + (1.0 - update) * new if attrs.get("origin_mode", False) else \
            update * new + (1.0 - update) * hidden
        for into, one in zip(made, (_core.concat([update, reset, new], 1), kept, hidden)):
            into.append(one)
    (_, gates), (_, kept), (whole, batch) = (steps.joined(one) for one in made)
    return {"BatchGate": [gates], "BatchResetHiddenPrev": [kept], "BatchHidden": [batch], "Hidden": [whole]}


def _fused(recurrent, x, bias, given, outputs, attrs):
    """The results of a recurrent operator whose input x was computed before; Paddle's kernels leave other things in slots of
    their own work, which nothing reads."""
    made = recurrent({"Input": [x], "Weight": given["WeightH"], "Bias": [bias], "H0": given.get("H0"),
                      "C0": given.get("C0")}, outputs, attrs)
    return {slot: made.get(slot) if slot in ("Hidden", "Cell") else [x] * len(names) for slot, names in outputs.items()}


def _projected(given):
    x = _only(given, "X")
    out = _core.matmul(x, _only(given, "WeightX"))
    out._lod = x._lod
    return out


def fusion_lstm(given, outputs, attrs):
    """lstm of X · WeightX."""
    return _fused(lstm, _projected(given), _only(given, "Bias"), given, outputs, attrs)


def fusion_gru(given, outputs, attrs):
    """gru of X · WeightX."""
    return _fused(gru, _projected(given), _only(given, "Bias"), given, outputs, attrs)


def fused_embedding_fc_lstm(given, outputs, attrs):
    """lstm of rows of a table, which holds the products already, and the biases of the gates: Bias gives the peepholes."""
    ids, bias = _only(given, "Ids"), _only(given, "Bias")
    width = _only(given, "WeightH").shape[0]
    peepholes = _core.slice(bias, [1], [4 * width], [7 * width]) if bias.shape[1] == 7 * width else None
    bias = None if peepholes is None else _core.concat([_core.full([1, 4 * width], 0, bias.dtype), peepholes], 1)
    x = _core.gather(_only(given, "Embeddings"), _core.reshape(ids, [-1]), 0)
    x._lod = ids._lod
    return _fused(lstm, x, bias, given, outputs, attrs)
