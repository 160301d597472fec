"""fluid's detection functions agree with their twins of 2.x, at once and in programs; boxes that carry LoD."""
import numpy as np
import pytest

import proa as paddle
from proa import fluid
from proa.vision import ops

BOXES = np.array([[0.4, 0.7, 5.2, 6.1], [2.0, 1.0, 7.5, 4.0], [-2.0, -1.5, 9.5, 9.0]], "float32")
COUNTS = np.array([2, 1], "int32")
IMAGE = np.random.RandomState(0).rand(2, 12, 7, 8).astype("float32")
FUNCTIONS = {
    "roi_align": (lambda x, b, n: fluid.layers.roi_align(x, b, 3, 2, 0.5, 2, rois_num=n),
                  lambda x, b, n: ops.roi_align(x, b, n, (3, 2), 0.5, 2, False)),
    "roi_pool": (lambda x, b, n: fluid.layers.roi_pool(x, b, 3, 2, 0.5, rois_num=n), lambda x, b, n: ops.roi_pool(x, b, n, (3, 2), 0.5)),
}


def twin(name):
    return FUNCTIONS[name][1](*map(paddle.to_tensor, (IMAGE, BOXES, COUNTS))).numpy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_regions_at_once(name):
    got = FUNCTIONS[name][0](*map(paddle.to_tensor, (IMAGE, BOXES, COUNTS)))
    np.testing.assert_array_equal(got.numpy(), twin(name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_regions_whose_owners_are_lod(name, program):
    x, boxes = fluid.data("x", [None, 12, 7, 8]), fluid.data("boxes", [None, 4], lod_level=1)
    out = FUNCTIONS[name][0](x, boxes, None)
    exe = fluid.Executor(fluid.CPUPlace())
    got, = exe.run(feed={"x": IMAGE, "boxes": fluid.create_lod_tensor(BOXES, [COUNTS.tolist()], fluid.CPUPlace())}, fetch_list=[out])
    paddle.disable_static()
    expected = twin(name)
    paddle.enable_static()
    np.testing.assert_array_equal(got, expected)


def test_cells_with_channels_of_their_own_take_lod(program):
    x, boxes = fluid.data("x", [None, 12, 7, 8]), fluid.data("boxes", [None, 4], lod_level=1)
    out = fluid.layers.psroi_pool(x, boxes, 2, 0.5, 3, 2)
    got, = fluid.Executor(fluid.CPUPlace()).run(
        feed={"x": IMAGE, "boxes": fluid.create_lod_tensor(BOXES, [COUNTS.tolist()], fluid.CPUPlace())}, fetch_list=[out])
    paddle.disable_static()
    expected = ops.psroi_pool(*map(paddle.to_tensor, (IMAGE, BOXES, COUNTS)), (3, 2), 0.5).numpy()
    paddle.enable_static()
    np.testing.assert_array_equal(got, expected)


def test_levels_and_back():
    boxes, counts = paddle.to_tensor(BOXES * 40), paddle.to_tensor(COUNTS)
    rois, restore, numbers = fluid.layers.distribute_fpn_proposals(boxes, 2, 5, 4, 224, rois_num=counts)
    expected = ops.distribute_fpn_proposals(boxes, 2, 5, 4, 224, True, counts)
    for got, wanted in zip([*rois, restore, *numbers], [*expected[0], expected[1], *expected[2]]):
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())
    scores = [paddle.to_tensor(np.linspace(0.1, 0.9, len(r.numpy()), dtype="float32")[:, None]) for r in rois]
    best, count = fluid.layers.collect_fpn_proposals(rois, scores, 2, 5, 2, numbers)
    assert best.shape == [2, 4] and int(count.sum()) == 2


def test_deformable_convolution_as_a_layer(program):
    x, offset, mask = (fluid.data(n, [1, c, 5, 6]) for n, c in (("x", 4), ("offset", 18), ("mask", 9)))
    ones = fluid.initializer.Constant(0.5)
    outs = [fluid.layers.deformable_conv(x, offset, mask, 3, 3, padding=1, param_attr=fluid.ParamAttr(initializer=ones), modulated=m)
            for m in (True, False)]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {v.name: np.random.RandomState(1).rand(*v.shape).astype("float32") for v in (x, offset, mask)}
    got = exe.run(feed=feed, fetch_list=outs)
    paddle.disable_static()
    t = {name: paddle.to_tensor(v) for name, v in feed.items()}
    weight = paddle.full([3, 4, 3, 3], 0.5)
    expected = [ops.deform_conv2d(t["x"], t["offset"], weight, padding=1, mask=m).numpy() for m in (t["mask"], None)]
    paddle.enable_static()
    for a, b in zip(got, expected):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_wrong_counts_are_typed_errors():
    x, boxes = paddle.to_tensor(IMAGE), paddle.to_tensor(BOXES)
    for counts in ([1, 1], [3, 1], [-1, 4]):
        with pytest.raises(ValueError, match="boxes_num"):
            ops.roi_align(x, boxes, paddle.to_tensor(np.array(counts, "int32")), 2)
