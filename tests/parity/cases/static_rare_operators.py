"""Rare operators of Paddle's format, of detectors, ranking and text matching, in programs of one operator with their gradients
and their sequences (LoD)."""
import functools

import numpy as np
import paddle
import paddle.static as static
from parity import case

RNG = np.random.RandomState(11)
F, I4, I8 = "float32", "int32", "int64"


def in_static(fn):
    @functools.wraps(fn)
    def inside():
        paddle.enable_static()
        RNG.seed(11)
        try:
            return fn()
        finally:
            paddle.disable_static()
    return inside


def real(*shape, low=0.0, high=1.0):
    return (RNG.rand(*shape) * (high - low) + low).astype(F)


def fed(value):
    """An array, or (array, lengths of sequences, …) as a tensor with LoD."""
    if not isinstance(value, tuple):
        return value
    t = static.Scope().var("fed").get_tensor()
    t.set(value[0], paddle.CPUPlace())
    t.set_recursive_sequence_lengths([list(level) for level in value[1:]])
    return t


def program_of(op_type, inputs, outputs, attrs=None, gradients_of=(), hidden=()):
    """Results of one operator (arrays with their sequences), and the gradients of the mean of its first output. `hidden` outputs
    are what its kernel works in."""
    main = static.Program()
    with static.program_guard(main, static.Program()):
        block, feed, given = main.global_block(), {}, {}
        for slot, value in inputs.items():
            given[slot] = []
            for at, one in enumerate(value if isinstance(value, list) else [value]):
                name, levels = f"{slot}_{at}", len(one) - 1 if isinstance(one, tuple) else 0
                array = one[0] if levels else one
                shape = [-1, *array.shape[1:]] if levels else list(array.shape)
                given[slot].append(static.data(name, shape, str(array.dtype), lod_level=levels))
                feed[name] = fed(one)
        for slot in gradients_of:
            given[slot][0].stop_gradient = False
        made = {slot: [block.create_var(name=f"made_{slot}", dtype=dtype)] for slot, dtype in {**outputs, **dict.fromkeys(hidden, F)}.items()}
        block.append_op(type=op_type, inputs=given, outputs=made, attrs=attrs or {})
        shown = [made[slot][0] for slot in outputs]
        grads = static.gradients(paddle.mean(shown[0]), [given[slot][0] for slot in gradients_of]) if gradients_of else []
        found = static.Executor(paddle.CPUPlace()).run(main, feed=feed, fetch_list=shown + grads, return_numpy=False)
    return [(np.array(one), one.lod() if i < len(shown) else []) for i, one in enumerate(found)]


def boxes(n, size=60.0):
    low = RNG.rand(n, 2) * size * 0.6
    return np.concatenate([low, low + 4 + RNG.rand(n, 2) * size * 0.4], 1).astype(F)


TRUE, GT = boxes(5), (3, 2)
INFO = np.array([[64, 64, 0.8], [50, 60, 1.5]], F)
CROWD = np.array([[0], [1], [0], [0], [0]], I4)
KINDS = np.array([[2], [1], [3], [1], [2]], I4)


@case("paddle.static.Block.append_op")
@in_static
def targets():
    """Labels of anchors and of proposals, without random choice."""
    anchors, found = boxes(40), []
    near = np.concatenate([TRUE[:3] * 0.8 + 1, boxes(9) * 0.8, TRUE[3:] * 1.5 - 1, boxes(6)]).astype(F)
    given = {"Anchor": anchors, "GtBoxes": (TRUE, GT), "IsCrowd": (CROWD, GT), "ImInfo": INFO}
    outs = {"LocationIndex": I4, "ScoreIndex": I4, "TargetLabel": I4, "TargetBBox": F, "BBoxInsideWeight": F}
    for margin, batch in ((0.0, 16), (-1.0, 8), (5.0, 300)):
        attrs = {"rpn_batch_size_per_im": batch, "rpn_straddle_thresh": margin, "rpn_positive_overlap": 0.5,
                 "rpn_negative_overlap": 0.2, "rpn_fg_fraction": 0.4, "use_random": False}
        found.append(program_of("rpn_target_assign", given, outs, attrs))
    found.append(program_of("retinanet_target_assign", {**given, "GtLabels": (KINDS, GT)}, {**outs, "ForegroundNumber": I4},
                            {"positive_overlap": 0.5, "negative_overlap": 0.3}))
    given = {"RpnRois": (near, (12, 8)), "GtClasses": (KINDS, GT), "IsCrowd": (CROWD, GT), "GtBoxes": (TRUE, GT), "ImInfo": INFO}
    outs = {"Rois": F, "LabelsInt32": I4, "BboxTargets": F, "BboxInsideWeights": F, "BboxOutsideWeights": F, "MaxOverlapWithGT": F}
    for batch, fraction, agnostic in ((10, 0.25, False), (7, 0.5, True), (64, 0.25, False)):
        attrs = {"batch_size_per_im": batch, "fg_fraction": fraction, "fg_thresh": 0.4, "bg_thresh_hi": 0.4, "bg_thresh_lo": 0.0,
                 "bbox_reg_weights": [0.1, 0.1, 0.2, 0.2], "class_nums": 2 if agnostic else 4, "use_random": False,
                 "is_cls_agnostic": agnostic, "is_cascade_rcnn": False}
        found.append(program_of("generate_proposal_labels", given, outs, attrs))
    most = real(20)
    found.append(program_of("generate_proposal_labels", {**given, "MaxOverlap": (most, (12, 8))}, outs,
                            {**attrs, "is_cascade_rcnn": True}))
    return found


@case("paddle.static.Block.append_op")
@in_static
def masks():
    """Masks of polygons in regions, with several polygons an object, crowds, and an image without objects."""
    turn = np.linspace(0, 2 * np.pi, 9)[:-1]
    circles = [np.stack([np.cos(turn), np.sin(turn)], 1)[::step] * r + at for step, r, at in (
        (1, 20, (30, 30)), (2, 9, (12, 40)), (1, 14, (40, 22)), (1, 25, (33, 33)), (1, 8, (15, 15)), (2, 18, (28, 20)))]
    points = np.concatenate(circles).astype(F)
    rois = np.concatenate([boxes(8), boxes(4)])
    labels = np.array([[1], [0], [3], [2], [0], [1], [0], [1], [0], [0], [0], [0]], I4)
    given = {"ImInfo": INFO, "GtClasses": (KINDS, GT), "IsCrowd": (CROWD, GT),
             "GtSegms": (points, GT, (2, 1, 1, 1, 1), tuple(map(len, circles))), "Rois": (rois, (8, 4)), "LabelsInt32": (labels, (8, 4))}
    return [program_of("generate_mask_labels", given, {"MaskRois": F, "RoiHasMaskInt32": I4, "MaskInt32": I4},
                       {"num_classes": 4, "resolution": size}) for size in (7, 10)]


@case("paddle.static.Block.append_op", tol=1e-5)
@in_static
def last_steps():
    """Boxes that remain: of merged neighbours, and of the levels of RetinaNet."""
    found, near = [], np.stack([boxes(12), boxes(12)]) / 60
    for normalized, keep, threshold in ((True, 5, 0.3), (False, -1, 0.1), (True, 5, 9.0)):
        attrs = {"background_label": -1, "score_threshold": 0.2 if threshold < 1 else threshold, "nms_top_k": 9, "keep_top_k": keep,
                 "nms_threshold": 0.3, "nms_eta": 1.0, "normalized": normalized}
        found.append(program_of("locality_aware_nms", {"BBoxes": near, "Scores": real(2, 1, 12)}, {"Out": F}, attrs))
    square = np.array([[0, 0, 4, 0, 4, 4, 0, 4], [0.5, 0, 4.5, 0, 4, 4, 0, 4], [2, -1, 6, 2, 3, 6, -1, 3], [9, 9, 12, 9, 12, 12, 9, 12]], F)
    found.append(program_of("locality_aware_nms", {"BBoxes": square[None], "Scores": real(1, 1, 4, low=0.3)}, {"Out": F},
                            {**attrs, "score_threshold": 0.1, "normalized": False}))
    sizes, levels = (12, 5), {"BBoxes": [], "Scores": [], "Anchors": []}
    for n in sizes:
        levels["BBoxes"].append(real(2, n, 4, low=-0.3, high=0.3))
        levels["Scores"].append(real(2, n, 3))
        levels["Anchors"].append(boxes(n))
    for keep, least in ((6, 0.4), (99, 0.05)):
        found.append(program_of("retinanet_detection_output", {**levels, "ImInfo": INFO}, {"Out": F}, {
            "score_threshold": least, "nms_top_k": 10, "keep_top_k": keep, "nms_threshold": 0.4, "nms_eta": 1.0}))
    return found


@case("paddle.static.Block.append_op", tol=1e-5)
@in_static
def rates():
    """Rates of classes and of boxes, of a batch and of all so far."""
    labels, guesses, found = RNG.randint(0, 4, (9, 1)).astype(I4), RNG.randint(0, 4, (9, 1)).astype(I4), []
    given = {"MaxProbs": real(9, 1), "Indices": guesses, "Labels": labels}
    outs = {"BatchMetrics": "float64", "AccumMetrics": "float64", "AccumStatesInfo": F}
    for more in ({}, {"Weights": real(9, 1)}, {"Weights": real(9, 1), "StatesInfo": real(5, 4, high=5)}):
        found.append(program_of("precision_recall", {**given, **more}, outs, {"class_number": 5}))
    truth = np.concatenate([KINDS, CROWD, TRUE / 60], 1).astype(F)
    near = np.concatenate([KINDS[[0, 2, 2, 1, 3, 4, 4]], real(7, 1), np.clip(TRUE[[0, 2, 0, 1, 3, 4, 4]] / 60 + 0.02, 0, 1)], 1)
    given = {"DetectRes": (near.astype(F), (4, 3)), "Label": (truth, GT)}
    outs = {"MAP": F, "AccumPosCount": I4, "AccumTruePos": F, "AccumFalsePos": F}
    for kind, difficult in (("integral", True), ("11point", False)):
        attrs = {"overlap_threshold": 0.4, "evaluate_difficult": difficult, "ap_type": kind, "class_num": 4}
        found.append(program_of("detection_map", given, outs, attrs))
    plain = np.delete(truth, 1, 1)
    state = {"HasState": np.array([1], I4), "PosCount": np.array([[0], [2], [1], [0]], I4),
             "TruePos": (np.array([[0.7, 1], [0.3, 0], [0.2, 1], [0.8, 0]], F), (0, 3, 1, 0)),
             "FalsePos": (np.array([[0.7, 0], [0.3, 1], [0.2, 0], [0.8, 1]], F), (0, 3, 1, 0))}
    found.append(program_of("detection_map", {**given, "Label": (plain, GT), **state}, outs, attrs))
    return found


@case("paddle.static.Block.append_op", tol=1e-5)
@in_static
def matching():
    """Products of pairs of sequences, convolutions of images of several sizes, recurrence with attention."""
    rows, columns, x = (2, 4, 1), (3, 2, 5), real(5, 6)
    found = [program_of("match_matrix_tensor", {"X": (x, (1, 2, 2)), "Y": (real(8, 6), (3, 1, 4)), "W": real(6, 3, 6)},
                        {"Out": F, "Tmp": F}, {"dim_t": 3}, ["X", "Y", "W"])]
    lengths = tuple(2 * r * c for r, c in zip(rows, columns))
    for kernel, stride in (((2, 3), (1, 1)), ((3, 3), (2, 1))):
        found.append(program_of(
            "var_conv_2d", {"X": (real(sum(lengths), 1), lengths), "ROW": (real(sum(rows), 2), rows),
                            "COLUMN": (real(sum(columns), 2), columns), "W": real(3, 2 * kernel[0] * kernel[1])},
            {"Out": F, "Col": F}, {"InputChannel": 2, "OutputChannel": 3, "KernelH": kernel[0], "KernelW": kernel[1],
                                   "StrideH": stride[0], "StrideW": stride[1]}, ["X", "W"]))
    for more in ({}, {"H0": real(2, 3), "AttentionBias": real(1, 1), "AttentionScalar": real(1, 1), "AttentionScalarBias": real(1, 1)}):
        found.append(program_of(
            "attention_lstm", {"X": (x, (2, 3)), "C0": real(2, 3), "AttentionWeight": real(9, 1, low=-1), "LSTMWeight": real(9, 12, low=-1),
                               "LSTMBias": real(1, 12), **more},
            {"Hidden": F, "Cell": F}, {"gate_activation": "sigmoid", "cell_activation": "tanh", "candidate_activation": "relu"},
            hidden=("AttentionedX", "AttentionFCOut", "LSTMX", "LSTMOUT")))
    return found


@case("paddle.static.Block.append_op", tol=1e-5)
@in_static
def samples():
    """Classes that are given instead of drawn, trees of items, and what becomes of probabilities."""
    found, labels = [], RNG.randint(0, 9, (6, 2)).astype(I8)
    given = {"Input": real(6, 4, low=-1), "Label": labels, "Weight": real(9, 4, low=-1), "Bias": real(9, 1), "SampleWeight": real(6, 1)}
    for sampler in (0, 1):
        found.append(program_of("nce", given, {"Cost": F, "SampleLogits": F, "SampleLabels": I8}, {
            "num_total_classes": 9, "num_neg_samples": 3, "custom_neg_classes": [0, 4, 8], "sampler": sampler, "seed": 0},
            ["Input", "Weight", "Bias"]))
    tree = np.array([[0, 0, 0, 1, 2], [0, 1, 0, 3, 4], [0, 1, 0, 5, 0], [0, 2, 1, 0, 0], [7, 2, 1, 0, 0], [9, 2, 2, 0, 0]])
    for of_x, of_tree in ((I4, I8), (I8, I4)):
        found.append(program_of("tdm_child", {"X": np.array([[0], [1], [2], [5]], of_x), "TreeInfo": tree.astype(of_tree)},
                                {"Child": I4, "LeafMask": I4}, {"child_nums": 2, "dtype": 2}))
    layers = np.array([[1], [2], [3], [4]], I4)
    found.append(program_of("tdm_sampler", {"X": np.array([[0], [1], [2]], I8), "Travel": np.array([[1, 3], [1, 4], [2, 0]], I4),
                                            "Layer": layers}, {"Out": I4, "Labels": I4, "Mask": I4},
                            {"neg_samples_num_list": [1, 1], "layer_offset_lod": [0, 2, 4], "output_positive": True, "seed": 0, "dtype": 2}))
    return found


@case("paddle.static.Block.append_op", tol=1e-5)
@in_static
def images():
    """Pyramids of cells, masks of places that stand out, windows of images of several sizes, the loss of YOLOv3."""
    x, found = real(2, 3, 9, 7), []
    for kind in ("max", "avg"):
        found.append(program_of("spp", {"X": x}, {"Out": F}, {"pyramid_height": 3, "pooling_type": kind}, ["X"]))
    for axis, indexes in ((1, [0, 2]), (2, [8]), (3, [1, 4])):
        found.append(program_of("similarity_focus", {"X": x}, {"Out": F}, {"axis": axis, "indexes": indexes}))
    sizes = np.array([[9, 7], [6, 5]], F)
    found.append(program_of("im2sequence", {"X": x, "Y": sizes}, {"Out": F}, {"kernels": [2, 2], "strides": [1, 2],
                                                                              "paddings": [1, 1, 1, 1], "out_stride": [1, 1]}))
    truth = real(2, 4, 4, low=0.1, high=0.6)
    given = {"X": real(2, 18, 5, 5, low=-1), "GTBox": truth, "GTLabel": RNG.randint(0, 4, (2, 4)).astype(I4), "GTScore": real(2, 4)}
    for smooth, scale in ((True, 1.0), (False, 1.2)):
        found.append(program_of("yolov3_loss", given, {"Loss": F, "ObjectnessMask": F, "GTMatchMask": I4}, {
            "anchors": [10, 13, 33, 23, 59, 119, 90, 60], "anchor_mask": [1, 3], "class_num": 4, "ignore_thresh": 0.3,
            "downsample_ratio": 32, "use_label_smooth": smooth, "scale_x_y": scale}, ["X"]))
    return found


@case("paddle.static.Block.append_op", tol=1e-5)
@in_static
def statistics():
    """data_norm by slots and with a scale, and offsets from an attribute or a tensor."""
    x, found = real(4, 6, low=-1), []
    x[0, 0] = x[1, 2] = x[2, 0] = x[3, 4] = 0
    given = {"X": x, "BatchSize": real(6, low=4, high=9), "BatchSum": real(6), "BatchSquareSum": real(6, low=4, high=9)}
    affine = {"scale_w": real(6), "bias": real(6)}
    for slot in (-1, 2, 3):
        for more in ({}, affine):
            found.append(program_of("data_norm", {**given, **more}, {"Y": F, "Means": F, "Scales": F},
                                    {"epsilon": 1e-4, "slot_dim": slot, "enable_scale_and_shift": bool(more)}, ["X", *list(given)[1:], *more]))
    sequences = (real(5, 2), (2, 3))
    found.append(program_of("lod_reset", {"X": sequences}, {"Out": F}, {"target_lod": [0, 1, 5]}, ["X"]))
    found.append(program_of("lod_reset", {"X": sequences, "Y": np.array([0, 4, 5], I4)}, {"Out": F}, {"target_lod": [0, 1, 5]}, ["X"]))
    return found
