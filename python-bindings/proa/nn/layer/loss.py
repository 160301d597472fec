"""Layers of losses: each holds its settings and calls one function."""
from .. import functional as F
from ..functional._args import reduction_of
from .layers import Layer


class BCEWithLogitsLoss(Layer):
    """Cross-entropy of sigmoid(logit) and labels in [0, 1]."""

    def __init__(self, weight=None, reduction="mean", pos_weight=None, name=None):
        reduction_of(reduction, "BCEWithLogitsLoss")
        super().__init__()
        self.weight = weight
        self.reduction = reduction
        self.pos_weight = pos_weight
        self.name = name

    def forward(self, logit, label):
        return F.binary_cross_entropy_with_logits(logit, label, weight=self.weight, reduction=self.reduction,
                                                  pos_weight=self.pos_weight)


class CrossEntropyLoss(Layer):
    """Cross-entropy of softmax(input) and classes or distributions."""

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1, use_softmax=True,
                 label_smoothing=0.0, name=None):
        super().__init__()
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.soft_label = soft_label
        self.axis = axis
        self.use_softmax = use_softmax
        self.label_smoothing = label_smoothing
        self.name = name

    def forward(self, input, label):
        return F.cross_entropy(input, label, weight=self.weight, ignore_index=self.ignore_index,
                               reduction=self.reduction, soft_label=self.soft_label, axis=self.axis,
                               use_softmax=self.use_softmax, label_smoothing=self.label_smoothing)


class MSELoss(Layer):
    """The squared difference."""

    def __init__(self, reduction="mean"):
        reduction_of(reduction, "MSELoss")
        super().__init__()
        self.reduction = reduction

    def forward(self, input, label):
        return F.mse_loss(input, label, reduction=self.reduction)


class L1Loss(Layer):
    """The absolute difference."""

    def __init__(self, reduction="mean", name=None):
        reduction_of(reduction, "L1Loss")
        super().__init__()
        self.reduction = reduction
        self.name = name

    def forward(self, input, label):
        return F.l1_loss(input, label, reduction=self.reduction)


class BCELoss(Layer):
    """Cross-entropy of probabilities and labels in [0, 1]."""

    def __init__(self, weight=None, reduction="mean", name=None):
        reduction_of(reduction, "BCELoss")
        super().__init__()
        self.weight = weight
        self.reduction = reduction
        self.name = name

    def forward(self, input, label):
        return F.binary_cross_entropy(input, label, weight=self.weight, reduction=self.reduction)


class NLLLoss(Layer):
    """Minus the log-probability of the label."""

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", name=None):
        reduction_of(reduction, "NLLLoss")
        super().__init__()
        self._weight = weight
        self._ignore_index = ignore_index
        self._reduction = reduction
        self._name = name

    def forward(self, input, label):
        return F.nll_loss(input, label, weight=self._weight, ignore_index=self._ignore_index,
                          reduction=self._reduction)


class PoissonNLLLoss(Layer):
    """Negative log-likelihood of counts under a Poisson law."""

    def __init__(self, log_input=True, full=False, epsilon=1e-8, reduction="mean", name=None):
        reduction_of(reduction, "PoissonNLLLoss")
        if epsilon <= 0:
            raise ValueError(f"PoissonNLLLoss: epsilon must be above 0, got {epsilon}")
        super().__init__()
        self._log_input = log_input
        self._full = full
        self._epsilon = epsilon
        self._reduction = reduction
        self._name = name

    def forward(self, input, label):
        return F.poisson_nll_loss(input, label, log_input=self._log_input, full=self._full, epsilon=self._epsilon,
                                  reduction=self._reduction)


class KLDivLoss(Layer):
    """Kullback-Leibler divergence of label from input (log-probabilities)."""

    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def forward(self, input, label):
        return F.kl_div(input, label, reduction=self.reduction)


class MarginRankingLoss(Layer):
    """max(0, margin - label * (input - other))."""

    def __init__(self, margin=0.0, reduction="mean", name=None):
        reduction_of(reduction, "MarginRankingLoss")
        super().__init__()
        self.margin = margin
        self.reduction = reduction
        self.name = name

    def forward(self, input, other, label):
        return F.margin_ranking_loss(input, other, label, margin=self.margin, reduction=self.reduction)


class SmoothL1Loss(Layer):
    """Half the squared difference below delta, a straight line above it."""

    def __init__(self, reduction="mean", delta=1.0, name=None):
        super().__init__()
        self.reduction = reduction
        self.delta = delta
        self.name = name

    def forward(self, input, label):
        return F.smooth_l1_loss(input, label, reduction=self.reduction, delta=self.delta)


class MultiLabelSoftMarginLoss(Layer):
    """Cross-entropy of sigmoid(input) and several labels, averaged over classes."""

    def __init__(self, weight=None, reduction="mean", name=None):
        reduction_of(reduction, "MultiLabelSoftMarginLoss")
        super().__init__()
        self.weight = weight
        self.reduction = reduction
        self.name = name

    def forward(self, input, label):
        return F.multi_label_soft_margin_loss(input, label, weight=self.weight, reduction=self.reduction)


class HingeEmbeddingLoss(Layer):
    """input where label is 1, max(0, margin - input) where it is -1."""

    def __init__(self, margin=1.0, reduction="mean", name=None):
        super().__init__()
        self.margin = margin
        self.reduction = reduction
        self.name = name

    def forward(self, input, label):
        return F.hinge_embedding_loss(input, label, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(Layer):
    """1 - cos where label is 1, max(0, cos - margin) where it is -1."""

    def __init__(self, margin=0, reduction="mean", name=None):
        reduction_of(reduction, "CosineEmbeddingLoss")
        if not -1 <= margin <= 1:
            raise ValueError(f"CosineEmbeddingLoss: margin must be in [-1, 1], got {margin}")
        super().__init__()
        self.margin = margin
        self.reduction = reduction
        self.name = name

    def forward(self, input1, input2, label):
        return F.cosine_embedding_loss(input1, input2, label, margin=self.margin, reduction=self.reduction)


class TripletMarginWithDistanceLoss(Layer):
    """max(0, d(input, positive) - d(input, negative) + margin) with a distance of the caller's."""

    def __init__(self, distance_function=None, margin=1.0, swap=False, reduction="mean", name=None):
        reduction_of(reduction, "TripletMarginWithDistanceLoss")
        super().__init__()
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap
        self.reduction = reduction
        self.name = name

    def forward(self, input, positive, negative):
        return F.triplet_margin_with_distance_loss(input, positive, negative,
                                                   distance_function=self.distance_function, margin=self.margin,
                                                   swap=self.swap, reduction=self.reduction)


class TripletMarginLoss(Layer):
    """max(0, d(input, positive) - d(input, negative) + margin) with the p-norm."""

    def __init__(self, margin=1.0, p=2.0, epsilon=1e-6, swap=False, reduction="mean", name=None):
        reduction_of(reduction, "TripletMarginLoss")
        super().__init__()
        self.margin = margin
        self.p = p
        self.epsilon = epsilon
        self.swap = swap
        self.reduction = reduction
        self.name = name

    def forward(self, input, positive, negative):
        return F.triplet_margin_loss(input, positive, negative, margin=self.margin, p=self.p, epsilon=self.epsilon,
                                     swap=self.swap, reduction=self.reduction)


class MultiMarginLoss(Layer):
    """The hinge of every class's score against the label's."""

    def __init__(self, p=1, margin=1.0, weight=None, reduction="mean", name=None):
        reduction_of(reduction, "MultiMarginLoss")
        super().__init__()
        self.p = p
        self.margin = margin
        self.weight = weight
        self.reduction = reduction
        self.name = name

    def forward(self, input, label):
        return F.multi_margin_loss(input, label, p=self.p, margin=self.margin, weight=self.weight,
                                   reduction=self.reduction)


class SoftMarginLoss(Layer):
    """log(1 + exp(-label * input))."""

    def __init__(self, reduction="mean", name=None):
        reduction_of(reduction, "SoftMarginLoss")
        super().__init__()
        self.reduction = reduction
        self.name = name

    def forward(self, input, label):
        return F.soft_margin_loss(input, label, reduction=self.reduction)


class GaussianNLLLoss(Layer):
    """Negative log-likelihood under normal laws."""

    def __init__(self, full=False, epsilon=1e-6, reduction="mean", name=None):
        reduction_of(reduction, "GaussianNLLLoss")
        super().__init__()
        self.full = full
        self.epsilon = epsilon
        self.reduction = reduction
        self.name = name

    def forward(self, input, label, variance):
        return F.gaussian_nll_loss(input, label, variance, full=self.full, epsilon=self.epsilon,
                                   reduction=self.reduction)


class CTCLoss(Layer):
    """Connectionist temporal classification."""

    def __init__(self, blank=0, reduction="mean"):
        super().__init__()
        self.blank = blank
        self.reduction = reduction

    def forward(self, log_probs, labels, input_lengths, label_lengths, norm_by_times=False):
        return F.ctc_loss(log_probs, labels, input_lengths, label_lengths, self.blank, self.reduction, norm_by_times)


class RNNTLoss(Layer):
    """The transducer's loss."""

    def __init__(self, blank=0, fastemit_lambda=0.001, reduction="mean", name=None):
        super().__init__()
        self.blank, self.fastemit_lambda, self.reduction = blank, fastemit_lambda, reduction

    def forward(self, input, label, input_lengths, label_lengths):
        return F.rnnt_loss(input, label, input_lengths, label_lengths, self.blank, self.fastemit_lambda, self.reduction)


class HSigmoidLoss(Layer):
    """Hierarchical sigmoid over a binary tree of classes, the default one or the caller's (is_custom)."""

    def __init__(self, feature_size, num_classes, weight_attr=None, bias_attr=None, is_custom=False, is_sparse=False,
                 name=None):
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ValueError(f"HSigmoidLoss: num_classes must be at least 2 with the default tree, got {num_classes}")
        self._feature_size = feature_size
        self._num_classes = num_classes
        self._is_custom = is_custom
        self._is_sparse = is_sparse and is_custom
        self._weight_attr = weight_attr
        self._bias_attr = bias_attr
        self._name = name
        nodes = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter([nodes, feature_size], weight_attr)
        self.bias = self.create_parameter([nodes, 1], bias_attr, is_bias=True)

    def forward(self, input, label, path_table=None, path_code=None):
        return F.hsigmoid_loss(input, label, self._num_classes, self.weight, self.bias, path_table, path_code,
                               self._is_sparse)
