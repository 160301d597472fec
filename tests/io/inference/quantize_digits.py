"""Quantizes small nets that know digits, and predicts with such models, on whichever `paddle` there is:
quantize_digits.py train|make|predict|int8 FOLDER DIGITS. train writes the nets' weights (nets.npz); make quantizes these nets and
writes models, models.json (their names) and what they answer (make.npz); predict answers with models that the other side wrote
(predict.npz). Both run them without passes; int8 runs them on integers (int8.npz), which Proa alone does."""
import json
import os
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")
import numpy as np
import paddle
from paddle import inference, nn
from paddle.nn import functional as F
from paddle.static import InputSpec

CALIBRATION = 64
BINS = 512  # of histograms for KL: Paddle takes time by their square, 50 s with the 1024 and 2048 that it has by default


class LeNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2D(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2), nn.Conv2D(6, 16, 3, padding=1),
                                  nn.ReLU(), nn.MaxPool2D(2))
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        return self.head(paddle.flatten(self.body(x), 1))


def convolution(inside, outside, size, groups=1, act=nn.ReLU):
    layers = [nn.Conv2D(inside, outside, size, padding=size // 2, groups=groups, bias_attr=False), nn.BatchNorm2D(outside)]
    return nn.Sequential(*layers, *([act()] if act else []))


class MobileNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = convolution(1, 12, 3, act=nn.ReLU6)
        self.wide, self.deep, self.back = (convolution(12, 24, 1, act=nn.ReLU6), convolution(24, 24, 3, 24, nn.ReLU6),
                                           convolution(24, 12, 1, act=None))
        self.last, self.pool, self.out = convolution(12, 32, 3, act=nn.ReLU6), nn.AdaptiveAvgPool2D(2), nn.Linear(128, 10)

    def forward(self, x):
        x = self.first(x)
        x = x + self.back(self.deep(self.wide(x)))
        return self.out(paddle.flatten(self.pool(self.last(x)), 1))


class ResNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = convolution(1, 12, 3)
        self.one, self.two = convolution(12, 12, 3), convolution(12, 12, 3, act=None)
        self.three, self.four = convolution(12, 12, 3), convolution(12, 12, 3, act=None)
        self.relu, self.pool, self.out = nn.ReLU(), nn.AdaptiveAvgPool2D(4), nn.Linear(192, 10)

    def forward(self, x):
        x = self.first(x)
        x = self.relu(x + self.two(self.one(x)))
        x = self.relu(x + self.four(self.three(x)))
        return self.out(paddle.flatten(self.pool(x), 1))


class Bert(nn.Layer):
    """Rows of pixels are words."""

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Linear(8, 32), self.create_parameter([8, 32])
        self.query, self.key, self.value, self.join = (nn.Linear(32, 32) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.wide, self.back, self.out = nn.Linear(32, 64), nn.Linear(64, 32), nn.Linear(256, 10)

    def forward(self, x):
        x = self.embed(paddle.reshape(x, [-1, 8, 8])) + self.place
        split = lambda t: paddle.transpose(paddle.reshape(t, [-1, 8, 2, 16]), [0, 2, 1, 3])
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        attention = F.softmax(paddle.matmul(q, k, transpose_y=True) * 0.25)
        y = paddle.reshape(paddle.transpose(paddle.matmul(attention, v), [0, 2, 1, 3]), [-1, 8, 32])
        x = self.norm1(x + self.join(y))
        x = self.norm2(x + self.back(F.gelu(self.wide(x))))
        return self.out(paddle.flatten(x, 1))


NETS = {"lenet": LeNet, "mobilenet": MobileNet, "resnet": ResNet, "bert": Bert}


def digits(folder):
    tables = [np.loadtxt(os.path.join(folder, f"digits_{part}.csv"), delimiter=",", skiprows=1) for part in ("train", "test")]
    images = [(t[:, :64].reshape(-1, 1, 8, 8) / 16).astype("float32") for t in tables]
    return images[0], tables[0][:, 64].astype("int64"), np.concatenate(images), np.concatenate([t[:, 64] for t in tables])


def train(net, x, y, epochs, rate):
    optimizer = paddle.optimizer.Adam(rate, parameters=[p for p in net.parameters() if not p.stop_gradient])
    random = np.random.RandomState(7)
    net.train()
    for _ in range(epochs):
        order = random.permutation(len(x))
        for i in range(0, len(x), 64):
            part = order[i:i + 64]
            F.cross_entropy(net(paddle.to_tensor(x[part])), paddle.to_tensor(y[part])).backward()
            optimizer.step()
            optimizer.clear_grad()
    net.eval()
    return net


SPEC = [InputSpec([None, 1, 8, 8], "float32", "x")]


def trained(kind, state, x, y, **options):
    """ImperativeQuantAware from the trained net on."""
    from paddle.quantization import ImperativeQuantAware
    net = NETS[kind]()
    net.set_state_dict(state)
    quantizer = ImperativeQuantAware(activation_quantize_type="moving_average_abs_max", **options)
    quantizer.quantize(net)
    train(net, x, y, 2, 0.001)
    return lambda prefix: quantizer.save_quantized_model(net, prefix, input_spec=SPEC)


def configured(kind, state, x, y):
    """The quanters of paddle.quantization."""
    from paddle.quantization import QAT, QuantConfig
    from paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver
    net = NETS[kind]()
    net.set_state_dict(state)
    net.train()
    quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    config = QuantConfig(activation=None, weight=None)
    config.add_type_config([nn.Conv2D, nn.Linear], activation=quanter, weight=quanter)
    qat = QAT(config)
    net = train(qat.quantize(net), x, y, 2, 0.001)
    return lambda prefix: paddle.jit.save(qat.convert(net), prefix, input_spec=SPEC)


def observed(kind, state, x, quantizer):
    """ImperativePTQ."""
    from paddle.quantization import ImperativePTQ, PerChannelAbsmaxQuantizer, PTQConfig
    net = NETS[kind]()
    net.set_state_dict(state)
    net.eval()
    ptq = ImperativePTQ(PTQConfig(quantizer, PerChannelAbsmaxQuantizer()))
    net = ptq.quantize(net)
    for i in range(0, 256, CALIBRATION):
        net(paddle.to_tensor(x[i:i + CALIBRATION]))
    return lambda prefix: ptq.save_quantized_model(net, prefix, input_spec=SPEC)


class Samples(paddle.io.Dataset):
    def __init__(self, x):
        self.x = x

    def __getitem__(self, i):
        return self.x[i]

    def __len__(self):
        return len(self.x)


def calibrated(folder, plain, name, x, **options):
    """PostTrainingQuantization of the saved net."""
    from paddle.static.quantization import PostTrainingQuantization
    paddle.enable_static()
    try:
        place = paddle.CPUPlace()
        with paddle.static.program_guard(paddle.static.Program()):
            feed = paddle.static.data("x", [None, 1, 8, 8], "float32")
        loader = paddle.io.DataLoader(Samples(x[:256]), feed_list=[feed], places=place, batch_size=CALIBRATION, return_list=False)
        quantizer = PostTrainingQuantization(
            executor=paddle.static.Executor(place), scope=paddle.static.global_scope(), model_dir=folder,
            model_filename=plain + ".pdmodel", params_filename=plain + ".pdiparams", data_loader=loader,
            batch_size=CALIBRATION, batch_nums=4,
            quantizable_op_type=["conv2d", "depthwise_conv2d", "mul", "matmul_v2", "matmul"], **options)
        if options["algo"] == "KL":
            quantizer._histogram_bins = BINS  # Proa takes 2048 all the same
        quantizer.quantize()
        quantizer.save_quantized_model(os.path.join(folder, name), model_filename="model.pdmodel",
                                       params_filename="model.pdiparams")
    finally:
        paddle.disable_static()


def weights_alone(folder, plain, name):
    from paddle.static.quantization import WeightQuantization
    paddle.enable_static()
    try:
        WeightQuantization(folder, plain + ".pdmodel", plain + ".pdiparams").quantize_weight_to_int(
            os.path.join(folder, name), save_model_filename="model.pdmodel", save_params_filename="model.pdiparams",
            quantizable_op_type=["conv2d"], generate_test_model=True)
    finally:
        paddle.disable_static()


def make(folder, kind, state, x, y):
    """Names of the models of one net, beside that of the net in float."""
    from paddle.quantization import HistQuantizer, KLQuantizer
    paddle.seed(11)
    net, plain = NETS[kind](), kind + "_float"
    net.set_state_dict(state)
    net.eval()
    paddle.jit.save(net, os.path.join(folder, plain), input_spec=SPEC)
    made = [plain]
    for name, quantized in (
            ("qat_whole_old", lambda: trained(kind, state, x, y, weight_quantize_type="abs_max")),
            ("qat_channels_onnx", lambda: trained(kind, state, x, y, weight_quantize_type="channel_wise_abs_max", onnx_format=True)),
            ("qat_config", lambda: configured(kind, state, x, y)),
            ("ptq_layers", lambda: observed(kind, state, x, KLQuantizer(bins=BINS) if kind == "lenet" else HistQuantizer()))):
        quantized()(os.path.join(folder, f"{kind}_{name}"))
        made.append(f"{kind}_{name}")
    # the divergence takes Paddle long: for one net
    more = {"lenet": [("KL", {}), ("mse", {"onnx_format": True}), ("emd", {"onnx_format": True})]}.get(kind, [])
    for algo, options in [("avg", {}), ("hist", {"onnx_format": True}), ("abs_max", {
            "activation_quantize_type": "moving_average_abs_max", "weight_quantize_type": "abs_max"}), *more]:
        name = f"{kind}_static_{algo}"
        calibrated(folder, plain, name, x, algo=algo, **options)
        made.append(name + "/model")
    if kind != "bert":
        weights_alone(folder, plain, kind + "_weights")
        made.append(kind + "_weights/test_model/model")
    return made


def runs_on_integers(prefix, predictor):
    """A quantized model's products are all INT8 ops; those of activations, where the tool quantizes them."""
    ops = predictor._core.ops()
    products = [op for op in ops if op.startswith(("conv2d", "linear", *["matmul"] * ("_static_" in prefix)))]
    plain = prefix.endswith("_float") or "_weights" in prefix
    assert plain or all(op in ("conv2d_int8", "linear_int8", "matmul_int8") for op in products), (prefix, ops)


def predict(prefix, x, int8=False):
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.switch_ir_optim(int8)
    if int8:
        config.enable_mkldnn()
        config.enable_mkldnn_int8()
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    if int8:
        runs_on_integers(prefix, predictor)
    predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(x)
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


def train_nets(folder, x, y):
    paddle.seed(11)
    states = {kind: train(net(), x, y, 12, 0.005).state_dict() for kind, net in NETS.items()}
    np.savez(os.path.join(folder, "nets.npz"), **{f"{kind}/{name}": np.asarray(value) for kind, state in states.items()
                                                  for name, value in state.items()})


def main(what, folder, data):
    x, y, images, labels = digits(data)
    if what == "train":
        return train_nets(folder, x, y)
    listed = pathlib.Path(folder, "models.json")
    if what == "make":
        nets = np.load(os.path.join(folder, "nets.npz"))
        states = {kind: {name.partition("/")[2]: nets[name] for name in nets.files if name.startswith(kind + "/")} for kind in NETS}
        listed.write_text(json.dumps([name for kind in NETS for name in make(folder, kind, states[kind], x, y)]))
    answers = {name.replace("/", ":"): predict(os.path.join(folder, name), images, what == "int8")
               for name in json.loads(listed.read_text())}
    np.savez(os.path.join(folder, what + ".npz"), labels=labels, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
