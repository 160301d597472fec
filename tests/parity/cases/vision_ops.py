"""paddle.vision.ops: detection, deformable convolution, regions; with gradients where Paddle has them."""
import os
import tempfile

import numpy as np
import paddle
from paddle.vision import ops

from parity import array, case, fill, ints, raised, rand

O = "paddle.vision.ops."


def boxes(n, size=8.0):
    low = array(n, 2, low=0, high=size * 0.6)
    return np.concatenate([low, low + array(n, 2, low=0.1 * size, high=0.5 * size)], 1).astype("float32")


@case(O + "deform_conv2d", O + "DeformConv2D", "paddle.vision.ops", tol=1e-5)  # sums of products in another order
def deformable():
    x, weight = rand(2, 4, 7, 6), rand(6, 4, 3, 3)
    plain = ops.deform_conv2d(x, rand(2, 18, 5, 4, low=-1.3, high=1.3), weight, rand(6))
    masked = ops.deform_conv2d(x, rand(2, 36, 4, 3), rand(6, 2, 3, 3), stride=2, padding=[1, 1], deformable_groups=2,
                               groups=2, mask=rand(2, 18, 4, 3))
    wide = ops.deform_conv2d(x, rand(2, 18, 3, 2), weight, padding=0, dilation=2)
    layer = fill(ops.DeformConv2D(4, 3, [3, 2], padding=1))
    layer2 = fill(ops.DeformConv2D(4, 4, 1, groups=2, bias_attr=False))
    return [plain, masked, wide, layer(x, rand(2, 12, 7, 7)), layer2(x, rand(2, 2, 7, 6), rand(2, 1, 7, 6)),
            list(layer.state_dict()), list(layer2.state_dict()), raised(lambda: ops.DeformConv2D(3, 4, 3, groups=2))]


@case(O + "deform_conv2d", tol=1e-5)
def deformable_at_whole_positions():
    offset = paddle.to_tensor(np.random.RandomState(4).randint(-2, 3, (2, 18, 5, 4)).astype("float32"), stop_gradient=False)
    out = paddle.vision.ops.deform_conv2d(rand(2, 4, 7, 6), offset, rand(6, 4, 3, 3))
    out.square().sum().backward(retain_graph=True)
    return [out, offset.grad]


@case(O + "yolo_box", grad=False)
def yolo_boxes():
    out = []
    size = paddle.to_tensor(np.array([[64, 96], [40, 32]], "int32"))
    x = rand(2, 2 * 8, 3, 4, grad=False)
    for settings in ({}, {"clip_bbox": False}, {"scale_x_y": 1.2}):
        out += ops.yolo_box(x, size, [10, 13, 33, 23], 3, 0.4, 32, **settings)
    aware = rand(2, 2 * 9, 3, 4, grad=False)
    return out + list(ops.yolo_box(aware, size, [10, 13, 33, 23], 3, 0.01, 32, iou_aware=True, iou_aware_factor=0.4))


@case(O + "yolo_loss", tol=1e-5)  # sums in another order
def yolo_losses():
    x = rand(2, 2 * 9, 5, 5)
    truth = array(2, 4, 4, low=0.1, high=0.8)
    truth[0, 2] = 0
    truth = paddle.to_tensor(truth.astype("float32"))
    labels = ints(2, 4, high=4, dtype="int32")
    anchors = [10, 13, 16, 30, 33, 23, 60, 50]
    scores = paddle.to_tensor(array(2, 4, low=0.2, high=1.0).astype("float32"))
    return [ops.yolo_loss(x, truth, labels, anchors, mask, 4, 0.5, 32, **more) for mask, more in (
        ([0, 1], {}), ([2, 3], {"gt_score": scores}), ([1, 3], {"use_label_smooth": False, "scale_x_y": 1.1}))]


@case(O + "nms", grad=False)
def suppression():
    b = paddle.to_tensor(boxes(20))
    scores = paddle.to_tensor(array(20, low=0, high=1).astype("float32"))
    kinds = ints(20, high=3)
    return [ops.nms(b, 0.2), ops.nms(b, 0.4, scores), ops.nms(b, 0.3, scores, kinds, [0, 1, 2]),
            ops.nms(b, 0.3, scores, kinds, [0, 1, 2], top_k=4), ops.nms(b, 0.5, scores, top_k=3)]


@case(O + "prior_box", O + "box_coder", grad=False)
def priors():
    x, image = rand(1, 3, 4, 5), rand(1, 3, 20, 30)
    plain = ops.prior_box(x, image, [4.0, 8.0], [6.0, 11.0], [2.0], flip=True, clip=True)
    other = ops.prior_box(x, image, 4.0, steps=[7.0, 5.0], offset=0.25)
    first, variances = paddle.to_tensor(boxes(3)), paddle.to_tensor(array(3, 4, low=0.1, high=0.3).astype("float32"))
    targets = paddle.to_tensor(boxes(2))
    coded = ops.box_coder(first, variances, targets)
    return [*plain, *other, coded, ops.box_coder(first, variances, coded, "decode_center_size"),
            ops.box_coder(first, [0.1, 0.1, 0.2, 0.2], targets, box_normalized=False),
            ops.box_coder(targets, [0.1, 0.2, 0.3, 0.4], coded, "decode_center_size", axis=1)]


@case(O + "roi_align", O + "RoIAlign", tol=1e-5)  # means in another order
def aligned():
    # sides of a pixel and more: Paddle's gradient widens smaller ones, its forward does not
    x, b = rand(2, 3, 8, 8), paddle.to_tensor(boxes(5, 24.0))
    number = paddle.to_tensor(np.array([2, 3], "int32"))
    return [ops.roi_align(x, b, number, 3), ops.roi_align(x, b, number, (2, 4), 0.5, 2, False),
            ops.roi_align(x, b, number, 2, spatial_scale=0.7, sampling_ratio=3), ops.RoIAlign(2, 0.5)(x, b, number)]


@case(O + "roi_pool", O + "RoIPool")
def pooled():
    x, b = rand(2, 3, 8, 8), paddle.to_tensor(boxes(5, 12.0))
    number = paddle.to_tensor(np.array([1, 4], "int32"))
    return [ops.roi_pool(x, b, number, 3), ops.roi_pool(x, b, number, (2, 4), 0.5), ops.RoIPool(2, 0.6)(x, b, number)]


@case(O + "psroi_pool", O + "PSRoIPool", tol=1e-5)  # sums in another order
def pooled_by_position():
    x, b = rand(2, 12, 8, 8), paddle.to_tensor(boxes(5, 12.0))
    number = paddle.to_tensor(np.array([3, 2], "int32"))
    return [ops.psroi_pool(x, b, number, 2), ops.psroi_pool(x, b, number, (2, 3), 0.5), ops.PSRoIPool(2, 0.6)(x, b, number)]


@case(O + "matrix_nms", grad=False)
def matrix_suppression():
    b, scores = paddle.to_tensor(np.stack([boxes(9), boxes(9)])), rand(2, 3, 9, low=0.0, high=1.0, grad=False)
    return [*ops.matrix_nms(b, scores, 0.1, 0.0, 10, 10, return_index=True), *ops.matrix_nms(b, scores, 2.0, 0.0, 10, 10),
            *ops.matrix_nms(b, scores, 0.2, 0.1, -1, 5, True, 1.5, -1, False, True)]


@case(O + "generate_proposals", grad=False, tol=1e-5)  # another exponential
def proposals():
    scores, deltas = rand(2, 3, 4, 5, low=0.0, high=1.0, grad=False), rand(2, 12, 4, 5, low=-0.5, high=0.5, grad=False)
    size = paddle.to_tensor(np.array([[40, 50], [35, 45]], "float32"))
    anchors = paddle.to_tensor(boxes(60, 40.0).reshape(4, 5, 3, 4))
    variances = paddle.to_tensor(array(4, 5, 3, 4, low=0.5, high=1.5).astype("float32"))
    return [*ops.generate_proposals(scores, deltas, size, anchors, variances, return_rois_num=True),
            *ops.generate_proposals(scores, deltas, size, anchors, variances, 0, 5, 0.7, 2.0, 0.9, True, True),
            *ops.generate_proposals(scores, deltas, size, anchors, variances, min_size=99.0, return_rois_num=True)]


@case(O + "distribute_fpn_proposals", grad=False)
def levels():
    b, number = paddle.to_tensor(boxes(9, 700.0)), paddle.to_tensor(np.array([4, 5], "int32"))
    found = []
    for more in ({}, {"pixel_offset": True}):
        rois, restore, numbers = ops.distribute_fpn_proposals(b, 2, 5, 4, 224, rois_num=number, **more)
        found += [*rois, restore, *numbers]
    return found


@case(O + "read_file", grad=False)
def files():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bytes")
        with open(path, "wb") as f:
            f.write(bytes(range(250)))
        return ops.read_file(path)
