"""Operators of Paddle 1.x on sequences and tensor arrays (rank tables, arrays of time steps, rows by a mask), for
the operator-by-operator interpreter in late.py. Sequences are offsets on a tensor (`_lod`)."""
from .. import _core
from .host_attention import attention_lstm
from .host_masks import generate_mask_labels
from .host_matching import filter_by_instag, match_matrix_tensor, tree_conv, var_conv_2d
from .host_metrics import chunk_eval
from .host_rates import detection_map, precision_recall
from .host_rnn import fused_embedding_fc_lstm, fusion_gru, fusion_lstm, gru, lstm
from .host_sequences import ctc_align, edit_distance, sequence_erase, unique_with_counts
from .host_targets import generate_proposal_labels, retinanet_target_assign, rpn_target_assign


class RankTable:
    """Numbers and lengths of sequences, the longest first; and the offsets of the levels above theirs."""

    def __init__(self, lengths, coarse):
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        self._items, self.coarse = [(i, lengths[i]) for i in order], coarse

    def items(self):
        return self._items

    def __len__(self):
        return len(self._items)


def lod_of(x):
    """The offsets of a tensor's levels; without any, each row is a sequence."""
    return x._lod or [list(range(x.shape[0] + 1))]


def rank_table(x, level):
    """The RankTable of a level of x's sequences."""
    lod = lod_of(x)
    if level >= len(lod):
        raise ValueError(f"lod_rank_table: level is {level}, and the tensor has {len(lod)} levels")
    offsets = lod[level]
    return RankTable([b - a for a, b in zip(offsets, offsets[1:])], lod[:level])


def _extend(into, offsets, first, last):
    """Appends entries [first, last) of a level; returns the rows, or entries of the next level, that they hold."""
    for n in range(first, last):
        into.append(into[-1] + offsets[n + 1] - offsets[n])
    return offsets[first], offsets[last]


def _gather(x, rows):
    return _core.gather(x, _core.to_tensor(rows, dtype="int64"), 0) if rows else x[0:0]


def pieces(x, lod, parts):
    """Rows of x, for (first, last) of entries of lod's outermost level each; lod gives what is below."""
    rows, below = [], [[0] for _ in lod]
    for first, last in parts:
        for offsets, into in zip(lod, below):
            first, last = _extend(into, offsets, first, last)
        rows += range(first, last)
    out = _gather(x, rows)
    if lod:
        out._lod = below
    return out


def to_array(x, table):
    """A list of tensors: the n-th has the n-th entry of each sequence that is long enough, the longest first."""
    lod = lod_of(x)
    at, below = lod[len(table.coarse)], lod[len(table.coarse) + 1:]
    longest = table.items()[0][1] if len(table) else 0
    return [pieces(x, below, [(at[i] + n, at[i] + n + 1) for i, length in table.items() if length > n])
            for n in range(longest)]


def from_array(array, table):
    """The inverse of to_array."""
    parts, levels = {}, [one._lod or [] for one in array]
    depth = max((len(lod) for lod in levels), default=0)
    begins, total = [], 0
    for one in array:
        begins.append(total)
        total += one.shape[0]
    joined = _core.concat(list(array), 0)
    for place, (i, length) in enumerate(table.items()):
        parts[i] = [(n, place) for n in range(length)]
    rows, offsets, below = [], [0], [[0] for _ in range(depth)]
    for i in range(len(table)):
        offsets.append(offsets[-1] + len(parts[i]))
        for n, place in parts[i]:
            first, last = place, place + 1
            for level in range(depth):
                first, last = _extend(below[level], levels[n][level], first, last)
            rows += range(begins[n] + first, begins[n] + last)
    out = _gather(joined, rows)
    out._lod = [*table.coarse, offsets, *below]
    return out


def reorder(x, table):
    """x's sequences (its rows, if it has none) in the table's order."""
    lod = x._lod or []
    return pieces(x, lod, [(i, i + 1) for i, _ in table.items()])


def first_sequences(x, count):
    """The first sequences (rows) of x."""
    return pieces(x, x._lod or [], [(0, count)])


def shrink(x, i, table):
    """The rows of x that sequences longer than i have."""
    step = int(i.numpy().reshape(-1)[0])
    count = sum(length > step for _, length in table.items())
    return first_sequences(x, count)


def split(x, mask, level=0):
    """(where mask holds, where not): sequences of a level, or rows."""
    lod = x._lod or []
    held = [bool(v) for v in mask.numpy().reshape(-1)]
    lod = lod[level:] if lod else []
    return tuple(pieces(x, lod, [(i, i + 1) for i, h in enumerate(held) if h == which]) for which in (True, False))


def merge(mask, yes, no, level=0):
    """Sequences or rows of both, in the mask's order."""
    held = [bool(v) for v in mask.numpy().reshape(-1)]
    lods = [one._lod or [] for one in (yes, no)]
    depth = max(map(len, lods))
    joined = _core.concat([yes, no], 0)
    rows, below, next_of = [], [[0] for _ in range(depth)], [0, 0]
    for h in held:
        which = 0 if h else 1
        first, last = next_of[which], next_of[which] + 1
        next_of[which] += 1
        for offsets, into in zip(lods[which], below):
            first, last = _extend(into, offsets, first, last)
        begin = 0 if h else yes.shape[0]
        rows += range(begin + first, begin + last)
    out = _gather(joined, rows)
    if depth:
        out._lod = below
    return out


def _windows_of(image, sizes, attrs):
    """The columns of one image whose windows are counted by another size: as far as it is too small, zeros."""
    from ..nn.functional import unfold
    kernel, stride, padding = attrs["kernels"], attrs.get("strides", [1, 1]), attrs.get("paddings", [0, 0, 0, 0])
    counts = [1 + (size + padding[k] + padding[k + 2] - kernel[k]) // stride[k] for k, size in enumerate(sizes)]
    if min(counts) < 1:
        raise ValueError(f"(InvalidArgument) im2sequence: Y has an image of {sizes}; expected sizes that a window of {kernel} fits into")
    needed = [(count - 1) * stride[k] + kernel[k] for k, count in enumerate(counts)]
    behind = [max(needed[k] - image.shape[2 + k] - padding[k], 0) for k in (0, 1)]
    wide = _core.pad(image, [0, 0, 0, 0, padding[0], behind[0], padding[1], behind[1]])
    return unfold(wide[:, :, :needed[0], :needed[1]], kernel, stride, [0, 0, 0, 0])


def im2sequence(given, outputs, attrs):
    """The windows of each image as a sequence of rows, channel by channel; Y has the images' own sizes, which out_stride divides."""
    from ..nn.functional import unfold
    x = given["X"][0]
    if given.get("Y"):
        sizes, by = given["Y"][0].numpy(), attrs.get("out_stride", [1, 1])
        if sizes.ndim != 2 or sizes.shape[1] != 2 or len(sizes) < x.shape[0]:
            raise ValueError(f"(InvalidArgument) im2sequence: Y is {list(sizes.shape)}; expected the height and width of each image "
                             f"of X, [{x.shape[0]}, 2]")
        made = [_windows_of(x[i:i + 1], [-(-int(v) // n) for v, n in zip(sizes[i], by)], attrs)[0] for i in range(x.shape[0])]
        out = _core.concat([_core.transpose(one, [1, 0]) for one in made], 0)
        counts = [one.shape[1] for one in made]
    else:
        columns = unfold(x, attrs["kernels"], attrs.get("strides", [1, 1]), attrs.get("paddings", [0, 0, 0, 0]))
        out = _core.reshape(_core.transpose(columns, [0, 2, 1]), [-1, columns.shape[1]])
        counts = [columns.shape[2]] * x.shape[0]
    out._lod = [[sum(counts[:n]) for n in range(len(counts) + 1)]]
    return {"Out": [out]}


def _number(x):
    return int(x.numpy().reshape(-1)[0])


def _write(given, outputs, attrs):
    array = list(given["Array"][0])
    i = _number(given["I"][0])
    array[len(array):] = [None] * (i + 1 - len(array))
    array[i] = given["X"][0]
    return {"Out": [array]}


def _assert(given, outputs, attrs):
    if not bool(given["Cond"][0].numpy().all()):
        data = ", ".join(str(one.numpy().reshape(-1)[:attrs.get("summarize", 20)].tolist()) for one in given.get("Data", ()))
        raise ValueError(f"(InvalidArgument) Assert: the condition must be true, but it is false; data: {data}")
    return {}


# Operators that the core does not have: {slot: [value]}, {slot: [name]}, attributes → {slot: [value]}.
HOST = {
    "lod_rank_table": lambda g, o, a: {"Out": [rank_table(g["X"][0], a.get("level", 0))]},
    "max_sequence_len": lambda g, o, a: {"Out": [_core.to_tensor([(g["RankTable"][0].items() or [(0, 0)])[0][1]],
                                                                dtype="int64")]},
    "lod_tensor_to_array": lambda g, o, a: {"Out": [to_array(g["X"][0], g["RankTable"][0])]},
    "array_to_lod_tensor": lambda g, o, a: {"Out": [from_array(g["X"][0], g["RankTable"][0])]},
    "shrink_rnn_memory": lambda g, o, a: {"Out": [shrink(g["X"][0], g["I"][0], g["RankTable"][0])]},
    "reorder_lod_tensor_by_rank": lambda g, o, a: {"Out": [reorder(g["X"][0], g["RankTable"][0])]},
    "split_lod_tensor": lambda g, o, a: dict(zip(("OutTrue", "OutFalse"), (
        [one] for one in split(g["X"][0], g["Mask"][0], a.get("level", 0))))),
    "merge_lod_tensor": lambda g, o, a: {"Out": [merge(g["Mask"][0], g["InTrue"][0], g["InFalse"][0], a.get("level", 0))]},
    "select_output": lambda g, o, a: {"Out": [g["X"][0] if i == _number(g["Mask"][0]) else None
                                              for i in range(len(o["Out"]))]},
    "select_input": lambda g, o, a: {"Out": [g["X"][_number(g["Mask"][0])]]},
    "write_to_array": _write,
    "read_from_array": lambda g, o, a: {"Out": [g["X"][0][_number(g["I"][0])]]},
    "lod_array_length": lambda g, o, a: {"Out": [_core.to_tensor([len(g["X"][0])], dtype="int64")]},
    "assert": _assert, "lstm": lstm, "lstmp": lstm, "gru": gru, "im2sequence": im2sequence, "chunk_eval": chunk_eval,
    "ctc_align": ctc_align, "edit_distance": edit_distance, "sequence_erase": sequence_erase,
    "unique_with_counts": unique_with_counts, "fused_embedding_fc_lstm": fused_embedding_fc_lstm, "fusion_gru": fusion_gru,
    "fusion_lstm": fusion_lstm, "attention_lstm": attention_lstm, "match_matrix_tensor": match_matrix_tensor,
    "var_conv_2d": var_conv_2d, "filter_by_instag": filter_by_instag, "tree_conv": tree_conv,
    "precision_recall": precision_recall, "detection_map": detection_map, "rpn_target_assign": rpn_target_assign,
    "retinanet_target_assign": retinanet_target_assign, "generate_proposal_labels": generate_proposal_labels,
    "generate_mask_labels": generate_mask_labels,
}
HOST["merge_lod_tensor_infer"] = HOST["merge_lod_tensor"]
LATE = frozenset(HOST) - {"write_to_array", "read_from_array", "lod_array_length"}  # which make a program late
