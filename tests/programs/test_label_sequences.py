"""Decoders, measures and the loss of label sequences in programs of Paddle 1.x: sequences with offsets and padded rows."""
import itertools

import numpy as np
import pytest

from proa import fluid
from proa.fluid import layers

pytestmark = pytest.mark.usefixtures("program")


def run(feed, fetch):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch, return_numpy=False)


def sequences(*labels, dtype="int64"):
    flat = np.array(list(itertools.chain(*labels)), dtype).reshape(-1, 1)
    return fluid.create_lod_tensor(flat, [[len(one) for one in labels]], fluid.CPUPlace())


def aligned(x, length=None, **attrs):
    block = fluid.default_main_program().global_block()
    out, count = (block.create_var(name=name, dtype=x.dtype) for name in ("aligned", "count"))
    block.append_op(type="ctc_align", inputs={"Input": [x], **({"InputLength": [length]} if length is not None else {})},
                    outputs={"Output": [out], **({"OutputLength": [count]} if length is not None else {})}, attrs=attrs)
    return (out, count) if length is not None else out


@pytest.mark.parametrize("merge, expected, lengths", [(True, [1, 2, 1, 4], [3, 1]), (False, [1, 2, 2, 1, 4], [4, 1])])
def test_ctc_align_of_sequences(merge, expected, lengths):
    x = fluid.data("x", [-1, 1], "int64", lod_level=1)
    out = run({"x": sequences([0, 1, 2, 2, 0, 1], [4, 0, 0])}, [aligned(x, blank=0, merge_repeated=merge)])[0]
    assert np.array(out).reshape(-1).tolist() == expected and out.recursive_sequence_lengths() == [lengths]


def test_ctc_align_of_blanks_alone():
    x = fluid.data("x", [-1, 1], "int64", lod_level=1)
    assert np.array(run({"x": sequences([3, 3], [3])}, [aligned(x, blank=3, merge_repeated=True)])[0]).tolist() == [[-1]]


def test_ctc_align_of_rows():
    x, length = fluid.data("x", [-1, 5], "int64"), fluid.data("n", [-1, 1], "int64")
    rows = np.array([[0, 1, 1, 0, 1], [2, 2, 3, 3, 3]])
    out, count = run({"x": rows, "n": np.array([[5], [3]])},
                     aligned(x, length, blank=0, merge_repeated=True, padding_value=-7))
    assert np.array(out).tolist() == [[1, 1, -7, -7, -7], [2, 3, -7, -7, -7]] and np.array(count).tolist() == [[2], [2]]


def test_greedy_decoding():
    x = fluid.data("x", [-1, 3], "float32", lod_level=1)
    scores = np.eye(3, dtype="float32")[[0, 1, 1, 2, 0, 2]]
    given = fluid.create_lod_tensor(scores, [[4, 2]], fluid.CPUPlace())
    out = run({"x": given}, [layers.ctc_greedy_decoder(x, blank=0)])[0]
    assert np.array(out).reshape(-1).tolist() == [1, 2, 2] and out.recursive_sequence_lengths() == [[2, 1]]


PAIRS = [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "abc", 0), ("intention", "execution", 5), ("flaw", "lawn", 2)]


@pytest.mark.parametrize("normalized", [False, True])
def test_edit_distance(normalized):
    hyps, refs = (fluid.data(name, [-1, 1], "int64", lod_level=1) for name in ("h", "r"))
    out, count = layers.edit_distance(hyps, refs, normalized=normalized)
    feed = {name: sequences(*([ord(c) for c in pair[i]] for pair in PAIRS)) for i, name in enumerate("hr")}
    found, number = run(feed, [out, count])
    expected = [d / len(b) if normalized else d for _, b, d in PAIRS]
    assert np.array(found).shape == (5, 1) and np.allclose(np.array(found).reshape(-1), expected)
    assert np.array(number).tolist() == [5]


def test_edit_distance_without_some_labels_and_of_rows():
    hyps, refs = (fluid.data(name, [-1, 1], "int64", lod_level=1) for name in ("h", "r"))
    out, _ = layers.edit_distance(hyps, refs, normalized=False, ignored_tokens=[9])
    assert np.array(run({"h": sequences([1, 9, 2], [9, 3]), "r": sequences([1, 2], [4, 9])}, [out])[0]).tolist() == [[0], [1]]

    rows, lengths = fluid.data("rows", [2, 3], "int64"), fluid.data("lengths", [2], "int64")
    out, _ = layers.edit_distance(rows, rows, False, None, lengths, layers.fill_constant([2], "int64", 2))
    feed = {"h": sequences([1]), "r": sequences([1]), "rows": np.array([[1, 2, 3], [4, 5, 6]]), "lengths": np.array([3, 2])}
    assert np.array(run(feed, [out])[0]).tolist() == [[1], [0]]


def test_an_empty_reference_cannot_normalize():
    hyps, refs = (fluid.data(name, [-1, 1], "int64", lod_level=1) for name in ("h", "r"))
    out, _ = layers.edit_distance(hyps, refs)
    with pytest.raises(ValueError, match="a sequence of Refs is empty"):
        run({"h": sequences([1], [2]), "r": sequences([1], [])}, [out])


def test_the_ctc_loss_of_sequences_is_that_of_rows():
    logits, label = fluid.data("x", [-1, 4], "float32", lod_level=1), fluid.data("y", [-1, 1], "int32", lod_level=1)
    logits.stop_gradient = False
    loss = layers.warpctc(logits, label, blank=0)
    rows, labels = fluid.data("rows", [5, 2, 4], "float32"), fluid.data("labels", [2, 2], "int32")
    rows.stop_gradient = False
    counts = [layers.assign(np.array(n, "int64")) for n in ([5, 3], [2, 1])]
    other = layers.warpctc(rows, labels, 0, False, *counts)
    grads = fluid.gradients([layers.reduce_sum(loss), layers.reduce_sum(other)], [logits, rows])
    value = np.random.default_rng(0).standard_normal((8, 4)).astype("float32")
    padded = np.zeros((5, 2, 4), "float32")
    padded[:, 0], padded[:3, 1] = value[:5], value[5:]
    feed = {"x": fluid.create_lod_tensor(value, [[5, 3]], fluid.CPUPlace()), "y": sequences([1, 3], [2], dtype="int32"),
            "rows": padded, "labels": np.array([[1, 3], [2, 0]], "int32")}
    found = [np.array(one) for one in run(feed, [loss, other, *grads])]
    assert np.allclose(found[0], found[1]) and found[0].shape == (2, 1) and (found[0] > 0).all()
    assert np.allclose(found[2], np.concatenate([found[3][:, 0], found[3][:3, 1]]), atol=1e-6) and np.abs(found[2]).max() > 0.1


def test_unique_with_counts_as_an_operator():
    x = fluid.data("x", [6], "int64")
    block = fluid.default_main_program().global_block()
    made = {slot: [block.create_var(name=slot, dtype="int64")] for slot in ("Out", "Index", "Count")}
    block.append_op(type="unique_with_counts", inputs={"X": [x]}, outputs=made, attrs={"dtype": 3})
    found = run({"x": np.array([2, 3, 3, 1, 5, 3])}, [made[slot][0] for slot in ("Out", "Index", "Count")])
    assert [np.array(one).tolist() for one in found] == [[2, 3, 1, 5], [0, 1, 1, 2, 3, 1], [1, 3, 1, 1]]
