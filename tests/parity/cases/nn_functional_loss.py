"""Losses of nn.functional and their layers: reductions, weights, ignored and soft labels, dtypes."""
import paddle
import paddle.nn.functional as F
from parity import bools, case, ints, raised, rand

N = "paddle.nn.functional."
REDUCTIONS = ("mean", "sum", "none")


def add(name, names, fn, **options):
    fn.__name__ = name
    case(*names, **options)(fn)


def prob(*shape, dtype="float32"):
    return rand(*shape, dtype=dtype, low=0.1, high=0.9)


def soft(*shape):
    return F.softmax(rand(*shape, grad=False))


for r in REDUCTIONS:
    def ce(r=r):
        x, y = rand(6, 5), ints(6, high=5)
        w = rand(5, low=0.1, high=1.0, grad=False)
        loss = paddle.nn.CrossEntropyLoss(weight=w, reduction=r)
        return (F.cross_entropy(x, y, reduction=r), F.cross_entropy(x, y.unsqueeze(-1), reduction=r),
                F.cross_entropy(x, y, weight=w, reduction=r), loss(x, y),
                F.cross_entropy(x, y, ignore_index=2, reduction=r),
                F.cross_entropy(x, y, weight=w, ignore_index=2, reduction=r))
    add(f"cross_entropy_{r}", [N + "cross_entropy", "paddle.nn.CrossEntropyLoss"], ce)

    def ce_soft(r=r):
        x, y, w = rand(4, 5), soft(4, 5), rand(5, low=0.1, high=1.0, grad=False)
        return (F.cross_entropy(x, y, soft_label=True, reduction=r),
                F.cross_entropy(x, y, weight=w, soft_label=True, reduction=r),
                F.cross_entropy(x, ints(4, high=5), label_smoothing=0.1, reduction=r),
                F.cross_entropy(x, y, soft_label=True, label_smoothing=0.2, reduction=r))
    add(f"cross_entropy_soft_{r}", [N + "cross_entropy"], ce_soft)

    def ce_axis(r=r):
        x, y = rand(2, 5, 3, dtype="float64"), ints(2, 3, high=5, dtype="int32")
        return (F.cross_entropy(x, y, axis=1, reduction=r), F.cross_entropy(x, y, axis=1, ignore_index=0, reduction=r),
                F.cross_entropy(rand(2, 3, 5), ints(2, 3, 1, high=5), reduction=r))
    add(f"cross_entropy_axis_{r}", [N + "cross_entropy"], ce_axis)

    def ce_loose(r=r):
        x, y = rand(6, 5), ints(6, high=5)
        low = rand(3, 2), paddle.to_tensor([1, 0, 1])
        return (F.cross_entropy(x, y.astype("float32"), reduction=r),
                F.cross_entropy(x, y.astype("float64"), ignore_index=2, reduction=r),
                F.cross_entropy(rand(2, 5, 3), ints(2, 3, high=5).astype("float32"), axis=1, reduction=r),
                F.cross_entropy(low[0], low[1].astype("bool"), reduction="none"),  # Paddle's mean of bools is the sum
                F.softmax_with_cross_entropy(x, y.unsqueeze(-1).astype("float32")))
    add(f"cross_entropy_of_float_labels_{r}", [N + "cross_entropy", N + "softmax_with_cross_entropy"], ce_loose,
        grad=False)  # real Paddle has their forward only

    def nll(r=r):
        w = rand(5, low=0.1, high=1.0, grad=False)
        x, y = F.log_softmax(rand(6, 5)), ints(6, high=5)
        return (F.nll_loss(x, y, reduction=r), F.nll_loss(x, y, weight=w, ignore_index=1, reduction=r),
                F.nll_loss(rand(2, 5, 3, 4), ints(2, 3, 4, high=5), reduction=r),
                F.nll_loss(x, y.unsqueeze(1), reduction=r), F.nll_loss(x, y.unsqueeze(1), weight=w, reduction=r),
                F.nll_loss(rand(2, 5, 3), ints(2, 1, 3, high=5), reduction=r),
                F.nll_loss(rand(2, 5, 3), ints(2, 3, high=5), reduction=r), paddle.nn.NLLLoss(w, 1, r)(x, y))
    add(f"nll_{r}", [N + "nll_loss", "paddle.nn.NLLLoss"], nll)

    def bce(r=r):
        x, y, w = prob(3, 4), prob(3, 4), rand(4, low=0.1, high=1.0, grad=False)
        return (F.binary_cross_entropy(x, y.detach(), reduction=r),
                F.binary_cross_entropy(x, y.detach(), weight=w, reduction=r),
                paddle.nn.BCELoss(w, r)(x, y.detach()))
    add(f"bce_{r}", [N + "binary_cross_entropy", "paddle.nn.BCELoss"], bce)

    def bce_logits(r=r):
        x, y, w = rand(3, 4), bools(3, 4).astype("float32"), rand(4, low=0.5, high=2.0, grad=False)
        return (F.binary_cross_entropy_with_logits(x, y, reduction=r),
                F.binary_cross_entropy_with_logits(x, y, weight=w, reduction=r),
                paddle.nn.BCEWithLogitsLoss(w, r)(x, y))
    add(f"bce_logits_{r}", [N + "binary_cross_entropy_with_logits", "paddle.nn.BCEWithLogitsLoss"], bce_logits)

    def bce_pos(r=r):
        x, y, w = rand(3, 4), bools(3, 4).astype("float32"), rand(4, low=0.5, high=2.0, grad=False)
        return (F.binary_cross_entropy_with_logits(x, y, reduction=r, pos_weight=w),
                paddle.nn.BCEWithLogitsLoss(w, r, w)(x, y))
    # with pos_weight real Paddle's gradient (pos_weight * sigmoid(x) - label) is not the loss's derivative; ours is
    add(f"bce_pos_weight_{r}", [N + "binary_cross_entropy_with_logits"], bce_pos, grad=False)

    def focal(r=r):
        x, y = rand(3, 4), bools(3, 4).astype("float32")
        return (F.sigmoid_focal_loss(x, y, reduction=r),
                F.sigmoid_focal_loss(x, y, paddle.to_tensor([3.0]), alpha=0.5, gamma=1.5, reduction=r))
    add(f"focal_{r}", [N + "sigmoid_focal_loss"], focal)

    def kl(r=r):
        x, y = F.log_softmax(rand(3, 4)), soft(3, 4)
        return F.kl_div(x, y, r), paddle.nn.KLDivLoss(r)(x, y), F.kl_div(x, y.astype("float64"), reduction=r)
    add(f"kl_div_{r}", [N + "kl_div", "paddle.nn.KLDivLoss"], kl, tol=2e-5)  # float64 from float32 inputs

    def margins(r=r):
        x, y, sign = rand(6), rand(6), bools(6).astype("float32") * 2 - 1
        return (F.margin_ranking_loss(x, y, sign, 0.3, r), paddle.nn.MarginRankingLoss(0.1, r)(x, y, sign),
                F.hinge_embedding_loss(x, sign, reduction=r), paddle.nn.HingeEmbeddingLoss(0.5, r)(x, sign),
                F.soft_margin_loss(x, sign, r), paddle.nn.SoftMarginLoss(r)(x, sign))
    add(f"margins_{r}", [N + "margin_ranking_loss", "paddle.nn.MarginRankingLoss", N + "hinge_embedding_loss",
                         "paddle.nn.HingeEmbeddingLoss", N + "soft_margin_loss", "paddle.nn.SoftMarginLoss"], margins)

    def embedding(r=r):
        a, b, c = rand(4, 5), rand(4, 5), rand(4, 5)
        sign = bools(4).astype("int64") * 2 - 1
        return (F.cosine_embedding_loss(a, b, sign, 0.1, r), paddle.nn.CosineEmbeddingLoss(0.2, r)(a, b, sign),
                F.triplet_margin_loss(a, b, c, reduction=r), paddle.nn.TripletMarginLoss(swap=True, reduction=r)(a, b, c),
                F.triplet_margin_with_distance_loss(a, b, c, swap=True, reduction=r),
                paddle.nn.TripletMarginWithDistanceLoss(margin=0.5, reduction=r)(a, b, c))
    add(f"embedding_{r}", [N + "cosine_embedding_loss", "paddle.nn.CosineEmbeddingLoss", N + "triplet_margin_loss",
                           "paddle.nn.TripletMarginLoss", N + "triplet_margin_with_distance_loss",
                           "paddle.nn.TripletMarginWithDistanceLoss"], embedding)

    def multi(r=r):
        x, y, w = rand(4, 5), ints(4, high=5), rand(5, low=0.5, high=1.0, grad=False)
        many = bools(4, 5).astype("float32")
        return (F.multi_margin_loss(x, y, 2, 0.8, w, r), paddle.nn.MultiMarginLoss(reduction=r)(x, y),
                F.multi_label_soft_margin_loss(x, many, w, r), paddle.nn.MultiLabelSoftMarginLoss(None, r)(x, many))
    add(f"multi_{r}", [N + "multi_margin_loss", "paddle.nn.MultiMarginLoss", N + "multi_label_soft_margin_loss",
                       "paddle.nn.MultiLabelSoftMarginLoss"], multi)

    def likelihood(r=r):
        x, y, v = rand(3, 4), prob(3, 4), prob(3, 4)
        y = y.detach()
        return (F.poisson_nll_loss(x, y, reduction=r), F.poisson_nll_loss(v, y * 3, False, True, reduction=r),
                paddle.nn.PoissonNLLLoss(reduction=r)(x, y), F.gaussian_nll_loss(x, y, v, True, reduction=r),
                paddle.nn.GaussianNLLLoss(reduction=r)(x, y, v))
    add(f"likelihood_{r}", [N + "poisson_nll_loss", "paddle.nn.PoissonNLLLoss", N + "gaussian_nll_loss",
                            "paddle.nn.GaussianNLLLoss"], likelihood)

    for d in ("float32", "float64"):
        def distances(r=r, d=d):
            x, y = rand(3, 4, dtype=d), rand(3, 4, dtype=d)
            return (F.mse_loss(x, y, r), paddle.nn.MSELoss(r)(x, y), F.l1_loss(x, y, r), paddle.nn.L1Loss(r)(x, y),
                    F.smooth_l1_loss(x, y, r, 0.75), paddle.nn.SmoothL1Loss(r)(x, y))
        add(f"distances_{r}_{d}", [N + "mse_loss", "paddle.nn.MSELoss", N + "l1_loss", "paddle.nn.L1Loss",
                                   N + "smooth_l1_loss", "paddle.nn.SmoothL1Loss"], distances)


@case(N + "kl_div")
def kl_div_batchmean():
    return F.kl_div(F.log_softmax(rand(3, 4)), soft(3, 4), "batchmean")


@case(N + "cross_entropy")
def cross_entropy_probabilities():
    return F.cross_entropy(soft(4, 3), ints(4, high=3), use_softmax=False)


@case(N + "cross_entropy")
def cross_entropy_all_ignored():
    return F.cross_entropy(rand(4, 3), paddle.full([4], -100, "int64"))


@case(N + "softmax_with_cross_entropy")
def softmax_with_cross_entropy():
    x = rand(4, 5)
    loss, p = F.softmax_with_cross_entropy(x, ints(4, 1, high=5), return_softmax=True)
    return loss, p.detach(), F.softmax_with_cross_entropy(x, soft(4, 5), soft_label=True), \
        F.softmax_with_cross_entropy(rand(2, 5, 3), ints(2, 1, 3, high=5), axis=1, ignore_index=2)


@case(N + "square_error_cost", N + "log_loss")
def cost_and_log():
    return F.square_error_cost(rand(3, 1), rand(3, 1)), F.log_loss(prob(4, 1), bools(4, 1).astype("float32"))


@case(N + "dice_loss")
def dice():
    return F.dice_loss(F.softmax(rand(3, 4, 2)), ints(3, 4, 1, high=2))


@case(N + "npair_loss")
def npair():
    return F.npair_loss(rand(4, 5), rand(4, 5), paddle.to_tensor([0.0, 1.0, 0.0, 2.0]))


def ctc_inputs():
    return rand(6, 2, 4), ints(2, 3, low=1, high=4, dtype="int32"), paddle.to_tensor([6, 5]), paddle.to_tensor([3, 2])


for r in REDUCTIONS:
    def ctc(r=r):
        args = ctc_inputs()
        return F.ctc_loss(*args, reduction=r), paddle.nn.CTCLoss(reduction=r)(*args)
    add(f"ctc_{r}", [N + "ctc_loss", "paddle.nn.CTCLoss"], ctc, tol=1e-4)  # sums of logarithms over paths


@case(N + "hsigmoid_loss")
def hsigmoid():
    return F.hsigmoid_loss(rand(4, 3), ints(4, 1, high=6), 6, rand(5, 3), rand(5, 1))


@case("paddle.nn.HSigmoidLoss")
def hsigmoid_layer():
    layer = paddle.nn.HSigmoidLoss(3, 6)
    return [(k, list(v.shape)) for k, v in layer.state_dict().items()]


@case(N + "binary_cross_entropy", "paddle.nn.BCELoss", grad=False)
def bce_of_no_probabilities():
    x = paddle.to_tensor([[0.5, 1.0], [0.0, 0.25]])
    return (F.binary_cross_entropy(x, x), *(raised(lambda v=v: F.binary_cross_entropy(x + v, x))
                                            for v in (0.5, -0.25, float("nan"))))
