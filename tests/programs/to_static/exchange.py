"""Run by real Paddle and by Proa (as paddle): saves models with jit.save, loads the other side's, fine-tunes.

python exchange.py SIDE ACTION FOLDER MODEL…   SIDE: paddle | proa; ACTION: save | load | tune | eager
Prints one JSON object: model -> result.
"""
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
SIDE, ACTION, FOLDER = sys.argv[1:4]
if SIDE == "proa":
    import proa
    proa.install_as_paddle()

import numpy as np
import paddle
from paddle.static import InputSpec

nn, models = paddle.nn, paddle.vision.models


class Bert(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(12, 16)
        self.norm = nn.LayerNorm(16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.pooler = nn.Linear(16, 16)

    def forward(self, ids, mask):
        place = paddle.arange(ids.shape[1]).unsqueeze(0)
        x = self.norm(self.words(ids) + self.places(place))
        x = self.encoder(x, ((1 - mask) * -1e4).unsqueeze([1, 2]))
        return x, paddle.tanh(self.pooler(x[:, 0]))


class Gpt(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, normalize_before=True)
        self.decoder = nn.TransformerEncoder(layer, 2)

    def forward(self, ids):
        n = ids.shape[1]
        mask = paddle.triu(paddle.full([n, n], -1e9), 1)
        return paddle.matmul(self.decoder(self.words(ids), mask), self.words.weight, transpose_y=True)


class BiLstm(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 6, direction="bidirect")
        self.out = nn.Linear(12, 3)

    def forward(self, ids):
        y, (h, _) = self.lstm(self.words(ids))
        return self.out(y.max(axis=1)), h


class BreakingFor(nn.Layer):
    """An exported for with a break (PaddlePaddle/Paddle#40645), an if and a while."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = x
        for i in range(6):
            y = self.fc(y)
            if y.abs().sum() < 1.0:
                break
        if y.mean() > 0:
            z = y * 2
        else:
            z = y - 1
        while z.abs().sum() < 50:
            z = z * 2
        return z


class PlainControl(nn.Layer):
    """Control flow that real Paddle converts, too."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        if x.mean() > 0:
            y = x * 2
        else:
            y = x - 1
        y = self.fc(y)
        i = paddle.zeros([1], "int64")
        while i < 3:
            y = y * 2 + 1
            i = i + 1
        return y


class TwoLoops(nn.Layer):
    """Two loops whose bodies use one name for temporaries of other shapes and dtypes (as detectors' post-processing does)."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        n = paddle.shape(y)[0]
        total = y.sum()
        for i in range(n):
            part = y[i]
            total = total + part.max()
        for i in range(n):
            part = y[i:i + 1] > 0
            total = total + part.astype("float32").sum()
        return total


class Seq2Seq(nn.Layer):
    """Greedy decoding until every row has ended, or 8 words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.encoder, self.cell = nn.GRU(8, 8), nn.GRUCell(8, 8)
        self.out = nn.Linear(8, 12)

    def forward(self, ids):
        _, h = self.encoder(self.words(ids))
        h = h[0]
        word = paddle.zeros_like(ids[:, 0])
        score = paddle.zeros_like(h[:, 0])
        n = paddle.zeros([1], "int64")
        while n < 8 and score.min() > -12.0:
            y, h = self.cell(self.words(word), h)
            p = nn.functional.log_softmax(self.out(y))
            word = p.argmax(-1)
            score = score + p.max(-1)
            n = n + 1
        return word, score, n


class TwoWay(nn.Layer):
    """Frames forwards over what was kept of a pass backwards (as BasicVSR has it), cut at both ends."""

    def __init__(self):
        super().__init__()
        self.back, self.fore = nn.Linear(4, 4), nn.Linear(8, 4)

    def forward(self, x):
        n = x.shape[0]
        kept = []
        state = x[0] * 0
        for i in range(n - 1, -1, -1):
            state = paddle.tanh(self.back(state) + x[i])
            kept.append(state)
        kept = kept[::-1]
        state = x[0] * 0
        for i in range(n):
            state = paddle.tanh(self.fore(paddle.concat([state, kept[i]], -1)))
            kept[i] = state / (i + 1)
        y = paddle.stack(kept, axis=0)
        return y, y[1:n - 1], y[:n // 2, :1] * n ** 0.5


class GptStep(nn.Layer):
    """One step of generation: a word and the keys and values of those before it, in and out."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.norms = nn.LayerList([nn.LayerNorm(16) for _ in range(2)])
        self.attention = nn.LayerList([nn.MultiHeadAttention(16, 2) for _ in range(2)])

    def forward(self, word, keys, values):
        x, kept = self.words(word), []
        for i, (norm, attention) in enumerate(zip(self.norms, self.attention)):
            y = norm(x)
            y, cache = attention(y, y, y, None, nn.MultiHeadAttention.Cache(keys[:, i], values[:, i]))
            x = x + y
            kept.append(cache)
        return (paddle.matmul(x, self.words.weight, transpose_y=True), paddle.stack([one.k for one in kept], 1),
                paddle.stack([one.v for one in kept], 1))


class Sums(nn.Layer):
    """Sums of products with dims that the program does not know, and numbers set in a slice."""
    EQUATIONS = ["ibh,hnd->ibnd", "hnd,ibh->ibnd", "ibh,jbh->bij", "ibh,ibd->hd", "ii->i", "...h,h->...", "ibh->", "ibh,kbh,jkh"]

    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([4, 2, 5])

    def forward(self, x):
        square = paddle.matmul(x, x, transpose_y=True)
        square[:, :1] = 2.5
        whole = x.astype("int64")
        whole[:, 1:] = 2 ** 53 + 1
        pairs = [(x, self.weight), (self.weight, x), (x, x), (x, x), (square[0], ), (x, self.weight[:, 0, 0]), (x, ), (x, x, x)]
        made = [paddle.einsum(self.EQUATIONS[i], *pairs[i]) for i in range(8)]
        return *made, square, (whole - 2 ** 53).astype("float32")


def suppressed(boxes, scores, *settings):
    """multiclass_nms3, for which neither side's paddle.vision.ops has a name."""
    if SIDE == "proa":
        from proa import _core
        return _core.multiclass_nms(boxes, scores, None, *settings)
    if paddle.in_dynamic_mode():
        return paddle._C_ops.multiclass_nms3(boxes, scores, None, *settings)
    from paddle.base.layer_helper import LayerHelper
    helper = LayerHelper("multiclass_nms3")
    out, *numbers = (helper.create_variable_for_type_inference(dtype) for dtype in ("float32", "int32", "int32"))
    names = ("score_threshold", "nms_top_k", "keep_top_k", "nms_threshold", "normalized", "nms_eta", "background_label")
    helper.append_op(type="multiclass_nms3", inputs={"BBoxes": boxes, "Scores": scores}, attrs=dict(zip(names, settings)),
                     outputs={"Out": out, "Index": numbers[0], "NmsRoisNum": numbers[1]})
    return out, *numbers


class Yolo(nn.Layer):
    """Two feature maps, decoded and suppressed."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2D(3, 8, 3, 2, 1), nn.BatchNorm2D(8), nn.LeakyReLU(0.1))
        self.down = nn.Sequential(nn.Conv2D(8, 16, 3, 2, 1), nn.BatchNorm2D(16), nn.LeakyReLU(0.1))
        self.heads = nn.LayerList([nn.Conv2D(8, 16, 1), nn.Conv2D(16, 16, 1)])

    def forward(self, image, size):
        fine = self.body(image)
        found = [paddle.vision.ops.yolo_box(head(x), size, anchors, 3, 0.3, ratio) for head, x, anchors, ratio in zip(
            self.heads, (fine, self.down(fine)), ([6, 8, 12, 9], [20, 16, 28, 30]), (2, 4))]
        boxes = paddle.concat([one[0] for one in found], 1)
        scores = paddle.concat([one[1] for one in found], 1).transpose([0, 2, 1])
        return suppressed(boxes, scores, 0.15, 40, 10, 0.45, True, 1.0, -1)


class Ssd(nn.Layer):
    """Offsets from prior boxes, and the best that do not overlap."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2D(3, 8, 3, 4, 1), nn.ReLU())
        self.place, self.kind = nn.Conv2D(8, 4 * 3, 3, padding=1), nn.Conv2D(8, 3, 3, padding=1)

    def forward(self, image):
        x = self.body(image)
        prior, spread = paddle.vision.ops.prior_box(x, image, [8.0], [14.0], [2.0], clip=True)
        offsets = paddle.reshape(self.place(x).transpose([0, 2, 3, 1]), [-1, 4])
        boxes = paddle.vision.ops.box_coder(prior.reshape([-1, 4]), spread.reshape([-1, 4]), offsets.unsqueeze(0),
                                            "decode_center_size")[0]
        scores = paddle.nn.functional.sigmoid(self.kind(x)).transpose([0, 2, 3, 1]).reshape([-1])
        kept = paddle.vision.ops.nms(boxes, 0.4, scores)
        return paddle.gather(boxes, kept), paddle.gather(scores, kept)


class Masks(nn.Layer):
    """Maps with the place of each cell, in lengths that the run says, enlarged."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2D(5, 4, 3, padding=1)

    def forward(self, x):
        high, wide = x.shape[2], x.shape[3]
        across = paddle.linspace(-1, 1, wide).reshape([1, 1, 1, wide]).expand([x.shape[0], 1, high, wide])
        x = self.body(paddle.concat([x, across], 1))
        return nn.functional.interpolate(x, size=[high * 2, wide * 3], mode="bilinear", align_corners=False)


def floats(*dims):
    return np.random.RandomState(1).rand(*dims).astype("float32")


def ints(high, *dims):
    return np.random.RandomState(2).randint(0, high, dims).astype("int64")


IDS = InputSpec([None, None], "int64", "ids")
MODELS = {
    "lenet": (models.LeNet, [InputSpec([None, 1, 28, 28])], [floats(2, 1, 28, 28)]),
    "resnet50": (lambda: models.resnet50(num_classes=10), [InputSpec([None, 3, None, None], name="image")],
                 [floats(1, 3, 64, 64)]),
    "mobilenet_v2": (lambda: models.mobilenet_v2(num_classes=10, scale=0.5), [InputSpec([None, 3, 64, 64])],
                     [floats(2, 3, 64, 64)]),
    "mobilenet_v3": (lambda: models.mobilenet_v3_small(num_classes=10, scale=0.5), [InputSpec([None, 3, 64, 64])],
                     [floats(2, 3, 64, 64)]),
    "bert": (Bert, [IDS, InputSpec([None, None], "float32", "mask")], [ints(50, 2, 7), np.ones((2, 7), "float32")]),
    "gpt": (Gpt, [IDS], [ints(50, 2, 5)]),
    "sums": (Sums, [InputSpec([None, None, 4])], [floats(3, 3, 4)]),
    "bilstm": (BiLstm, [IDS], [ints(20, 2, 5)]),
    "two_way": (TwoWay, [InputSpec([None, 2, 4])], [floats(5, 2, 4)]),
    "breaking_for": (BreakingFor, [InputSpec([None, 4])], [floats(2, 4)]),
    "plain_control": (PlainControl, [InputSpec([None, 4])], [floats(2, 4)]),
    "two_loops": (TwoLoops, [InputSpec([None, 4])], [floats(3, 4)]),
    "gpt_step": (GptStep, [InputSpec([None, 1], "int64", "word"), InputSpec([None, 2, 2, None, 8], "float32", "keys"),
                           InputSpec([None, 2, 2, None, 8], "float32", "values")],
                 [ints(50, 2, 1), floats(2, 2, 2, 5, 8), floats(2, 2, 2, 5, 8)]),
    "yolo": (Yolo, [InputSpec([None, 3, 32, 48], "float32", "image"), InputSpec([None, 2], "int32", "size")],
             [floats(2, 3, 32, 48), np.array([[64, 96], [50, 70]], "int32")]),
    "ssd": (Ssd, [InputSpec([1, 3, 32, 48], "float32", "image")], [floats(1, 3, 32, 48)]),
    "masks": (Masks, [InputSpec([None, 4, None, None])], [floats(2, 4, 3, 5)]),
    "seq2seq": (Seq2Seq, [IDS], [ints(12, 2, 5)]),
}


def numbers(outs):
    outs = outs if isinstance(outs, (list, tuple)) else [outs]
    return [out.numpy() for out in outs]


def apart(path, got):
    """The largest difference from what the saving side computed, relative to its range."""
    kept = np.load(path + ".npz")
    kept = [kept[name] for name in kept.files]
    assert len(kept) == len(got), f"{len(kept)} outputs became {len(got)}"
    return max(float(np.abs(a.astype("float64") - b).max() / max(1e-9, np.abs(a).max())) for a, b in zip(kept, got))


def save(path, make, specs, args):
    paddle.seed(7)
    net = make()
    net.eval()
    np.savez(path + ".npz", *numbers(net(*map(paddle.to_tensor, args))))
    np.savez(path + "_in.npz", *args)
    net.train()
    if SIDE == "paddle":  # its default front end does not save
        paddle.jit.save(paddle.jit.to_static(net, input_spec=specs, full_graph=True), path)
    else:
        paddle.jit.save(net, path, input_spec=specs)
    return True


def load(path, make, specs, args):
    found = {"jit": apart(path, numbers(paddle.jit.load(path)(*map(paddle.to_tensor, args))))}
    if SIDE == "paddle":
        config = paddle.inference.Config(path + ".pdmodel", path + ".pdiparams")
        config.disable_glog_info()
        predictor = paddle.inference.create_predictor(config)
        for name, value in zip(predictor.get_input_names(), args):
            predictor.get_input_handle(name).copy_from_cpu(value)
        predictor.run()
        found["predictor"] = apart(path, [predictor.get_output_handle(name).copy_to_cpu()
                                          for name in predictor.get_output_names()])
    return found


def tune(path, make, specs, args):
    """Ten steps' losses of the loaded program (eager: of the network itself)."""
    if ACTION == "eager":
        paddle.seed(7)
        net = make()
    else:
        net = paddle.jit.load(path)
    net.train()
    optimizer = paddle.optimizer.Momentum(0.001, parameters=net.parameters())
    losses = []
    for _ in range(10):
        out = net(*map(paddle.to_tensor, args))
        out = out[0] if isinstance(out, (list, tuple)) else out
        loss = (out * out).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses


def main():
    os.makedirs(FOLDER, exist_ok=True)
    results = {}
    for name in sys.argv[4:]:
        action = {"save": save, "load": load, "tune": tune, "eager": tune}[ACTION]
        try:
            results[name] = action(os.path.join(FOLDER, name), *MODELS[name])
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(results))


main()
