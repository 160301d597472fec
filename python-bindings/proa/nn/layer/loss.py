"""Loss layers. Most only store the arguments of their function and are one line."""
from .. import functional as F
from .layers import Layer
from .stored import stored


def _loss(name, function, *settings, **options):
    globals()[name] = stored(__name__, name, function, *settings, **{"prefix": "", "shows": (), **options})


_loss("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, "weight", "reduction", "pos_weight", checked=True)
_loss("CrossEntropyLoss", F.cross_entropy, "weight", "ignore_index", "reduction", "soft_label", "axis", "use_softmax", "label_smoothing")
_loss("MSELoss", F.mse_loss, "reduction", named=False, checked=True)
_loss("L1Loss", F.l1_loss, "reduction", checked=True)
_loss("BCELoss", F.binary_cross_entropy, "weight", "reduction", checked=True)
_loss("NLLLoss", F.nll_loss, "weight", "ignore_index", "reduction", prefix="_", checked=True)
_loss("KLDivLoss", F.kl_div, "reduction", named=False)
_loss("MarginRankingLoss", F.margin_ranking_loss, "margin", "reduction", checked=True)
_loss("SmoothL1Loss", F.smooth_l1_loss, "reduction", "delta")
_loss("MultiLabelSoftMarginLoss", F.multi_label_soft_margin_loss, "weight", "reduction", checked=True)
_loss("HingeEmbeddingLoss", F.hinge_embedding_loss, "margin", "reduction")
_loss("TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss, "distance_function", "margin", "swap", "reduction", checked=True)
_loss("TripletMarginLoss", F.triplet_margin_loss, "margin", "p", "epsilon", "swap", "reduction", checked=True, p=2.0)
_loss("MultiMarginLoss", F.multi_margin_loss, "p", "margin", "weight", "reduction", checked=True)
_loss("SoftMarginLoss", F.soft_margin_loss, "reduction", checked=True)
_loss("GaussianNLLLoss", F.gaussian_nll_loss, "full", "epsilon", "reduction", checked=True)
_loss("RNNTLoss", F.rnnt_loss, "blank", "fastemit_lambda", "reduction")


class PoissonNLLLoss(stored(__name__, "PoissonNLLLoss", F.poisson_nll_loss, "log_input", "full", "epsilon", "reduction", shows=(), checked=True)):
    """Negative log-likelihood of counts under a Poisson law."""

    def __init__(self, log_input=True, full=False, epsilon=1e-8, reduction="mean", name=None):
        super().__init__(log_input, full, epsilon, reduction, name)
        if epsilon <= 0:
            raise ValueError(f"PoissonNLLLoss: epsilon must be above 0, got {epsilon}")


class CosineEmbeddingLoss(stored(__name__, "CosineEmbeddingLoss", F.cosine_embedding_loss, "margin", "reduction", prefix="", shows=(), checked=True)):
    """1 - cos where label is 1, max(0, cos - margin) where it is -1."""

    def __init__(self, margin=0, reduction="mean", name=None):
        super().__init__(margin, reduction, name)
        if not -1 <= margin <= 1:
            raise ValueError(f"CosineEmbeddingLoss: margin must be in [-1, 1], got {margin}")


class CTCLoss(stored(__name__, "CTCLoss", F.ctc_loss, "blank", "reduction", prefix="", shows=(), named=False)):
    """Connectionist temporal classification."""

    def forward(self, log_probs, labels, input_lengths, label_lengths, norm_by_times=False):
        return F.ctc_loss(log_probs, labels, input_lengths, label_lengths, self.blank, self.reduction, norm_by_times)


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
