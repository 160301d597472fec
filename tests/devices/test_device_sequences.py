"""CUDA kernels over sequences and of detection where the op table's samples are too small: more classes, tags and boxes
than a block has threads, letters that repeat, scores that are equal, numbers that are out of range.

On gpu:0, emulated unless PROA_GPU says that there is one (test_devices.py).
"""
import numpy as np
import pytest

import proa as paddle
from proa import _core
from test_device_networks import normal, same

pytestmark = pytest.mark.usefixtures("gpu")
RNG = np.random.RandomState(8)


def lengths(*values):
    return np.array(values, np.int64)


def offsets(*counts):
    return np.cumsum([0, *counts]).astype(np.int64)


@pytest.mark.parametrize("dtype,rtol", [("float32", 1e-4), ("float64", 1e-9)])
def test_ctc(dtype, rtol):
    """Repeated letters, a blank among them, a label that does not fit, none at all, and more entries than threads."""
    label = RNG.randint(0, 6, (5, 140)).astype(np.int32)
    label[0, :4] = [5, 5, 2, 5]
    frames, letters = lengths(290, 40, 7, 12, 0), lengths(140, 9, 30, 0, 3)
    given = {"logits": normal(290, 5, 300) * 2, "label": label, "logits_length": frames, "label_length": letters}
    loss, gradient = same("ctc_loss", given, rtol=rtol, dtype=dtype, blank=2)
    assert loss[0, 0] > 0 and loss[2, 0] == 0 and np.isinf(loss[4, 0]) and gradient[:, 0].any() and not gradient[:, 2].any()
    same("ctc_loss_grad", {"logits": gradient, "logits_length": frames, "gradient": gradient, "d_loss": normal(5, 1)},
         rtol=rtol, dtype=dtype, norm_by_times=True)


@pytest.mark.parametrize("tags", [3, 40, 260])
@pytest.mark.parametrize("padded", [True, False])
def test_chains_of_tags(tags, padded):
    counts = (4, 0, 9, 1)
    parts = {"length": lengths(*counts), "offsets": None} if padded else {"length": None, "offsets": offsets(*counts)}
    shape = (4, 10) if padded else (14,)
    given = {"emission": normal(*shape, tags), "transition": normal(tags + 2, tags),
             "label": RNG.randint(0, tags, shape if padded else (14, 1)).astype(np.int64)}
    parts = {k: v for k, v in parts.items() if v is not None}
    same("crf_decoding", {**given, **parts})
    same("crf_decoding", {"emission": given["emission"], "transition": given["transition"], **parts}, dtype="float64")
    for dtype, rtol in (("float32", 1e-4), ("float64", 1e-9))[:1 if tags > 256 else 2]:
        alpha, emissions, transitions, cost = same("linear_chain_crf", {**given, **parts}, rtol=rtol, dtype=dtype)
        assert cost[1, 0] == 0
        same("linear_chain_crf_grad", {"alpha": alpha, "emission_exps": emissions, "transition_exps": transitions,
                                       "label": given["label"], "d_log_likelihood": normal(4, 1), **parts},
             rtol=rtol, dtype=dtype)


def boxes(*shape):
    corner = RNG.randint(0, 40, (*shape, 2)).astype(np.float32)
    return np.concatenate([corner, corner + RNG.randint(1, 12, (*shape, 2))], -1).astype(np.float32)


@pytest.mark.parametrize("n", [1, 64, 65, 700])
def test_suppression(n):
    kept, = same("nms", {"boxes": boxes(n)}, threshold=0.2)
    assert n < 700 or 50 < len(kept) < n


@pytest.mark.parametrize("keep,top", [(-1, -1), (30, -1), (30, 100), (0, 5)])
@pytest.mark.parametrize("eta,normalized", [(1.0, False), (0.9, True)])
def test_suppression_by_class(keep, top, eta, normalized):
    """Scores of which many are equal: those that come first win."""
    scores = RNG.randint(0, 20, (2, 3, 270)).astype(np.float32) / 20
    same("multiclass_nms", {"bboxes": boxes(2, 270), "scores": scores}, score_threshold=0.1, nms_top_k=top,
         keep_top_k=keep, nms_threshold=0.6, nms_eta=eta, normalized=normalized)


def test_parts_of_sequences():
    x, of = normal(40, 3), offsets(9, 0, 30, 1)
    same("sequence_slice", {"x": x, "offset": lengths(2, 0, 5, 0), "length": lengths(7, 0, 1, 1), "offsets": of})
    same("sequence_pad", {"x": x, "pad_value": normal(3), "offsets": of})
    out, begins = same("sequence_unpad", {"x": normal(4, 30, 2), "length": lengths(30, 0, 2, 7)})
    assert out.shape == (39, 2) and begins.tolist() == [0, 30, 30, 32, 39]
    out, begins = same("sequence_expand", {"x": x, "y": normal(8, 1), "x_offsets": of, "y_offsets": offsets(3, 2, 1, 2)})
    assert out.shape == (27 + 30 + 2, 3) and begins.tolist() == [0, 9, 18, 27, 27, 27, 57, 58, 59]


@pytest.mark.parametrize("op,given,message", [
    ("ctc_loss", {"logits": normal(4, 1, 3), "label": np.array([[1]], np.int32), "logits_length": lengths(5),
                  "label_length": lengths(1)}, "logits_length.*5"),
    ("ctc_loss", {"logits": normal(4, 1, 3), "label": np.array([[7]], np.int32), "logits_length": lengths(4),
                  "label_length": lengths(1)}, "label.*7"),
    ("crf_decoding", {"emission": normal(1, 4, 3), "transition": normal(5, 3), "length": lengths(6)}, "length.*6"),
    ("linear_chain_crf", {"emission": normal(4, 3), "transition": normal(5, 3), "label": lengths(0, 3, 0, 0)[:, None],
                          "offsets": offsets(4)}, "label.*3"),
    ("sequence_unpad", {"x": normal(2, 3), "length": lengths(2, 4)}, "length.*4"),
    ("sequence_scatter", {"x": normal(1, 3), "ids": lengths(3)[:, None], "updates": normal(1, 1), "offsets": offsets(1)},
     "ids.*3")])
def test_what_is_out_of_range_is_told_late(op, given, message):
    paddle.set_device("gpu:0")
    try:
        with pytest.raises((IndexError, ValueError), match=message):
            getattr(_core, op)(**{k: _core.to_device(_core.from_numpy(v), "gpu:0") for k, v in given.items()})
            _core.synchronize()
    finally:
        paddle.set_device("cpu")
