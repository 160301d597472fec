"""Decoding step by step: Decoder, BeamSearchDecoder, and dynamic_decode, which runs one until all is finished."""
import collections
import warnings

from .. import _core
from .._asks import asks
from .._errors import of_kind
from ..framework.dims import reshaped
from . import functional as F

_IMPOSSIBLE = 1e9  # what is taken from the score of what must not be chosen


def _map(fn, first, *others):
    """fn of the tensors that stand in the same place of equal structures of lists, tuples and dicts."""
    if isinstance(first, dict):
        return type(first)((key, _map(fn, first[key], *(o[key] for o in others))) for key in first)
    if isinstance(first, (list, tuple)):
        parts = [_map(fn, *same) for same in zip(first, *others)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    return fn(first, *others)


def _first(structure):
    """The first tensor of a structure."""
    while isinstance(structure, (list, tuple, dict)):
        structure = list(structure.values() if isinstance(structure, dict) else structure)[0]
    return structure


class Decoder:
    """Interface for dynamic_decode: initialize gives the first inputs, states and which entries are finished; step goes on
    from them; finalize, where there is one, makes the result of all steps' outputs."""

    def initialize(self, inits):
        """(inputs, states, finished) for the first step."""
        raise NotImplementedError(f"{type(self).__name__}: a Decoder must define initialize")

    def step(self, time, inputs, states, **kwargs):
        """(outputs, next states, next inputs, finished)."""
        raise NotImplementedError(f"{type(self).__name__}: a Decoder must define step")

    def finalize(self, outputs, final_states, sequence_lengths):
        """(outputs, states) made of all steps' outputs, which are stacked along a first axis."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self):
        """True: what step says is finished is taken as it is, though an entry may be unfinished again."""
        return False


class BeamSearchDecoder(Decoder):
    """Keeps the beam_size best sequences of every batch entry. cell(inputs, states) gives outputs and new states of
    [batch · beam, …]; embedding_fn makes inputs of tokens, output_fn makes scores [batch, beam, tokens] of outputs.
    Decoders that are made from it call its parts, and look at batch_size, under Paddle's names."""

    OutputWrapper = collections.namedtuple("OutputWrapper", ("scores", "predicted_ids", "parent_ids"))
    StateWrapper = collections.namedtuple("StateWrapper", ("cell_states", "log_probs", "finished", "lengths"))

    def __init__(self, cell, start_token, end_token, beam_size, embedding_fn=None, output_fn=None):
        self.cell = cell
        self.embedding_fn = embedding_fn
        self.output_fn = output_fn
        self.start_token = start_token
        self.end_token = end_token
        self.beam_size = beam_size

    @staticmethod
    @asks("eager:x:Tensor!InvalidArgument")
    def tile_beam_merge_with_batch(x, beam_size):
        """[batch, …] → [batch · beam, …], every entry beam_size times in a row."""
        shape = x.shape
        tiled = _core.tile(_core.unsqueeze(x, [1]), [1, beam_size] + [1] * (len(shape) - 1))
        return reshaped(tiled, [shape[0] * beam_size] + shape[1:])

    def _expand_to_beam_size(self, x):
        return _core.tile(_core.unsqueeze(x, [1]), [1, self.beam_size] + [1] * (x.ndim - 1))

    def _split_batch_beams(self, x):
        return _core.reshape(x, [-1, self.beam_size] + x.shape[1:])

    def _merge_batch_beams(self, x):
        return _core.reshape(x, [-1] + x.shape[2:])

    def _embed(self, tokens):
        return tokens if self.embedding_fn is None else self.embedding_fn(tokens)

    @staticmethod
    def _pick(x, places):
        """x [batch, n, …] at places [batch, beam]."""
        batch = _core.unsqueeze(_core.arange(0, places.shape[0], 1, places.dtype), [1])
        batch = _core.expand(batch, places.shape)
        return _core.gather_nd(x, _core.stack([batch, places], 2))

    def initialize(self, initial_cell_states):
        first, beam, token = _first(initial_cell_states), self.beam_size, self.start_token
        if not isinstance(first, _core.Tensor):
            raise of_kind(f"BeamSearchDecoder.initialize: initial_cell_states must hold Tensors, got {type(first).__name__}")
        self.batch_size = batch = first.shape[0]
        if isinstance(token, _core.Tensor) and not token.is_symbolic:
            token = int(token)
        kind = _core.float64 if _core.get_default_dtype() == "float64" else _core.float32
        start = _core.to_tensor([[0.0] + [-_IMPOSSIBLE] * (beam - 1)], kind)  # one beam at first: the others are equal
        finished = _core.full([batch, beam], False, _core.bool)
        tokens = _core.full([batch, beam], token, _core.int64)
        states = self.StateWrapper(_map(self._expand_to_beam_size, initial_cell_states), _core.tile(start, [batch, 1]),
                                   finished, _core.full([batch, beam], 0, _core.int64))
        return self._embed(tokens), states, finished

    def _mask_probs(self, log_probs, finished):
        """A finished beam can only go on with the end token, at no cost."""
        tokens = log_probs.shape[-1]
        only_end = _core.to_tensor([0.0 if i == self.end_token else -_IMPOSSIBLE for i in range(tokens)],
                                   log_probs.dtype)
        done = _core.unsqueeze(_core.cast(finished, log_probs.dtype), [2])
        return done * only_end + log_probs * (1 - done)

    def _beam_search_step(self, time, logits, next_cell_states, beam_state):
        tokens = logits.shape[-1]
        probs = self._mask_probs(_core.log(_core.softmax(logits, -1)), beam_state.finished)
        scores = _core.reshape(probs + _core.unsqueeze(beam_state.log_probs, [2]), [-1, self.beam_size * tokens])
        best, places = _core.topk(scores, k=self.beam_size)[:2]
        count = _core.full([1], tokens, _core.int64)
        parents, chosen = _core.floor_divide(places, count), _core.remainder(places, count)
        finished, lengths = self._pick(beam_state.finished, parents), self._pick(beam_state.lengths, parents)
        lengths = lengths + _core.cast(_core.logical_not(finished), lengths.dtype)
        finished = _core.logical_or(finished, _core.equal(chosen, _core.full([1], self.end_token, _core.int64)))
        states = self.StateWrapper(_map(lambda x: self._pick(x, parents), next_cell_states),
                                   self._pick(scores, places), finished, lengths)
        return self.OutputWrapper(best, chosen, parents), states

    def step(self, time, inputs, states, **kwargs):
        merged = _map(self._merge_batch_beams, states.cell_states)
        outputs, next_states = self.cell(_map(self._merge_batch_beams, inputs), merged, **kwargs)
        outputs, next_states = _map(self._split_batch_beams, outputs), _map(self._split_batch_beams, next_states)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        outputs, states = self._beam_search_step(time, outputs, next_states, states)
        outputs.predicted_ids.stop_gradient = True
        return outputs, states, self._embed(outputs.predicted_ids), states.finished

    def finalize(self, outputs, final_states, sequence_lengths):
        return F.gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states

    @property
    def tracks_own_finished(self):
        """True: beams change places, and what is finished with them."""
        return True


def _keep_finished(state, new_state, finished):
    """state where finished, new_state elsewhere; through numbers, for the sake of the gradient."""
    kind = state.dtype
    if kind == _core.bool:
        state, new_state = _core.cast(state, _core.float32), _core.cast(new_state, _core.float32)
    mask = _core.unsqueeze(_core.cast(finished, state.dtype), [1])
    kept = state * mask - new_state * (mask - 1)
    return _core.cast(kept, kind) if kind == _core.bool else kept


def _transpose_batch_time(x):
    return _core.transpose(x, [1, 0] + list(range(2, x.ndim)))


def dynamic_decode(decoder, inits=None, max_step_num=None, output_time_major=False, impute_finished=False,
                   is_test=False, return_length=False, **kwargs):
    """Calls decoder.step until all entries are finished, or after max_step_num steps beyond the first. Returns outputs
    ([batch, time, …], or [time, batch, …] with output_time_major), the last states and, with return_length, lengths.

    impute_finished: finished entries keep their states. is_test is accepted and changes nothing.
    """
    inputs, states, finished = decoder.initialize(inits)
    lengths = _core.full(finished.shape, 0, _core.int64)
    steps, time = [], 0
    while not bool(_core.all(finished)):
        outputs, next_states, inputs, next_finished = decoder.step(_core.full([1], time, _core.int64), inputs, states,
                                                                   **kwargs)
        if not decoder.tracks_own_finished:
            finished = _core.logical_or(next_finished, finished)
            lengths = lengths + _core.cast(_core.logical_not(finished), lengths.dtype)
            if impute_finished:
                next_states = _map(lambda old, new: _keep_finished(old, new, finished), states, next_states)
        else:
            finished = next_finished
            if not hasattr(next_states, "lengths"):
                warnings.warn("dynamic_decode: next_states has no `lengths`; sequence_lengths will be zeros")
            lengths = getattr(next_states, "lengths", lengths)
        states = next_states
        steps.append(outputs)
        time += 1
        if max_step_num is not None and time > max_step_num:
            break
    if not steps:
        raise ValueError("dynamic_decode: all entries are finished before the first step")
    outputs = _map(lambda *each: _core.stack(list(each), 0), *steps)
    try:
        outputs, states = decoder.finalize(outputs, states, lengths)
    except NotImplementedError:
        pass
    if not output_time_major:
        outputs = _map(_transpose_batch_time, outputs)
    return (outputs, states, lengths) if return_length else (outputs, states)
