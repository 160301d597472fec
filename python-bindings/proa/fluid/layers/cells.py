"""Recurrent cells of Paddle 1.x, and decoders that take the next inputs from a helper."""
import collections

from ... import _core
from ...nn import RNNCellBase
from ...nn.decode import Decoder
from ..data_feeder import check_dtype, check_type, check_variable_and_dtype

__all__ = ["BasicDecoder", "DecodeHelper", "GRUCell", "GreedyEmbeddingHelper", "LSTMCell", "RNNCell", "SampleEmbeddingHelper",
           "TrainingHelper"]

_FLOATING = ["float32", "float64"]


class RNNCell(RNNCellBase):
    """Base of cells: call(inputs, states) returns the step's output and the new states."""

    def call(self, inputs, states, **kwargs):
        """(output, new states) of a step."""
        raise NotImplementedError("RNNCell must implement the call function.")

    def forward(self, inputs, states, **kwargs):
        return self.call(inputs, states, **kwargs)


class _OfUnit(RNNCell):
    """A cell that runs a unit of contrib.layers."""

    def __init__(self, hidden_size, dtype):
        super().__init__()
        who = type(self).__name__
        check_type(hidden_size, "hidden_size", int, who)
        check_dtype(dtype, "dtype", _FLOATING, who)
        self.hidden_size = hidden_size


class GRUCell(_OfUnit):
    """One step of a GRU (contrib.layers.BasicGRUUnit), whose parameters are made when it sees the first input."""

    def __init__(self, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None, dtype="float32",
                 name="GRUCell"):
        super().__init__(hidden_size, dtype)
        from ..contrib.layers.rnn_impl import BasicGRUUnit
        self.gru_unit = BasicGRUUnit(name, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)

    def call(self, inputs, states):
        """(hidden, hidden)."""
        check_variable_and_dtype(inputs, "inputs", _FLOATING, "GRUCell")
        check_variable_and_dtype(states, "states", _FLOATING, "GRUCell")
        hidden = self.gru_unit(inputs, states)
        return hidden, hidden

    @property
    def state_shape(self):
        """The state's shape, without the batch."""
        return [self.hidden_size]


class LSTMCell(_OfUnit):
    """One step of an LSTM (contrib.layers.BasicLSTMUnit), whose parameters are made when it sees the first input."""

    def __init__(self, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None, forget_bias=1.0,
                 dtype="float32", name="LSTMCell"):
        super().__init__(hidden_size, dtype)
        from ..contrib.layers.rnn_impl import BasicLSTMUnit
        self.lstm_unit = BasicLSTMUnit(name, hidden_size, param_attr, bias_attr, gate_activation, activation, forget_bias,
                                       dtype)

    def call(self, inputs, states):
        """(hidden, [hidden, cell])."""
        check_variable_and_dtype(inputs, "inputs", _FLOATING, "LSTMCell")
        check_type(states, "states", (list, tuple), "LSTMCell")
        for i, state in enumerate(states):
            check_variable_and_dtype(state, f"state[{i}]", _FLOATING, "LSTMCell")
        hidden, cell = self.lstm_unit(inputs, *states)
        return hidden, [hidden, cell]

    @property
    def state_shape(self):
        """Shapes of hidden state and cell, without the batch."""
        return [[self.hidden_size], [self.hidden_size]]


class DecodeHelper:
    """The part of a BasicDecoder that chooses tokens and gives the next inputs."""

    def initialize(self):
        """(first inputs, which entries are finished)."""

    def sample(self, time, outputs, states):
        """The tokens of a step."""

    def next_inputs(self, time, outputs, states, sample_ids):
        """(which entries are finished, next inputs, next states)."""


def _each(function, value):
    """function of every tensor in nested lists, tuples and dicts."""
    if isinstance(value, dict):
        return {key: _each(function, one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_each(function, one) for one in value)
    return function(value)


class TrainingHelper(DecodeHelper):
    """The next inputs are those of given sequences; tokens are the largest outputs."""

    def __init__(self, inputs, sequence_length, time_major=False):
        self.inputs, self.sequence_length, self.time_major = inputs, sequence_length, time_major
        self._axis = 0 if time_major else 1
        # one more step, so that what follows the last is there
        self.inputs_ = _each(lambda x: _core.concat([x, _core.full_like(self._at(x, 0, True), 0)], self._axis), inputs)

    def _at(self, x, step, keep=False):
        one = _core.slice(x, [self._axis], [step], [step + 1])
        return one if keep else _core.squeeze(one, [self._axis])

    def initialize(self):
        """(the first step of the inputs, which sequences are empty)."""
        none = _core.full_like(self.sequence_length, 0)
        return _each(lambda x: self._at(x, 0), self.inputs), _core.equal(self.sequence_length, none)

    def sample(self, time, outputs, states):
        """The place of the largest output."""
        return _core.argmax(outputs, -1)

    def next_inputs(self, time, outputs, states, sample_ids):
        """The next step of the inputs."""
        step = _core.cast(time, self.sequence_length.dtype) + 1
        return _core.less_equal(self.sequence_length, step), _each(lambda x: self._at(x, step), self.inputs_), states


class GreedyEmbeddingHelper(DecodeHelper):
    """The next inputs are the embeddings of the tokens, which are the largest outputs."""

    def __init__(self, embedding_fn, start_tokens, end_token):
        self.embedding_fn, self.start_tokens = embedding_fn, start_tokens
        self.end_token = _core.full([1], end_token, "int64")

    def initialize(self):
        """(embeddings of the start tokens, that nothing is finished)."""
        none = _core.cast(_core.full_like(self.start_tokens, 0), "bool")
        return self.embedding_fn(self.start_tokens), none

    def sample(self, time, outputs, states):
        """The place of the largest output."""
        return _core.argmax(outputs, -1)

    def next_inputs(self, time, outputs, states, sample_ids):
        """The embeddings of the tokens."""
        return _core.equal(sample_ids, self.end_token), self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """GreedyEmbeddingHelper whose tokens are drawn by softmax(outputs / softmax_temperature)."""

    def __init__(self, embedding_fn, start_tokens, end_token, softmax_temperature=None, seed=None):
        super().__init__(embedding_fn, start_tokens, end_token)
        self.softmax_temperature, self.seed = softmax_temperature, seed

    def sample(self, time, outputs, states):
        """Tokens at random."""
        from ... import multinomial
        scores = outputs if self.softmax_temperature is None else outputs / self.softmax_temperature
        return _core.squeeze(multinomial(_core.softmax(scores, -1).detach(), 1), [-1])


class BasicDecoder(Decoder):
    """A cell whose next inputs come from a helper; output_fn makes scores of the cell's outputs."""

    OutputWrapper = collections.namedtuple("OutputWrapper", ("cell_outputs", "sample_ids"))

    def __init__(self, cell, helper, output_fn=None):
        self.cell, self.helper, self.output_fn = cell, helper, output_fn

    def initialize(self, initial_cell_states):
        """(first inputs, first states, which entries are finished)."""
        inputs, finished = self.helper.initialize()
        return inputs, initial_cell_states, finished

    def step(self, time, inputs, states, **kwargs):
        """(outputs, next states, next inputs, finished)."""
        outputs, states = self.cell(inputs, states, **kwargs)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        ids = self.helper.sample(time=time, outputs=outputs, states=states)
        ids.stop_gradient = True
        finished, inputs, states = self.helper.next_inputs(time=time, outputs=outputs, states=states, sample_ids=ids)
        return self.OutputWrapper(outputs, ids), states, inputs, finished
