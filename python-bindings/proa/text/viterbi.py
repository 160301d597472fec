"""The most probable sequence of tags, by Viterbi's recursion."""
from .. import _core
from ..nn import Layer


def viterbi_decode(potentials, transition_params, lengths, include_bos_eos_tag=True, name=None):
    """(scores [batch], paths [batch, longest]) of potentials [batch, time, tags], tag-to-tag transitions and lengths.

    With include_bos_eos_tag the last tag begins and the one before it ends every sequence. Lengths and paths are int64, paths 0
    behind a sequence's end.
    """
    return _core.viterbi_decode(potentials, transition_params, lengths, include_bos_eos_tag=include_bos_eos_tag)


class ViterbiDecoder(Layer):
    """viterbi_decode with these transitions."""

    def __init__(self, transitions, include_bos_eos_tag=True, name=None):
        super().__init__()
        self.transitions, self.include_bos_eos_tag, self.name = transitions, include_bos_eos_tag, name

    def forward(self, potentials, lengths):
        return viterbi_decode(potentials, self.transitions, lengths, self.include_bos_eos_tag, self.name)
