"""Recurrent units of products and activations, and layers of them over whole sequences."""
from .... import concat, matmul, split, stack
from ....nn import RNN, Layer, RNNCellBase
from ...layers import dropout, sigmoid, tanh

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm"]


class _Unit(Layer):
    """Makes its parameters when it sees the first input."""

    def __init__(self, name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype):
        super().__init__(name_scope, dtype)
        self._hidden_size, self._param_attr, self._bias_attr = hidden_size, param_attr, bias_attr
        self._gate_activation, self._activation = gate_activation or sigmoid, activation or tanh
        self._built = False

    def _parameters_of(self, rows, columns):
        return (self.create_parameter([rows, columns], self._param_attr, self._dtype),
                self.create_parameter([columns], self._bias_attr, self._dtype, is_bias=True))

    def forward(self, input, *state):
        if not self._built:
            self._build(int(input.shape[-1]) + self._hidden_size)
            self._built = True
        return self._step(input, *state)


class BasicGRUUnit(_Unit):
    """One step of a GRU: new hidden state = u · hidden + (1 − u) · tanh([input, r · hidden] · weight + bias)."""

    def __init__(self, name_scope, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None,
                 dtype="float32"):
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)

    def _build(self, rows):
        self._gate_weight, self._gate_bias = self._parameters_of(rows, 2 * self._hidden_size)
        self._candidate_weight, self._candidate_bias = self._parameters_of(rows, self._hidden_size)

    def _step(self, input, pre_hidden):
        gates = self._gate_activation(matmul(concat([input, pre_hidden], 1), self._gate_weight) + self._gate_bias)
        reset, update = split(gates, 2, 1)
        candidate = matmul(concat([input, reset * pre_hidden], 1), self._candidate_weight) + self._candidate_bias
        return update * pre_hidden + (1 - update) * self._activation(candidate)


class BasicLSTMUnit(_Unit):
    """One step of an LSTM: (hidden, cell), with forget_bias added to the forget gate."""

    def __init__(self, name_scope, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None,
                 forget_bias=1.0, dtype="float32"):
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)
        self._forget_bias = forget_bias

    def _build(self, rows):
        self._weight, self._bias = self._parameters_of(rows, 4 * self._hidden_size)

    def _step(self, input, pre_hidden, pre_cell):
        parts = split(matmul(concat([input, pre_hidden], 1), self._weight) + self._bias, 4, 1)
        add, new, forget, out = parts
        gate, act = self._gate_activation, self._activation
        cell = pre_cell * gate(forget + self._forget_bias) + gate(add) * act(new)
        return act(cell) * gate(out), cell


class _Cell(RNNCellBase):
    """A unit as nn.RNN runs it."""

    def __init__(self, unit, hidden_size, states):
        super().__init__()
        self.unit, self._shape = unit, tuple([[hidden_size]] * states) if states > 1 else [hidden_size]

    @property
    def state_shape(self):
        return self._shape

    def forward(self, inputs, states):
        if isinstance(states, (list, tuple)):
            hidden, cell = self.unit(inputs, *states)
            return hidden, (hidden, cell)
        hidden = self.unit(inputs, states)
        return hidden, hidden


def _layers(make, states, input, initial, hidden_size, num_layers, sequence_length, dropout_prob, bidirectional,
            batch_first):
    """(outputs, last states as stacked tensors) of num_layers layers; initial: a tensor or None for each of the states."""
    ways, out, last = 2 if bidirectional else 1, input, []
    for layer in range(num_layers):
        found = []
        for way in range(ways):
            at = layer * ways + way
            first = [None if one is None else one.reshape([num_layers * ways, -1, hidden_size])[at] for one in initial]
            first = None if None in first else tuple(first) if states > 1 else first[0]
            cell = _Cell(make(f"layer_{layer}{'_reverse' if way else ''}"), hidden_size, states)
            made, state = RNN(cell, is_reverse=bool(way), time_major=not batch_first)(out, first, sequence_length)
            found.append(made)
            last.append(state if states > 1 else (state,))
        out = found[0] if ways == 1 else concat(found, -1)
        if dropout_prob:
            out = dropout(out, dropout_prob, dropout_implementation="upscale_in_train")
    return (out, *(stack([one[i] for one in last], 0) for i in range(states)))


def basic_gru(input, init_hidden, hidden_size, num_layers=1, sequence_length=None, dropout_prob=0.0, bidirectional=False,
              batch_first=True, param_attr=None, bias_attr=None, gate_activation=None, activation=None, dtype="float32",
              name="basic_gru"):
    """(outputs, last hidden states) of layers of BasicGRUUnit over sequences."""
    def make(part):
        return BasicGRUUnit(f"{name}_{part}", hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)
    return _layers(make, 1, input, [init_hidden], hidden_size, num_layers, sequence_length, dropout_prob, bidirectional,
                   batch_first)


def basic_lstm(input, init_hidden, init_cell, hidden_size, num_layers=1, sequence_length=None, dropout_prob=0.0,
               bidirectional=False, batch_first=True, param_attr=None, bias_attr=None, gate_activation=None,
               activation=None, forget_bias=1.0, dtype="float32", name="basic_lstm"):
    """(outputs, last hidden states, last cells) of layers of BasicLSTMUnit over sequences."""
    def make(part):
        return BasicLSTMUnit(f"{name}_{part}", hidden_size, param_attr, bias_attr, gate_activation, activation, forget_bias,
                             dtype)
    return _layers(make, 2, input, [init_hidden, init_cell], hidden_size, num_layers, sequence_length, dropout_prob,
                   bidirectional, batch_first)
