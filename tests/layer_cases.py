"""Every layer of paddle.nn with arguments and inputs: name → (how to make it, one maker for each input)."""
import numpy as np

import proa as paddle

nn = paddle.nn


def f(*shape):
    return lambda rng: rng.standard_normal(shape).astype("float32")


def between(low, high, *shape):
    return lambda rng: rng.uniform(low, high, shape).astype("float32")


def below(n, *shape, dtype="int64"):
    return lambda rng: rng.randint(0, n, shape).astype(dtype)


def signs(*shape):
    return lambda rng: rng.choice([-1.0, 1.0], shape).astype("float32")


def value(v, dtype):
    return lambda rng: np.array(v, dtype)


def windows(size):
    """Numbers of places that max pooling of windows of `size` gives along the last dims, which it halves."""
    def make(rng):
        out = [4] * size
        at = np.stack(np.meshgrid(*[2 * np.arange(n) for n in out], indexing="ij"), 0)
        flat = np.ravel_multi_index([*at], [2 * n for n in out])
        return np.broadcast_to(flat, (2, 3, *out)).astype("int32").copy()
    return make


class Nested(nn.Layer):
    """LayerList, LayerDict, ParameterList and a Layer of one's own."""

    def __init__(self):
        super().__init__()
        self.many = nn.LayerList([nn.Linear(4, 4) for _ in range(2)])
        self.named = nn.LayerDict({"first": nn.Linear(4, 4), "then": nn.Tanh()})
        self.scales = nn.ParameterList([paddle.create_parameter([4], "float32") for _ in range(2)])

    def forward(self, x):
        for layer, scale in zip(self.many, self.scales):
            x = layer(x) * scale
        for key in self.named:
            x = self.named[key](x)
        return x


class Doubling(nn.RNNCellBase):
    """A cell of one's own."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    @property
    def state_shape(self):
        return (4,)

    def forward(self, x, states=None):
        states = self.get_initial_states(x, self.state_shape) if states is None else states
        h = paddle.tanh(self.linear(x) + 2 * states)
        return h, h


IMAGE, LINE, CUBE = f(2, 3, 8, 8), f(2, 3, 8), f(2, 3, 8, 8, 8)
PAIR = [f(4, 5), f(4, 5)]
LAYERS = {}


def add(name, make, *inputs):
    LAYERS[name] = make, list(inputs)


for one in ("CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LeakyReLU",
            "LogSigmoid", "LogSoftmax", "Mish", "ReLU", "ReLU6", "RReLU", "SELU", "Sigmoid", "Silu", "Softmax", "Softplus",
            "Softshrink", "Softsign", "Swish", "Tanh", "Tanhshrink", "ThresholdedReLU"):
    add(one, getattr(nn, one), f(3, 40))
add("GELU approximate", lambda: nn.GELU(True), f(3, 40))
add("PReLU", nn.PReLU, f(3, 40))
add("PReLU by channel", lambda: nn.PReLU(3), IMAGE)
add("GLU", nn.GLU, f(3, 8))
add("Maxout", lambda: nn.Maxout(2), f(2, 4, 5, 5))
add("Softmax2D", nn.Softmax2D, IMAGE)
for dims, x in ((1, LINE), (2, IMAGE), (3, CUBE)):
    def named(kind, dims=dims):
        return getattr(nn, f"{kind}{dims}D")
    add(f"AdaptiveAvgPool{dims}D", lambda n=named("AdaptiveAvgPool"): n(3), x)
    add(f"AdaptiveMaxPool{dims}D", lambda n=named("AdaptiveMaxPool"): n(4), x)
    add(f"AdaptiveMaxPool{dims}D mask", lambda n=named("AdaptiveMaxPool"): n(4, return_mask=True), x)
    add(f"AvgPool{dims}D", lambda n=named("AvgPool"): n(3, 2, 1), x)
    add(f"MaxPool{dims}D", lambda n=named("MaxPool"): n(3, 2, 1), x)
    add(f"MaxPool{dims}D mask", lambda n=named("MaxPool"): n(2, return_mask=True), x)
    add(f"MaxUnPool{dims}D", lambda n=named("MaxUnPool"): n(2), f(2, 3, *[4] * dims), windows(dims))
    add(f"BatchNorm{dims}D", lambda n=named("BatchNorm"): n(3), x)
    add(f"InstanceNorm{dims}D", lambda n=named("InstanceNorm"): n(3), x)
    add(f"Conv{dims}D", lambda n=named("Conv"): n(3, 4, 3, 2, 1), x)
    add(f"Conv{dims}D reflected", lambda n=named("Conv"): n(3, 3, 3, padding=1, groups=3, padding_mode="circular",
                                                               bias_attr=False), x)
    add(f"Conv{dims}DTranspose", lambda n=getattr(nn, f"Conv{dims}DTranspose"): n(3, 4, 3, 2, 1), x)
    add(f"Pad{dims}D", lambda n=named("Pad"), d=dims: n([1, 2] * d, "replicate"), x)
add("AlphaDropout", nn.AlphaDropout, f(3, 40))
add("Dropout", nn.Dropout, f(3, 40))
add("Dropout along an axis", lambda: nn.Dropout(0.3, axis=0, mode="downscale_in_infer"), f(8, 5))
add("Dropout2D", nn.Dropout2D, IMAGE)
add("Dropout3D", nn.Dropout3D, CUBE)
add("BatchNorm", lambda: nn.BatchNorm(3, act="relu"), IMAGE)
add("BatchNorm2D NHWC", lambda: nn.BatchNorm2D(8, data_format="NHWC"), IMAGE)
add("SyncBatchNorm", lambda: nn.SyncBatchNorm(3), IMAGE)
add("GroupNorm", lambda: nn.GroupNorm(2, 4), f(2, 4, 5, 5))
add("LayerNorm", lambda: nn.LayerNorm([8, 8]), IMAGE)
add("LocalResponseNorm", lambda: nn.LocalResponseNorm(3), IMAGE)
add("SpectralNorm", lambda: nn.SpectralNorm([4, 5], power_iters=2), f(4, 5))
add("Linear", lambda: nn.Linear(5, 3), f(2, 4, 5))
add("Bilinear", lambda: nn.Bilinear(4, 5, 3), f(2, 4), f(2, 5))
add("Embedding", lambda: nn.Embedding(10, 4, padding_idx=1), below(10, 3, 4))
add("Flatten", nn.Flatten, IMAGE)
add("Unflatten", lambda: nn.Unflatten(1, [2, -1]), f(2, 6, 3))
add("Fold", lambda: nn.Fold(5, 2), f(2, 12, 16))
add("Unfold", lambda: nn.Unfold(3, paddings=1), IMAGE)
add("ChannelShuffle", lambda: nn.ChannelShuffle(3), f(2, 6, 3, 3))
add("PixelShuffle", lambda: nn.PixelShuffle(2), f(2, 8, 3, 3))
add("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), f(2, 3, 4, 4))
add("ZeroPad2D", lambda: nn.ZeroPad2D([1, 0, 2, 1]), IMAGE)
add("Upsample", lambda: nn.Upsample(scale_factor=2, mode="bicubic"), IMAGE)
add("Upsample to a size", lambda: nn.Upsample([5, 11], mode="bilinear", align_corners=True), IMAGE)
add("UpsamplingBilinear2D", lambda: nn.UpsamplingBilinear2D([12, 10]), IMAGE)
add("UpsamplingNearest2D", lambda: nn.UpsamplingNearest2D(scale_factor=2), IMAGE)
add("CosineSimilarity", nn.CosineSimilarity, *PAIR)
add("PairwiseDistance", lambda: nn.PairwiseDistance(3.0), *PAIR)
for one in ("L1Loss", "MSELoss", "SmoothL1Loss"):
    add(one, getattr(nn, one), *PAIR)
add("BCELoss", nn.BCELoss, between(0.1, 0.9, 4, 3), between(0, 1, 4, 3))
add("BCEWithLogitsLoss", lambda: nn.BCEWithLogitsLoss(reduction="sum"), f(4, 3), between(0, 1, 4, 3))
add("CosineEmbeddingLoss", nn.CosineEmbeddingLoss, *PAIR, value([1, -1, 1, 1], "int64"))
add("CrossEntropyLoss", nn.CrossEntropyLoss, f(4, 6), below(6, 4))
add("CrossEntropyLoss soft", lambda: nn.CrossEntropyLoss(soft_label=True, label_smoothing=0.1, axis=1),
    f(2, 4, 3), between(0, 0.5, 2, 4, 3))
add("CTCLoss", nn.CTCLoss, f(6, 2, 5), value([[1, 2, 2], [3, 4, 0]], "int32"), value([6, 5], "int64"),
    value([3, 2], "int64"))
add("RNNTLoss", nn.RNNTLoss, f(2, 3, 4, 5), value([[1, 2, 3], [4, 1, 2]], "int32"), value([3, 2], "int32"),
    value([3, 2], "int32"))
add("GaussianNLLLoss", nn.GaussianNLLLoss, *PAIR, between(0.5, 2, 4, 5))
add("HingeEmbeddingLoss", nn.HingeEmbeddingLoss, f(4, 5), signs(4, 5))
add("HSigmoidLoss", lambda: nn.HSigmoidLoss(4, 6), f(5, 4), below(6, 5, 1))
add("KLDivLoss", nn.KLDivLoss, f(4, 5), between(0.1, 1, 4, 5))
add("MarginRankingLoss", lambda: nn.MarginRankingLoss(0.2), f(6), f(6), signs(6))
add("MultiLabelSoftMarginLoss", nn.MultiLabelSoftMarginLoss, f(4, 5), signs(4, 5))
add("MultiMarginLoss", lambda: nn.MultiMarginLoss(2), f(4, 5), below(5, 4))
add("NLLLoss", nn.NLLLoss, f(4, 6), below(6, 4))
add("PoissonNLLLoss", lambda: nn.PoissonNLLLoss(full=True), *[between(0.5, 3, 4, 5)] * 2)
add("SoftMarginLoss", nn.SoftMarginLoss, f(4, 5), signs(4, 5))
add("TripletMarginLoss", lambda: nn.TripletMarginLoss(swap=True), *PAIR, f(4, 5))
add("TripletMarginWithDistanceLoss", nn.TripletMarginWithDistanceLoss, *PAIR, f(4, 5))
for one in ("GRUCell", "LSTMCell", "SimpleRNNCell"):
    add(one, lambda n=getattr(nn, one): n(4, 3), f(2, 4))
add("GRU", lambda: nn.GRU(4, 3, 2), f(2, 5, 4))
add("LSTM", lambda: nn.LSTM(4, 3, direction="bidirect"), f(2, 5, 4))
add("LSTM with dropout, time first", lambda: nn.LSTM(4, 3, 2, time_major=True, dropout=0.4), f(5, 2, 4))
add("SimpleRNN", lambda: nn.SimpleRNN(4, 3, activation="relu"), f(2, 5, 4))
add("RNN", lambda: nn.RNN(nn.GRUCell(4, 3), is_reverse=True), f(2, 5, 4))
add("RNNCellBase", lambda: nn.RNN(Doubling()), f(2, 3, 4))
add("BiRNN", lambda: nn.BiRNN(nn.LSTMCell(4, 3), nn.LSTMCell(4, 3)), f(2, 5, 4))
add("MultiHeadAttention", lambda: nn.MultiHeadAttention(8, 2, dropout=0.2, need_weights=True), *[f(2, 5, 8)] * 3)
add("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(8, 2, 12, 0.2, "gelu", normalize_before=True),
    f(2, 5, 8), f(2, 2, 5, 5))
add("TransformerEncoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.1), 2, nn.LayerNorm(8)),
    f(2, 5, 8))
add("TransformerDecoderLayer", lambda: nn.TransformerDecoderLayer(8, 2, 12), f(2, 3, 8), f(2, 5, 8))
add("TransformerDecoder", lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 12, 0.0), 2), f(2, 3, 8),
    f(2, 5, 8))
add("Transformer", lambda: nn.Transformer(8, 2, 1, 1, 12), f(2, 3, 8), f(2, 5, 8))
add("Sequential", lambda: nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)),
    IMAGE)
for one in ("Layer", "LayerList", "LayerDict", "ParameterList"):
    add(one, Nested, f(3, 4))
for one in ("DeformConv2D",):
    add(one, lambda: paddle.vision.ops.DeformConv2D(4, 3, 3, padding=1), f(2, 4, 6, 6), between(-1, 1, 2, 18, 6, 6),
        between(0, 1, 2, 9, 6, 6))
