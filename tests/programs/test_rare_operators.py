"""Operators of Paddle 1.x that Paddle 2.6 no longer has, or that draw: pooling of regions by LoD, instances by tags, convolutions on
trees, sampled classes; and bad arguments of those that run operator by operator."""
import numpy as np
import pytest

from proa import fluid

pytestmark = pytest.mark.usefixtures("program")

RANDOM = np.random.default_rng(5)


def real(*shape):
    return RANDOM.standard_normal(shape).astype("float32")


def run(kind, inputs, attrs, outs, wanted=()):
    """Results of an operator on {slot: array, (array, *lengths) or a list}, and the gradients of the sum of the first one."""
    block, feed, given = fluid.default_main_program().global_block(), {}, {}
    for slot, values in inputs.items():
        given[slot] = []
        for i, one in enumerate(values if isinstance(values, list) else [values]):
            array, levels = (one[0], list(one[1:])) if isinstance(one, tuple) else (one, [])
            var = fluid.data(f"{slot}{i}", [-1, *array.shape[1:]], str(array.dtype), lod_level=len(levels))
            var.stop_gradient = slot not in wanted
            given[slot].append(var)
            feed[var.name] = fluid.create_lod_tensor(array, [list(level) for level in levels], fluid.CPUPlace()) if levels else array
    made = {slot: [block.create_var(name=slot.lower(), dtype=dtype)] for slot, dtype in outs.items()}
    block.append_op(type=kind, inputs=given, outputs=made, attrs=attrs)
    shown = [made[slot][0] for slot in outs]
    shown += fluid.gradients(fluid.layers.reduce_sum(shown[0]), [given[slot][0] for slot in wanted]) if wanted else []
    return fluid.Executor().run(feed=feed, fetch_list=shown, return_numpy=False)


def test_regions_by_lod_are_those_by_number():
    x, boxes = real(2, 3, 7, 8), np.array([[0.4, 0.7, 5.2, 6.1], [2.1, 1.2, 7.6, 4.3], [1.2, 1.6, 5.5, 6.1]], "float32")
    attrs, found = {"pooled_height": 3, "pooled_width": 2, "spatial_scale": 0.5}, []
    for given in ({"ROIs": (boxes, (1, 2))}, {"ROIs": boxes, "BatchRoINums": np.array([1, 2])}):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            found.append([np.array(one) for one in run("prroi_pool", {"X": x, **given}, attrs, {"Out": "float32"}, ["X", "ROIs"])])
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)
    flat = [np.array(one) for one in run("prroi_pool", {"X": np.ones_like(x), "ROIs": (boxes * 0.5 + 1, (1, 2))}, attrs, {"Out": "float32"})]
    np.testing.assert_allclose(flat[0], 1, rtol=1e-5)  # the mean of a constant


@pytest.mark.parametrize("tags, kept", [([2], [0, 3]), ([2, 9], [0, 2, 3]), ([5], [])])
def test_instances_by_their_tags(tags, kept):
    x, owned = real(7, 3), np.array([[2], [1], [1], [9], [2], [3]])
    lengths, spans = (2, 1, 3, 1), [(0, 2), (2, 3), (3, 6), (6, 7)]
    found = run("filter_by_instag", {"Ins": (x, lengths), "Ins_tag": (owned, (1, 1, 2, 2)), "Filter_tag": np.array(tags)},
                {"is_lod": True, "out_val_if_empty": 7}, {"Out": "float32", "LossWeight": "float32", "IndexMap": "int64"}, ["Ins"])
    out, weight, index, slope = (np.array(one) for one in found)
    mine = [x[slice(*spans[i])] for i in kept]
    np.testing.assert_array_equal(out, np.concatenate(mine) if kept else np.full((1, 3), 7))
    assert found[0].recursive_sequence_lengths() == [[lengths[i] for i in kept] or [1]]
    assert weight.ravel().tolist() == [1] * len(kept) + [0] * (not kept) and index.shape == (max(len(kept), 1), 3)
    rows = np.zeros(7)
    rows[[r for i in kept for r in range(*spans[i])]] = 1
    np.testing.assert_array_equal(slope, np.repeat(rows[:, None], 3, 1))


def test_a_tree_is_convolved_by_the_places_of_children():
    edges = np.array([[[1, 2], [1, 3], [2, 4], [0, 0]]], "int32")
    x, w = real(1, 5, 2), real(2, 3, 3, 2)
    out, d_x, d_w = (np.array(one) for one in run("tree_conv", {"NodesVector": x, "EdgeSet": edges, "Filter": w}, {"max_depth": 2},
                                                  {"Out": "float32"}, ["NodesVector", "Filter"]))
    weights = np.zeros((5, 5, 3))  # left, right, top
    weights[range(4), range(4), 2] = 1
    weights[0, 1], weights[0, 2], weights[1, 3] = (0, 0.5, 0.5), (0.5, 0.25, 0.5), (0.25, 0.375, 0.5)
    np.testing.assert_allclose(out[0], np.einsum("uve,vf,feom->uom", weights, x[0], w), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(d_x[0], np.einsum("uve,feom->vf", weights, w), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(d_w, np.broadcast_to(np.einsum("uve,vf->fe", weights, x[0])[:, :, None, None], w.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("uniq", [True, False])
def test_sampled_classes(uniq):
    logits, labels = real(3, 12), np.array([[0], [5], [11]])
    out, samples, chance, places, slope = (np.array(one) for one in run(
        "sample_logits", {"Logits": logits, "Labels": labels}, {"num_samples": 8, "uniq": uniq, "remove_accidental_hits": False, "seed": 3},
        {"SampledLogits": "float32", "Samples": "int64", "Probabilities": "float32", "SampledLabels": "int64"}, ["Logits"]))
    assert (samples[:, :1] == labels).all() and (samples[:, 1:] == samples[0, 1:]).all() and (places == 0).all()
    assert not uniq or len(set(samples[0, 1:].tolist())) == 8
    np.testing.assert_allclose(out, np.take_along_axis(logits, samples, 1) - np.log(chance), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(slope, [np.bincount(row, minlength=12) for row in samples])


def test_draws_of_nce_follow_their_distribution():
    custom = [0.1, 0.4, 0.05, 0.25, 0.2]
    x, label = fluid.data("x", [400, 2], "float32"), fluid.data("label", [400, 1], "int64")
    fluid.layers.nce(x, label, 5, num_neg_samples=50, sampler="custom_dist", custom_dist=custom, seed=7)
    drawn = next(op for op in fluid.default_main_program().global_block().ops if op.type == "nce").output("SampleLabels")[0]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    found, = exe.run(feed={"x": real(400, 2), "label": np.ones((400, 1), "int64")}, fetch_list=[drawn])
    np.testing.assert_allclose(np.bincount(found[:, 1:].ravel(), minlength=5) / 20000, custom, atol=0.015)


def test_samples_of_layers_are_others_each_once():
    travel, layer = np.array([[1, 3], [1, 4], [2, 0]]), np.arange(1, 11).reshape(10, 1)
    out, labels, mask = (np.array(one) for one in run(
        "tdm_sampler", {"X": np.array([[0], [1], [2]] * 30), "Travel": travel, "Layer": layer},
        {"neg_samples_num_list": [1, 4], "layer_offset_lod": [0, 2, 10], "seed": 0, "dtype": 3},
        {"Out": "int64", "Labels": "int64", "Mask": "int64"}))
    assert out.shape == (90, 7) and (labels.sum(1) == [2, 2, 1] * 30).all() and (mask.sum(1) == [7, 7, 2] * 30).all()
    assert all(len(set(row[2:].tolist())) == 5 and set(row[2:]) <= set(range(3, 11)) for row in out[mask[:, -1] == 1])
    assert (out[2::3, 2:] == 0).all() and len({tuple(row) for row in out.tolist()}) > 20


def test_gradients_follow_the_rank_of_what_is_fed():
    x, label = (fluid.layers.data(name, [2, 3], dtype="float64") for name in ("x", "label"))
    x.stop_gradient = False
    order, _ = fluid.layers.argsort(x, axis=0)
    loss = fluid.layers.reduce_sum(order * label)
    fluid.backward.append_backward(loss)
    for shape in ((2, 3), (4, 2, 3)):
        feed = {"x": RANDOM.standard_normal(shape), "label": RANDOM.standard_normal(shape)}
        found, = fluid.Executor().run(feed=feed, fetch_list=["x@GRAD"])
        expected = np.zeros(shape)
        np.put_along_axis(expected, feed["x"].argsort(0), feed["label"], 0)
        np.testing.assert_array_equal(found, expected)


def test_minimizing_without_parameters_does_nothing():
    x = fluid.data("x", [2, 3])
    assert fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(x)) == ([], [])


def test_a_network_of_regions_learns_from_its_targets():
    feature = fluid.data("feature", [-1, 4], "float32")
    logits, offsets = fluid.layers.fc(feature, 1), fluid.layers.fc(feature, 4)
    names = {"anchor": [-1, 4], "truth": [-1, 4], "info": [-1, 3]}
    anchor, truth, info = (fluid.data(n, s, "float32", lod_level=int(n == "truth")) for n, s in names.items())
    crowd = fluid.data("crowd", [-1, 1], "int32", lod_level=1)
    score, place, label, target, weight = fluid.layers.rpn_target_assign(offsets, logits, anchor, anchor, truth, crowd, info, 6)
    loss = fluid.layers.reduce_sum(fluid.layers.sigmoid_cross_entropy_with_logits(score, fluid.layers.cast(label, "float32")))
    loss = loss + fluid.layers.reduce_sum(fluid.layers.abs(place - target) * weight)
    fluid.optimizer.SGD(0.01).minimize(loss)
    low = RANDOM.uniform(0, 20, (20, 2)).astype("float32")
    boxes, place = np.concatenate([low, low + 9], 1), fluid.CPUPlace()
    feed = {"feature": real(20, 4), "anchor": boxes, "truth": fluid.create_lod_tensor(boxes[:2] + 1, [[2]], place),
            "info": np.array([[40, 40, 1]], "float32"), "crowd": fluid.create_lod_tensor(np.zeros((2, 1), "int32"), [[2]], place)}
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    losses = [float(np.sum(exe.run(feed=feed, fetch_list=[loss])[0])) for _ in range(30)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


@pytest.mark.parametrize("kind, inputs, attrs, out, text", [
    ("match_matrix_tensor", {"X": (real(3, 2), (3,)), "Y": (real(2, 2), (2,)), "W": real(2, 3, 4)}, {"dim_t": 3}, "Out", "W is float32"),
    ("match_matrix_tensor", {"X": real(3, 2), "Y": (real(2, 2), (2,)), "W": real(2, 3, 2)}, {"dim_t": 3}, "Out", "without sequences"),
    ("var_conv_2d", {"X": (real(5, 1), (5,)), "ROW": (real(2, 1), (2,)), "COLUMN": (real(3, 1), (3,)), "W": real(1, 1)}, {}, "Out",
     "X is sequences of lengths"),
    ("filter_by_instag", {"Ins": real(3, 2), "Ins_tag": (np.ones((2, 1), "int64"), (1, 1)), "Filter_tag": np.ones(1, "int64")}, {}, "Out",
     "one each of 3 instances"),
    ("tree_conv", {"NodesVector": real(1, 2, 2), "EdgeSet": np.array([[[1, 9]]], "int32"), "Filter": real(2, 3, 1, 1)}, {}, "Out", "an edge 1"),
    ("precision_recall", {"MaxProbs": real(2, 1), "Indices": np.array([[0], [7]], "int32"), "Labels": np.array([[0], [1]], "int32")},
     {"class_number": 3}, "BatchMetrics", "Indices is between 0 and 7"),
    ("detection_map", {"DetectRes": (real(2, 5), (2,)), "Label": (real(2, 6), (2,))}, {"class_num": 2}, "MAP", r"expected \[N, 6\]"),
    ("tdm_child", {"X": np.array([[9]]), "TreeInfo": np.zeros((2, 4), "int32")}, {"child_nums": 1, "dtype": 2}, "Child", "x has 9"),
    ("lod_reset", {"X": real(4, 2)}, {"target_lod": [0, 9]}, "Out", "target_lod end at 9"),
    ("locality_aware_nms", {"BBoxes": real(1, 3, 5), "Scores": real(1, 1, 3)},
     {"score_threshold": 0.1, "nms_top_k": 3, "keep_top_k": 3}, "Out", "expected boxes"),
])
def test_wrong_inputs_are_refused(kind, inputs, attrs, out, text):
    with pytest.raises((ValueError, IndexError), match=text):
        run(kind, inputs, attrs, {out: "float32"})
