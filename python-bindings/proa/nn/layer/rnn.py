"""Recurrent layers: cells, RNN and BiRNN that run any cell, and SimpleRNN, LSTM, GRU over the fused `rnn` op."""

from ... import _core
from ..._asks import asks, need_kernel
from ..._errors import need_attribute
from ...framework.dtype import dtype_name, get_default_dtype, to_dtype
from .. import functional as F
from .. import initializer as I
from .container import LayerList
from .layers import Layer

__all__ = ["BiRNN", "GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCellBase", "SimpleRNN", "SimpleRNNCell"]
_matmul = _core.api("paddle")["matmul"]  # refuses operands of two floating dtypes


def _map(fn, first, *others):
    """fn over nested lists, tuples and dicts of the same structure."""
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(_map(fn, *parts) for parts in zip(first, *others)))
    if isinstance(first, (list, tuple)):
        return type(first)(_map(fn, *parts) for parts in zip(first, *others))
    if isinstance(first, dict):
        return type(first)((k, _map(fn, first[k], *(o[k] for o in others))) for k in first)
    return fn(first, *others)


def _flat(nested):
    if isinstance(nested, dict):
        nested = [nested[k] for k in nested]
    return [x for part in nested for x in _flat(part)] if isinstance(nested, (list, tuple)) else [nested]


def _swapped(x):
    """Batch and time exchanged."""
    return _core.transpose(x, [1, 0, *range(2, len(x.shape))])


def _step_masks(sequence_length, steps, dtype):
    """[steps, batch]: 1 where the step is inside the sequence."""
    index = _core.reshape(_core.arange(0, steps, 1, dtype="int64"), [steps, 1])
    lengths = _core.reshape(_core.cast(sequence_length, "int64"), [1, -1])
    return _core.cast(_core.less_than(index, lengths), dtype)


def _kept(old, new, mask):
    """The new state where mask is 1, else the old one."""
    mask = _core.reshape(mask, [-1] + [1] * (len(new.shape) - 1))
    return _core.add(_core.multiply(new, mask),
                     _core.multiply(old, _core.scale(mask, -1.0, bias=1.0)))


def _run(cell, inputs, states, sequence_length, time_major, is_reverse, **kwargs):
    """Outputs and last states of a cell stepped through time."""
    if states is None:
        states = cell.get_initial_states(batch_ref=inputs, batch_dim_idx=1 if time_major else 0)
    if not time_major:
        inputs = _map(_swapped, inputs)
    first = _flat(inputs)[0]
    steps = first.shape[0].__index__()  # the program has each step
    masks = None if sequence_length is None else _core.unbind(_step_masks(sequence_length, steps, first.dtype))
    slices = _core.unbind(inputs) if isinstance(inputs, _core.Tensor) else None
    outputs = [None] * steps
    for t in reversed(range(steps)) if is_reverse else range(steps):
        step = slices[t] if slices else _map(lambda x, t=t: x[t], inputs)
        outputs[t], new = cell(step, states, **kwargs)
        states = new if masks is None else _map(lambda old, now, m=masks[t]: _kept(old, now, m), states, new)
    axis = 0 if time_major else 1
    return _map(lambda *each: _core.stack(list(each), axis=axis), *outputs), states


class RNNCellBase(Layer):
    """Base of cells: forward(inputs, states) returns the step's output and the new states."""

    def get_initial_states(self, batch_ref, shape=None, dtype=None, init_value=0.0, batch_dim_idx=0):
        """States filled with init_value, nested as shape (default: state_shape), for the batch of batch_ref."""
        batch = _flat(batch_ref)[0].shape[batch_dim_idx]
        shape = self.state_shape if shape is None else shape
        if dtype is None:
            try:
                dtype = self.state_dtype
            except NotImplementedError:
                dtype = get_default_dtype()

        def filled(shape, dtype):
            if all(isinstance(n, int) for n in shape):
                shape = list(shape[1:] if shape[0] == -1 else shape)
                return _core.full([batch, *shape], float(init_value), to_dtype(dtype))
            kinds = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(shape)
            return type(shape)(filled(s, d) for s, d in zip(shape, kinds))

        return filled(shape, dtype)

    @property
    def state_shape(self):
        """Shapes of the states, without the batch."""
        raise NotImplementedError(f"{type(self).__name__} has no state_shape: the cell must define it")

    @property
    def state_dtype(self):
        """Dtypes of the states."""
        raise NotImplementedError(f"{type(self).__name__} has no state_dtype: the cell must define it")


class _Cell(RNNCellBase):
    gates = 1

    def __init__(self, input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr):
        super().__init__()
        if hidden_size <= 0:
            raise ValueError(f"{type(self).__name__}: hidden_size must be greater than 0, got {hidden_size}")
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = self.gates * hidden_size
        self._make("weight_ih", (rows, input_size), weight_ih_attr, False)
        self._make("weight_hh", (rows, hidden_size), weight_hh_attr, False)
        self._make("bias_ih", (rows,), bias_ih_attr, True)
        self._make("bias_hh", (rows,), bias_hh_attr, True)

    def _make(self, name, shape, attr, is_bias):
        """attr=False: a constant stands for the parameter, ones for a weight and zeros for a bias."""
        limit = I.table.recurrent(self.hidden_size)
        make = I.Constant(0.0 if is_bias else 1.0) if attr is False else I.Uniform(-limit, limit)
        param = self.create_parameter(shape, None if attr is False else attr, is_bias=is_bias,
                                      default_initializer=make)
        if attr is False:
            param.stop_gradient = True
        setattr(self, name, param)

    def _from_input(self, inputs):
        return _core.add(_matmul(inputs, self.weight_ih, transpose_y=True), self.bias_ih)

    def _from_state(self, hidden):
        return _core.add(_matmul(hidden, self.weight_hh, transpose_y=True), self.bias_hh)

    @property
    def state_shape(self):
        return (self.hidden_size,)

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_Cell):
    """h = act(W_ih x + b_ih + W_hh h + b_hh), act tanh or relu. forward(inputs, states=None) returns h, h."""

    def __init__(self, input_size, hidden_size, activation="tanh", weight_ih_attr=None, weight_hh_attr=None,
                 bias_ih_attr=None, bias_hh_attr=None, name=None):
        if activation not in ("tanh", "relu"):
            raise ValueError(f"SimpleRNNCell: activation must be 'tanh' or 'relu', got {activation!r}")
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self.activation = activation

    def forward(self, inputs, states=None):
        if states is None:
            states = self.get_initial_states(inputs)
        total = _core.add(self._from_input(inputs), self._from_state(states))
        h = _core.tanh(total) if self.activation == "tanh" else _core.relu(total)
        return h, h

    def extra_repr(self):
        more = "" if self.activation == "tanh" else f", activation={self.activation}"
        return super().extra_repr() + more


class LSTMCell(_Cell):
    """Long short-term memory, gates i f g o. forward(inputs, states=None) returns h, (h, c).

    >>> import proa as paddle
    >>> y, (h, c) = paddle.nn.LSTMCell(4, 5)(paddle.rand([2, 4]))
    >>> h.shape, c.shape
    ([2, 5], [2, 5])
    """

    gates = 4

    def __init__(self, input_size, hidden_size, weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None,
                 bias_hh_attr=None, name=None):
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)

    def forward(self, inputs, states=None):
        if states is None:
            states = self.get_initial_states(inputs)
        hidden, cell = states
        i, f, g, o = _core.split(_core.add(self._from_input(inputs), self._from_state(hidden)), num=4, axis=-1)
        c = _core.add(_core.multiply(_core.sigmoid(f), cell), _core.multiply(_core.sigmoid(i), _core.tanh(g)))
        h = _core.multiply(_core.sigmoid(o), _core.tanh(c))
        return h, (h, c)

    @property
    def state_shape(self):
        return (self.hidden_size,), (self.hidden_size,)


class GRUCell(_Cell):
    """Gated recurrent unit, gates r z c. forward(inputs, states=None) returns h, h."""

    gates = 3

    def __init__(self, input_size, hidden_size, weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None,
                 bias_hh_attr=None, name=None):
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)

    def forward(self, inputs, states=None):
        if states is None:
            states = self.get_initial_states(inputs)
        need_kernel("GRUCell", "b,u1,i1,i4,i8,f4,f8", inputs=inputs)
        x_r, x_z, x_c = _core.split(self._from_input(inputs), num=3, axis=-1)
        h_r, h_z, h_c = _core.split(self._from_state(states), num=3, axis=-1)
        r, z = _core.sigmoid(_core.add(x_r, h_r)), _core.sigmoid(_core.add(x_z, h_z))
        c = _core.tanh(_core.add(x_c, _core.multiply(r, h_c)))
        h = _core.add(_core.multiply(_core.subtract(states, c), z), c)
        return h, h


class RNN(Layer):
    """Runs a cell over time: forward(inputs, initial_states=None, sequence_length=None) returns outputs and the
    last states. States stop changing at sequence_length; outputs past it are as the cell computes them."""

    def __init__(self, cell, is_reverse=False, time_major=False):
        super().__init__()
        need_attribute("RNN", "forward", "a cell", cell=cell)
        self.cell = cell
        self.is_reverse = is_reverse
        self.time_major = time_major

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        return _run(self.cell, inputs, initial_states, sequence_length, self.time_major, self.is_reverse, **kwargs)


class BiRNN(Layer):
    """Runs one cell forwards and one backwards over time; their outputs are joined along the last axis."""

    def __init__(self, cell_fw, cell_bw, time_major=False):
        super().__init__()
        if cell_fw.input_size != cell_bw.input_size:
            raise ValueError(f"BiRNN: both cells must have one input size, got {cell_fw.input_size} and "
                             f"{cell_bw.input_size}")
        self.cell_fw = cell_fw
        self.cell_bw = cell_bw
        self.time_major = time_major

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        if initial_states is None:
            initial_states = (None, None)
        elif len(initial_states) != 2:
            raise ValueError(f"BiRNN: initial_states must hold 2 entries, got {len(initial_states)}")
        forwards, last_fw = _run(self.cell_fw, inputs, initial_states[0], sequence_length, self.time_major, False,
                                 **kwargs)
        backwards, last_bw = _run(self.cell_bw, inputs, initial_states[1], sequence_length, self.time_major, True,
                                  **kwargs)
        return _map(lambda a, b: _core.concat([a, b], axis=-1), forwards, backwards), (last_fw, last_bw)


_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class RNNBase(LayerList):
    """Stacked layers of one kind of cell. The cells' parameters are also this layer's own: weight_ih_l0, …"""

    def __init__(self, mode, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0,
                 weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None, bias_hh_attr=None, activation=None):
        super().__init__()
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ValueError(f"{type(self).__name__}: direction must be 'forward' or 'bidirect' (or 'bidirectional'), "
                             f"got {direction!r}")
        self.mode = mode
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.dropout, self.time_major = dropout, time_major
        self.num_directions = 1 if direction == "forward" else 2
        self.state_components = 2 if mode == "LSTM" else 1
        attrs = {"weight_ih_attr": weight_ih_attr, "weight_hh_attr": weight_hh_attr, "bias_ih_attr": bias_ih_attr,
                 "bias_hh_attr": bias_hh_attr}
        if activation is not None:
            self.activation = attrs["activation"] = activation
        kind = {"LSTM": LSTMCell, "GRU": GRUCell}.get(mode, SimpleRNNCell)
        for i in range(num_layers):
            size = input_size if i == 0 else hidden_size * self.num_directions
            cells = [kind(size, hidden_size, **attrs) for _ in range(self.num_directions)]
            self.append(RNN(cells[0], False, time_major) if len(cells) == 1 else BiRNN(*cells, time_major))
            for cell, suffix in zip(cells, ("", "_reverse")):
                for part in _PARTS:
                    if attrs[part + "_attr"] is not False or part.startswith("weight"):
                        setattr(self, f"{part}_l{i}{suffix}", getattr(cell, part))

        self.flatten_parameters()

    def flatten_parameters(self):
        """Nothing to do: the fused op takes the parameters as they lie."""

    def _weights(self):
        cells = [cell for layer in self._sub_layers.values() for cell in layer._sub_layers.values()]
        return ([w for cell in cells for w in (cell.weight_ih, cell.weight_hh)] +
                [b for cell in cells for b in (cell.bias_ih, cell.bias_hh)])

    @asks("eager:initial_states:list,tuple,Tensor,None!InvalidArgument eager:inputs.dtype=f4,f8!NotFound")
    def forward(self, inputs, initial_states=None, sequence_length=None):
        if initial_states is None:
            batch = inputs.shape[1 if self.time_major else 0]
            shape = [self.num_layers * self.num_directions, batch, self.hidden_size]
            states = [_core.full(shape, 0.0, inputs.dtype) for _ in range(self.state_components)]
        else:
            states = [initial_states] if isinstance(initial_states, _core.Tensor) else list(initial_states)
        if len(states) != self.state_components:
            raise ValueError(f"{type(self).__name__}: initial_states must hold {self.state_components} tensors, got "
                             f"{len(states)}")
        if dtype_name(inputs.dtype) not in ("float32", "float64"):
            return self._stepped(inputs, states, sequence_length)
        if not self.time_major:
            inputs = _swapped(inputs)
        if sequence_length is not None:
            sequence_length = _core.cast(sequence_length, "int32")
        out, _, last, _ = _core.rnn(inputs, states, self._weights(), sequence_length, mode=self.mode,
                                    num_layers=self.num_layers, is_bidirec=self.num_directions == 2,
                                    dropout_prob=float(self.dropout), training=self.training)
        return (out if self.time_major else _swapped(out)), (tuple(last) if len(last) > 1 else last[0])

    def _stepped(self, inputs, states, sequence_length):
        """forward() for dtypes that the fused op does not take."""
        rows = list(zip(*(_core.unbind(s) for s in states)))
        rows = [row if len(row) > 1 else row[0] for row in rows]
        last = []
        for i, layer in enumerate(self):
            if i > 0 and self.dropout:
                inputs = F.dropout(inputs, self.dropout, training=self.training, mode="upscale_in_train")
            if self.num_directions == 1:
                inputs, new = layer(inputs, rows[i], sequence_length)
                last.append(new)
            else:
                inputs, new = layer(inputs, tuple(rows[2 * i:2 * i + 2]), sequence_length)
                last.extend(new)
        if self.state_components == 1:
            return inputs, _core.stack(last)
        return inputs, tuple(_core.stack(list(part)) for part in zip(*last))

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("num_layers", 1), ("time_major", False), ("dropout", 0)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class SimpleRNN(RNNBase):
    """Stacked SimpleRNNCells: forward(inputs, initial_states=None, sequence_length=None) returns outputs and h."""

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0,
                 activation="tanh", weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None, bias_hh_attr=None,
                 name=None):
        if activation not in ("tanh", "relu"):
            raise ValueError(f"SimpleRNN: activation must be 'tanh' or 'relu', got {activation!r}")
        super().__init__("RNN_" + activation.upper(), input_size, hidden_size, num_layers, direction, time_major,
                         dropout, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr, activation)


class LSTM(RNNBase):
    """Stacked LSTMs: forward(inputs, initial_states=None, sequence_length=None) returns outputs and (h, c).

    >>> import proa as paddle
    >>> y, (h, c) = paddle.nn.LSTM(4, 5, num_layers=2, direction="bidirect")(paddle.rand([3, 7, 4]))
    >>> y.shape, h.shape
    ([3, 7, 10], [4, 3, 5])
    """

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0,
                 weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None, bias_hh_attr=None, name=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
                         weight_hh_attr, bias_ih_attr, bias_hh_attr)


class GRU(RNNBase):
    """Stacked GRUs: forward(inputs, initial_states=None, sequence_length=None) returns outputs and h."""

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0,
                 weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None, bias_hh_attr=None, name=None):
        super().__init__("GRU", input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
                         weight_hh_attr, bias_ih_attr, bias_hh_attr)
