"""The most probable sequence of tags, by Viterbi's recursion."""
from .. import _core
from ..nn import Layer
from ..tensor import zeros_like


def viterbi_decode(potentials, transition_params, lengths, include_bos_eos_tag=True, name=None):
    """(scores [batch], paths [batch, longest]) of potentials [batch, time, tags], tag-to-tag transitions and lengths.

    With include_bos_eos_tag the last tag begins and the one before it ends every sequence. Paths are int64, 0 behind
    a sequence's end.
    """
    if len(potentials.shape) != 3:
        raise ValueError(f"viterbi_decode: potentials must have 3 dims, got shape {potentials.shape}")
    lengths = lengths.astype("int64")
    longest = int(lengths.max())
    alpha = potentials[:, 0]
    if include_bos_eos_tag:
        alpha = alpha + transition_params[-1].unsqueeze(0)
        ends = transition_params[-2].unsqueeze(0)
        alpha = alpha + ends * (lengths == 1).astype(alpha.dtype).unsqueeze(-1)
    origins = []
    for t in range(1, longest):
        candidates = alpha.unsqueeze(-1) + transition_params.unsqueeze(0)  # [batch, from, to]
        origins.append(candidates.argmax(1))
        grown = candidates.max(1) + potentials[:, t]
        if include_bos_eos_tag:
            grown = grown + ends * (lengths == t + 1).astype(alpha.dtype).unsqueeze(-1)
        alive = (lengths > t).astype(alpha.dtype).unsqueeze(-1)
        alpha = grown * alive + alpha * (1 - alive)
    tag = alpha.argmax(-1)
    path = [None] * longest
    for t in range(longest - 1, -1, -1):
        inside = (lengths > t).astype("int64")
        path[t] = tag * inside
        if t > 0:
            back = origins[t - 1].take_along_axis(tag.unsqueeze(-1), -1).squeeze(-1)
            tag = _core.where(lengths > t, back, tag)
    return alpha.max(-1), _core.stack(path, -1) if path else zeros_like(tag)


class ViterbiDecoder(Layer):
    """viterbi_decode with these transitions."""

    def __init__(self, transitions, include_bos_eos_tag=True, name=None):
        super().__init__()
        self.transitions, self.include_bos_eos_tag, self.name = transitions, include_bos_eos_tag, name

    def forward(self, potentials, lengths):
        return viterbi_decode(potentials, self.transitions, lengths, self.include_bos_eos_tag, self.name)
