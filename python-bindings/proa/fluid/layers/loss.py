"""fluid.layers.loss: losses with the signatures of Paddle 1.x."""
from ... import _core
from ...static.nn import nce, sequence_pad
from ..layer_helper import LayerHelper, one_op

__all__ = ["bpr_loss", "center_loss", "cross_entropy", "cross_entropy2", "dice_loss", "edit_distance", "hsigmoid", "huber_loss",
           "kldiv_loss", "log_loss", "margin_rank_loss", "mse_loss", "nce", "npair_loss", "rank_loss",
           "sampled_softmax_with_cross_entropy", "sigmoid_cross_entropy_with_logits", "smooth_l1", "softmax_with_cross_entropy",
           "square_error_cost", "teacher_student_sigmoid_loss", "warpctc"]


def cross_entropy(input, label, soft_label=False, ignore_index=-100):
    """−log of the probability of the label, or −Σ label · log(input)."""
    return one_op("cross_entropy", {"X": input, "Label": label}, {"soft_label": soft_label, "ignore_index": ignore_index}, "Y")


def cross_entropy2(input, label, ignore_index=-100):
    """−log of the probability of the label."""
    return one_op("cross_entropy2", {"X": input, "Label": label}, {"ignore_index": ignore_index}, "Y", "~MatchX", "~XShape")


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
                               return_softmax=False, axis=-1):
    """The cross entropy of a softmax, and the softmax if wanted."""
    if not soft_label and isinstance(label, _core.Tensor) and label.is_floating_point():
        label = _core.cast(label, "int64")  # declared so, and fed with class numbers
    softmax, loss = one_op("softmax_with_cross_entropy", {"Logits": logits, "Label": label},
                           {"soft_label": soft_label, "ignore_index": ignore_index,
                            "numeric_stable_mode": numeric_stable_mode, "axis": axis}, "Softmax", "Loss")
    return (loss, softmax) if return_softmax else loss


def sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, name=None, normalize=False):
    """The cross entropy of a sigmoid, of each element."""
    return one_op("sigmoid_cross_entropy_with_logits", {"X": x, "Label": label},
                  {"ignore_index": ignore_index, "normalize": normalize}, "Out", name=name)


def square_error_cost(input, label):
    """(input − label)²."""
    return _core.square(_core.subtract(input, label))


def mse_loss(input, label):
    """The mean of (input − label)²."""
    from .elementwise import reduce_mean
    return reduce_mean(square_error_cost(input, label))


def huber_loss(input, label, delta):
    """Squares near zero, absolute values beyond delta."""
    return one_op("huber_loss", {"X": input, "Y": label}, {"delta": float(delta)}, "Out", "~Residual")


def smooth_l1(x, y, inside_weight=None, outside_weight=None, sigma=None):
    """The smooth L1 loss of each row."""
    out = one_op("smooth_l1_loss", {"X": x, "Y": y, "InsideWeight": inside_weight, "OutsideWeight": outside_weight},
                 {"sigma": 1.0 if sigma is None else float(sigma)}, "~Diff", "Out")
    return out


def kldiv_loss(x, target, reduction="mean", name=None):
    """target · (log(target) − x)."""
    return one_op("kldiv_loss", {"X": x, "Target": target}, {"reduction": reduction}, "Loss", name=name)


def log_loss(input, label, epsilon=1e-4, name=None):
    """−label · log(input + ε) − (1 − label) · log(1 − input + ε)."""
    return one_op("log_loss", {"Predicted": input, "Labels": label}, {"epsilon": float(epsilon)}, "Loss", name=name)


def rank_loss(label, left, right, name=None):
    """The loss of RankNet."""
    return one_op("rank_loss", {"Label": label, "Left": left, "Right": right}, {}, "Out", name=name)


def margin_rank_loss(label, left, right, margin=0.1, name=None):
    """max(0, −label · (left − right) + margin)."""
    return one_op("margin_rank_loss", {"Label": label, "X1": left, "X2": right}, {"margin": float(margin)}, "Out",
                  "~Activated", name=name)


def bpr_loss(input, label, name=None):
    """Bayesian personalised ranking."""
    return one_op("bpr_loss", {"X": input, "Label": label}, {}, "Y", name=name)


def teacher_student_sigmoid_loss(input, label, soft_max_up_bound=15.0, soft_max_lower_bound=-15.0):
    """The loss of a student that a teacher's score goes with."""
    return one_op("teacher_student_sigmoid_loss", {"X": input, "Label": label},
                  {"soft_max_lower_bound": soft_max_lower_bound, "soft_max_up_bound": soft_max_up_bound}, "Y")


def npair_loss(anchor, positive, labels, l2_reg=0.002):
    """The N-pair loss."""
    from ...nn.functional import npair_loss as loss
    return loss(anchor, positive, labels, l2_reg)


def dice_loss(input, label, epsilon=0.00001, name=None):
    """One less twice the overlap over the sizes."""
    from ...nn.functional import dice_loss as loss
    return loss(input, label, epsilon)


def center_loss(input, label, num_classes, alpha, param_attr, update_center=True):
    """Half the squared distances to the class centres, which move there."""
    helper = LayerHelper("center_loss", param_attr=param_attr)
    centers = helper.create_parameter(helper.param_attr, [num_classes, input.shape[1]], input.dtype, stop_gradient=True)
    rate = alpha if isinstance(alpha, _core.Tensor) else _core.full([1], float(alpha), _core.float32)
    difference, loss = (helper.create_variable_for_type_inference(input.dtype) for _ in "ab")
    helper.append_op("center_loss", {"X": [input], "Label": [label], "Centers": [centers], "CenterUpdateRate": [rate]},
                     {"SampleCenterDiff": [difference], "Loss": [loss], "CentersOut": [centers]},
                     {"cluster_num": num_classes, "need_update": update_center})
    return loss


def edit_distance(input, label, normalized=True, ignored_tokens=None, input_length=None, label_length=None):
    """(edit distances, the number of sequences)."""
    if ignored_tokens:
        input, label = (one_op("sequence_erase", {"X": one}, {"tokens": list(ignored_tokens)}, "Out")
                        for one in (input, label))
    return one_op("edit_distance", {"Hyps": input, "Refs": label, "HypsLength": input_length, "RefsLength": label_length},
                  {"normalized": normalized}, "Out", "SequenceNum", dtype="float32")


def warpctc(input, label, blank=0, norm_by_times=False, input_length=None, label_length=None):
    """The CTC loss of each sequence: of rows with lengths, or of sequences (LoD)."""
    if input_length is None and label_length is None and input.is_symbolic and _core.variable_lod(input):
        (rows, input_length), (label, label_length) = (sequence_pad(one, _core.full([1], 0, one.dtype)) for one in (input, label))
        input, label = _core.transpose(rows, [1, 0, 2]), _core.squeeze(label, [2])
    return one_op("warpctc", {"Logits": input, "Label": label, "LogitsLength": input_length, "LabelLength": label_length},
                  {"blank": blank, "norm_by_times": norm_by_times}, "Loss", "~WarpCTCGrad")


def hsigmoid(input, label, num_classes, param_attr=None, bias_attr=None, name=None, path_table=None, path_code=None,
             is_custom=False, is_sparse=False):
    """The loss of a tree of sigmoids."""
    helper = LayerHelper("hierarchical_sigmoid", param_attr=param_attr, bias_attr=bias_attr, name=name)
    nodes = num_classes if is_custom else num_classes - 1
    weight = helper.create_parameter(helper.param_attr, [nodes, input.shape[1]], input.dtype)
    bias = helper.create_parameter(helper.bias_attr, [nodes, 1], input.dtype, is_bias=True)
    return one_op("hierarchical_sigmoid", {"X": input, "W": weight, "Label": label, "Bias": bias, "PathTable": path_table,
                                           "PathCode": path_code},
                  {"num_classes": num_classes, "is_sparse": is_sparse}, "Out", "~PreOut", "~W_Out")


def sampled_softmax_with_cross_entropy(logits, label, num_samples, num_true=1, remove_accidental_hits=True,
                                       use_customized_samples=False, customized_samples=None,
                                       customized_probabilities=None, seed=0):
    """The cross entropy of a softmax over the label and sampled classes."""
    from .nn import one_hot
    labels, logits, *_ = one_op(
        "sample_logits", {"Logits": logits, "Labels": label, "CustomizedSamples": customized_samples,
                          "CustomizedProbabilities": customized_probabilities},
        {"use_customized_samples": use_customized_samples, "uniq": True, "num_samples": num_samples, "seed": seed,
         "remove_accidental_hits": remove_accidental_hits}, "SampledLabels", "SampledLogits", "~Samples", "~Probabilities",
        "~LogitsDim", "~LabelsDim")
    soft = one_hot(labels, num_samples + num_true)
    loss = softmax_with_cross_entropy(logits, soft, soft_label=True)
    return loss if num_true == 1 else loss / num_true
