"""Decoders and measures of label sequences of Paddle 1.x (ctc_align, edit_distance, sequence_erase, unique_with_counts), for the
operator-by-operator interpreter in late.py."""
import numpy as np

from .. import _core


def _number_of(given, slot, who):
    """The lengths of a slot as a list."""
    if not given.get(slot):
        raise ValueError(f"(InvalidArgument) {who}: the sequences of {slot.replace('Length', '') or 'Input'} have no offsets; "
                         f"give {slot}")
    return given[slot][0].numpy().reshape(-1).tolist()


def _sequences(given, slot, lengths, who):
    """The sequences of a slot as arrays: by its offsets, or rows of a matrix by their lengths."""
    x = given[slot][0]
    if x._lod and not given.get(lengths):
        offsets, flat = x._lod[-1], x.numpy().reshape(-1)
        return [flat[a:b] for a, b in zip(offsets, offsets[1:])]
    counts = _number_of(given, lengths, who)
    return [row[:n] for row, n in zip(x.numpy().reshape(len(counts), -1), counts)]


def _in_a_row(sequences, like, empty=None):
    """Sequences as one column with offsets. `empty`: the only element where all of them are without elements."""
    flat = np.concatenate(sequences) if sequences else np.zeros(0)
    offsets = np.cumsum([0, *map(len, sequences)]).tolist()
    if not len(flat) and empty is not None:
        return _core.to_tensor(np.full((1, 1), empty), dtype=like.dtype)
    out = _core.to_tensor(flat.reshape(-1, 1), dtype=like.dtype)
    out._lod = [offsets]
    return out


def ctc_align(given, outputs, attrs):
    """Without repeated labels, if they are merged, and without blanks: a sequence each, or rows filled up by padding_value."""
    blank, merge, fill = attrs.get("blank", 0), attrs.get("merge_repeated", True), attrs.get("padding_value", 0)
    x = given["Input"][0]
    kept = []
    for labels in _sequences(given, "Input", "InputLength", "ctc_align"):
        new = np.ones(len(labels), bool)
        if merge:
            new[1:] = labels[1:] != labels[:-1]
        kept.append(labels[new & (labels != blank)])
    if not given.get("InputLength"):
        return {"Output": [_in_a_row(kept, x, empty=-1)]}
    rows = np.full((len(kept), x.shape[1]), fill)
    for row, labels in zip(rows, kept):
        row[:len(labels)] = labels
    return {"Output": [_core.to_tensor(rows, dtype=x.dtype)],
            "OutputLength": [_core.to_tensor(np.array([[len(labels)] for labels in kept]), dtype=given["InputLength"][0].dtype)]}


def _distance(a, b):
    """Levenshtein's distance: the fewest insertions, deletions and substitutions that make b of a."""
    row = np.arange(len(b) + 1)
    for i, label in enumerate(a, 1):
        # substitution or deletion first; insertions then run along the row
        best = np.minimum(row[:-1] + (b != label), row[1:] + 1) if len(b) else row[:0]
        steps = np.concatenate([[i], best])
        row = np.minimum.accumulate(steps - np.arange(len(steps))) + np.arange(len(steps))
    return int(row[-1])


def edit_distance(given, outputs, attrs):
    """The edit distance of each pair of sequences, of the reference's length if normalized."""
    found = _sequences(given, "Hyps", "HypsLength", "edit_distance")
    true = _sequences(given, "Refs", "RefsLength", "edit_distance")
    if len(found) != len(true):
        raise ValueError(f"(InvalidArgument) edit_distance: {len(found)} sequences of Hyps, {len(true)} of Refs; expected as many")
    distances = [float(_distance(a, b)) for a, b in zip(found, true)]
    if attrs.get("normalized", False):
        if not all(map(len, true)):
            raise ValueError("(InvalidArgument) edit_distance: a sequence of Refs is empty, and normalized divides by its length")
        distances = [d / len(b) for d, b in zip(distances, true)]
    return {"Out": [_core.to_tensor(np.array(distances, "float32").reshape(-1, 1))],
            "SequenceNum": [_core.to_tensor(np.array([len(found)]), dtype="int64")]}


def sequence_erase(given, outputs, attrs):
    """The sequences without some labels."""
    x = given["X"][0]
    if not x._lod:
        raise ValueError("(InvalidArgument) sequence_erase: X has no sequences; feed one with offsets")
    kept = [labels[~np.isin(labels, attrs.get("tokens", []))] for labels in _sequences(given, "X", "", "sequence_erase")]
    out = _in_a_row(kept, x)
    out._lod = [*x._lod[:-1], *out._lod]
    return {"Out": [out]}


def unique_with_counts(given, outputs, attrs):
    """The different elements in the order of their first occurrence, which of them each element is, and how often each occurs."""
    x = given["X"][0]
    values, first, index, counts = np.unique(x.numpy(), return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    kind = _core.int32 if attrs.get("dtype") in (2, "int32", _core.int32) else _core.int64
    return {"Out": [_core.to_tensor(values[order], dtype=x.dtype)], "Index": [_core.to_tensor(place[index.reshape(-1)], dtype=kind)],
            "Count": [_core.to_tensor(counts[order], dtype=kind)]}
