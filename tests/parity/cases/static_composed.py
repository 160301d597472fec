"""Operators of Paddle's format that are compositions here, in programs of one operator with their gradients."""
import functools

import numpy as np
import paddle
import paddle.static as static
from parity import case

RNG = np.random.RandomState(3)
ROWS, OTHER = RNG.rand(6, 8).astype("float32") + 0.1, RNG.rand(6, 8).astype("float32") + 0.1
COLUMN, SECOND = RNG.rand(6, 1).astype("float32"), RNG.rand(6, 1).astype("float32")
SIDES = (np.arange(6).reshape(6, 1) % 2).astype("float32")
CLASSES = np.array([[1], [0], [3], [7], [2], [5]], "int64")
IMAGE = RNG.rand(2, 4, 3, 5).astype("float32")
BOXES = np.array([[0, 0, 2, 2], [1, 1, 3, 4], [5, 5, 6, 6]], "float32")


def in_static(fn):
    @functools.wraps(fn)
    def inside():
        paddle.enable_static()
        try:
            return fn()
        finally:
            paddle.disable_static()
    return inside


def program_of(op_type, inputs, outputs, attrs=None, gradients_of=()):
    """Results of one operator on arrays, and the gradients of the mean of its first output."""
    main = static.Program()
    with static.program_guard(main, static.Program()):
        block, feed, given = main.global_block(), {}, {}
        for slot, value in inputs.items():
            values = value if isinstance(value, list) else [value]
            given[slot] = []
            for at, array in enumerate(values):
                name = f"{slot}_{at}"
                given[slot].append(static.data(name, list(array.shape), str(array.dtype)))
                feed[name] = array
        for slot in gradients_of:
            given[slot][0].stop_gradient = False
        made = {slot: [block.create_var(name=f"made_{slot}", dtype=outputs[slot])] for slot in outputs}
        block.append_op(type=op_type, inputs=given, outputs=made, attrs=attrs or {})
        shown = [made[slot][0] for slot in outputs]
        if gradients_of:
            loss = paddle.mean(shown[0])
            shown += static.gradients(loss, [given[slot][0] for slot in gradients_of])
    found = static.Executor(paddle.CPUPlace()).run(main, feed=feed, fetch_list=shown)
    return [np.array(one) for one in found]


F = "float32"


@case("paddle.static.Block.append_op")
@in_static
def losses():
    """Losses of 1.x by operator."""
    return [
        program_of("cross_entropy", {"X": ROWS, "Label": CLASSES}, {"Y": F}, {"soft_label": False}, ["X"]),
        program_of("rank_loss", {"Label": SIDES, "Left": COLUMN, "Right": SECOND}, {"Out": F}, None, ["Left", "Right"]),
        program_of("log_loss", {"Predicted": COLUMN, "Labels": SIDES}, {"Loss": F}, {"epsilon": 1e-3}, ["Predicted"]),
        program_of("hinge_loss", {"Logits": COLUMN, "Labels": SIDES}, {"Loss": F}, None, ["Logits"]),
        program_of("modified_huber_loss", {"X": COLUMN * 4 - 2, "Y": SIDES}, {"Out": F, "IntermediateVal": F}, None, ["X"]),
        program_of("bpr_loss", {"X": ROWS, "Label": CLASSES}, {"Y": F}, None, ["X"]),
        program_of("teacher_student_sigmoid_loss", {"X": COLUMN, "Label": SIDES * 1.5 - 0.5}, {"Y": F}),
    ]


@case("paddle.static.Block.append_op")
@in_static
def functions():
    """Functions of 1.x by operator."""
    channels = RNG.rand(4).astype("float32")
    weight, hidden = RNG.rand(5, 15).astype("float32"), RNG.rand(6, 5).astype("float32")
    return [
        program_of("affine_channel", {"X": IMAGE, "Scale": channels, "Bias": channels + 1}, {"Out": F},
                   {"data_layout": "NCHW"}, ["X", "Scale", "Bias"]),
        program_of("lrn", {"X": IMAGE}, {"Out": F, "MidOut": F}, {"n": 3, "k": 1.5, "alpha": 0.1, "beta": 0.5}, ["X"]),
        program_of("fsp", {"X": IMAGE, "Y": IMAGE[:, :2] + 1}, {"Out": F}, None, ["X", "Y"]),
        program_of("bilinear_tensor_product", {"X": ROWS, "Y": OTHER[:, :3], "Weight": RNG.rand(2, 8, 3).astype("float32"),
                                               "Bias": RNG.rand(1, 2).astype("float32")}, {"Out": F}, None, ["X", "Weight"]),
        program_of("gru_unit", {"Input": RNG.rand(6, 15).astype("float32"), "HiddenPrev": hidden, "Weight": weight},
                   {"Hidden": F, "Gate": F, "ResetHiddenPrev": F}, {"activation": 2, "gate_activation": 1}, ["HiddenPrev"]),
        program_of("spectral_norm", {"Weight": ROWS, "U": COLUMN[:, 0], "V": OTHER[0]}, {"Out": F},
                   {"dim": 0, "power_iters": 2, "eps": 1e-12}),
        program_of("partial_sum", {"X": [ROWS, OTHER]}, {"Out": F}, {"start_index": 2, "length": 3}),
        program_of("partial_concat", {"X": [ROWS, OTHER]}, {"Out": F}, {"start_index": 2, "length": 3}),
        program_of("iou_similarity", {"X": BOXES, "Y": BOXES[:2] + 0.5}, {"Out": F}, {"box_normalized": True}),
        program_of("polygon_box_transform", {"Input": IMAGE}, {"Output": F}),
        program_of("matmul", {"X": ROWS[0], "Y": OTHER[0]}, {"Out": F}, {"transpose_X": True, "transpose_Y": True}),
        program_of("fill_zeros_like2", {"X": ROWS}, {"Out": F}, {"dtype": 5}),
    ]


@case("paddle.static.Block.append_op")
@in_static
def rankings():
    """Operators of ranking models: positions, views and clicks, hashes, and areas under curves of all batches and of windows."""
    long, chances = RNG.rand(2, 5, 6).astype("float32"), RNG.rand(20, 2).astype("float32")
    labels = (np.arange(20) % 3 == 0).astype("int64").reshape(20, 1)
    counts, F8, I8 = RNG.randint(0, 9, 6).astype("int64"), "float64", "int64"
    found = [program_of("add_position_encoding", {"X": long}, {"Out": F}, {"alpha": 0.6, "beta": 0.5}, ["X"]),
             program_of("add_position_encoding", {"X": long[:, :, :2]}, {"Out": F}, {"alpha": 1.0, "beta": 1.0})]
    for use_cvm in (True, False):
        found.append(program_of("cvm", {"X": ROWS, "CVM": OTHER[:, :2]}, {"Y": F}, {"use_cvm": use_cvm}, ["X"]))
    for dtype, width in (("int32", 1), ("int64", 3), ("int32", 19), ("int64", 8)):
        ids = RNG.randint(-99, 99, (5, width)).astype(dtype)
        found.append(program_of("hash", {"X": ids}, {"Out": dtype}, {"num_hash": 3, "mod_by": 10007}))
    stats = {0: counts.reshape(1, 6), 1: np.r_[counts, counts, 0], 2: np.r_[counts, counts * 2, counts * 3, 3]}
    for steps, stat in stats.items():
        found.append(program_of("auc", {"Predict": chances, "Label": labels, "StatPos": stat, "StatNeg": stat + (stat > 4)},
                                {"AUC": F8, "StatPosOut": I8, "StatNegOut": I8},
                                {"curve": "ROC", "num_thresholds": 5, "slide_steps": steps}))
    return found


@case("paddle.static.Block.append_op")
@in_static
def fused():
    """The orders of a fused activation, and an operand placed by an axis on either side."""
    found = []
    for functors in (["elementwise_add", "relu"], ["relu", "elementwise_add"], ["elementwise_mul", "scale"]):
        found.append(program_of("fused_elemwise_activation", {"X": IMAGE, "Y": IMAGE[0, :, 0, 0] - 0.5},
                                {"Out": F, "IntermediateOut": F}, {"functor_list": functors, "axis": 1, "scale": 0.5,
                                                                   "save_intermediate_out": True}, ["X", "Y"]))
    return found


@case("paddle.static.Block.append_op")
@in_static
def steps():
    """Steps of optimizers by operator."""
    rate = np.array([0.1], "float32")
    return [
        program_of("decayed_adagrad", {"Param": ROWS, "Grad": OTHER, "Moment": ROWS * 0.5, "LearningRate": rate},
                   {"ParamOut": F, "MomentOut": F}, {"decay": 0.9, "epsilon": 1e-6}),
        program_of("proximal_gd", {"Param": ROWS, "Grad": OTHER, "LearningRate": rate}, {"ParamOut": F}, {"l1": 0.1, "l2": 0.2}),
        program_of("ftrl", {"Param": ROWS, "Grad": OTHER, "SquaredAccumulator": ROWS * 0.1, "LinearAccumulator": OTHER * 0.1,
                            "LearningRate": rate}, {"ParamOut": F, "SquaredAccumOut": F, "LinearAccumOut": F},
                   {"l1": 0.1, "l2": 0.2, "lr_power": -0.5}),
    ]


@case("paddle.static.Block.append_op")
@in_static
def pooled_whole():
    """Pooling over the whole plane, with the places of maxima."""
    return program_of("max_pool2d_with_index", {"X": IMAGE}, {"Out": F, "Mask": "int32"},
                      {"ksize": [2, 2], "strides": [1, 1], "paddings": [0, 0], "global_pooling": True}, ["X"])
