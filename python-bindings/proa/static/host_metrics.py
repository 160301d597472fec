"""chunk_eval, the metric of named entities, for the operator-by-operator interpreter in late.py: precision, recall and
F1 of chunks in sequences of tags."""
import numpy as np

from .. import _core

# Tags in the order of their numbers: the beginning, inside, end of a chunk, and a chunk of one.
_SCHEMES = {"IOB": "BI", "IOE": "IE", "IOBES": "BIES", "plain": "P"}
_OPENS, _CLOSES = frozenset("BS"), frozenset("ES")


def _chunks(labels, kinds, tags):
    """{(first, last, kind)} of a sequence of labels kind · len(tags) + tag; kind `kinds` belongs to no chunk."""
    found, first, before, tag_before = set(), None, kinds, "-"
    for i, label in enumerate(labels):
        if not 0 <= label <= kinds * len(tags):
            raise ValueError(f"(InvalidArgument) chunk_eval: label {label} at {i}; expected 0 to {kinds * len(tags)}: {kinds} kinds "
                             f"of {len(tags)} tags, and one for what belongs to none")
        kind, tag = divmod(label, len(tags))
        tag = tags[tag]
        new = kind != before or tag in _OPENS or tag_before in _CLOSES
        if first is not None and new:
            found.add((first, i - 1, before))
            first = None
        if kind != kinds and new:
            first = i
        before, tag_before = kind, tag
    if first is not None:
        found.add((first, len(labels) - 1, before))
    return found


def _sequences(given):
    """Pairs of label sequences: found and true."""
    found, true = given["Inference"][0], given["Label"][0]
    lod = true._lod
    if not lod:
        if not given.get("SeqLength"):
            raise ValueError("(InvalidArgument) chunk_eval: the labels have no sequences; give seq_length")
        lengths = given["SeqLength"][0].numpy().reshape(-1)
        rows = [one.numpy().reshape(len(lengths), -1) for one in (found, true)]
        return [tuple(row[i, :n].tolist() for row in rows) for i, n in enumerate(lengths)]
    if len(lod) != 1 or found._lod != lod:
        raise ValueError(f"(InvalidArgument) chunk_eval: sequences of inference are {found._lod}, of label {lod}; expected the same, "
                         "of one level")
    flat = [one.numpy().reshape(-1) for one in (found, true)]
    return [tuple(row[a:b].tolist() for row in flat) for a, b in zip(lod[0], lod[0][1:])]


def chunk_eval(given, outputs, attrs):
    """{slot: [value]}: rates as float32, numbers of chunks as int64, of one element each."""
    scheme, kinds = attrs.get("chunk_scheme", "IOB"), attrs["num_chunk_types"]
    if scheme not in _SCHEMES:
        raise ValueError(f"(InvalidArgument) chunk_eval: chunk_scheme is {scheme!r}; expected one of {', '.join(_SCHEMES)}")
    left_out = set(attrs.get("excluded_chunk_types", ()))
    counts = np.zeros(3, "int64")
    for pair in _sequences(given):
        found, true = ({chunk for chunk in _chunks(labels, kinds, _SCHEMES[scheme]) if chunk[2] not in left_out}
                       for labels in pair)
        counts += len(found), len(true), len(found & true)
    precision, recall = (counts[2] / n if n else 0.0 for n in counts[:2])
    rates = precision, recall, 2 * precision * recall / (precision + recall) if counts[2] else 0.0
    made = [np.array([v], "float32") for v in rates] + [np.array([n]) for n in counts]
    slots = "Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"
    return {slot: [_core.to_tensor(value)] for slot, value in zip(slots, made)}
