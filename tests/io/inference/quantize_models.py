"""Writes quantized models with real Paddle, and what its predictor makes of them without passes: quantize_models.py FOLDER.
Nets are trained for a few steps with quantizers in place, or calibrated; both file layouts."""
import os
import sys

import numpy as np
import paddle
from paddle import inference, nn
from paddle.quantization import ImperativeQuantAware
from paddle.static import InputSpec


class ConvNet(nn.Layer):
    """Convolutions, one of them depthwise, normalization, pooling, a residual and a linear layer."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2D(1, 8, 3, padding=1), nn.BatchNorm2D(8)
        self.deep, self.point = nn.Conv2D(8, 8, 3, padding=1, groups=8), nn.Conv2D(8, 8, 1)
        self.pool, self.out = nn.AdaptiveAvgPool2D(4), nn.Linear(128, 10)
        self.relu = nn.ReLU()

    def forward(self, x):
        y = self.relu(self.norm(self.first(x)))
        y = self.relu(self.point(self.deep(y)) + y)
        return self.out(paddle.flatten(self.pool(y), 1))


class Mlp(nn.Layer):
    """Linear layers alone."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(144, 32), nn.GELU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 10))

    def forward(self, x):
        return self.layers(paddle.flatten(x, 1))


def batches(n, seed):
    random = np.random.RandomState(seed)
    for _ in range(n):
        yield paddle.to_tensor(random.randn(8, 1, 12, 12).astype("float32")), \
            paddle.to_tensor(random.randint(0, 10, [8]).astype("int64"))


def train(net):
    optimizer = paddle.optimizer.SGD(0.01, parameters=net.parameters())
    net.train()
    for x, label in batches(4, 0):
        nn.functional.cross_entropy(net(x), label).backward()
        optimizer.step()
        optimizer.clear_grad()
    net.eval()


def trained(folder, name, make, **options):
    paddle.seed(5)
    net = make()
    quantizer = ImperativeQuantAware(activation_quantize_type="moving_average_abs_max", **options)
    quantizer.quantize(net)
    train(net)
    quantizer.save_quantized_model(net, os.path.join(folder, name),
                                   input_spec=[InputSpec([None, 1, 12, 12], "float32", "x")])
    return name


class Samples(paddle.io.Dataset):
    def __getitem__(self, i):
        return np.random.RandomState(i).randn(1, 12, 12).astype("float32")

    def __len__(self):
        return 16


def calibrated(folder, name, make, **options):
    from paddle.static.quantization import PostTrainingQuantization
    paddle.seed(5)
    net = make()
    train(net)
    plain = os.path.join(folder, name + "_float")
    paddle.jit.save(net, plain, input_spec=[InputSpec([None, 1, 12, 12], "float32", "x")])
    paddle.enable_static()
    try:
        place = paddle.CPUPlace()
        executor, scope = paddle.static.Executor(place), paddle.static.global_scope()
        feed = paddle.static.data("x", [None, 1, 12, 12], "float32")
        loader = paddle.io.DataLoader(Samples(), feed_list=[feed], places=place, batch_size=4, return_list=False)
        quantizer = PostTrainingQuantization(
            executor=executor, scope=scope, model_dir=folder, model_filename=name + "_float.pdmodel",
            params_filename=name + "_float.pdiparams", data_loader=loader, batch_size=4, batch_nums=4,
            quantizable_op_type=["conv2d", "depthwise_conv2d", "mul", "matmul_v2", "matmul"], **options)
        quantizer.quantize()
        quantizer.save_quantized_model(os.path.join(folder, name), model_filename="model.pdmodel",
                                       params_filename="model.pdiparams")
    finally:
        paddle.disable_static()
    return name + "/model"


def predict(prefix, x):
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.switch_ir_optim(False)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(x)
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


def main(folder):
    written = []
    for net, make in (("conv", ConvNet), ("mlp", Mlp)):
        for weights in ("abs_max", "channel_wise_abs_max"):
            for onnx in (False, True):
                name = f"{net}_qat_{weights}_{'onnx' if onnx else 'old'}"
                written.append(trained(folder, name, make, weight_quantize_type=weights, onnx_format=onnx))
        for algo, weights, acts, onnx in (("KL", "channel_wise_abs_max", "range_abs_max", False),
                                          ("abs_max", "abs_max", "moving_average_abs_max", False),
                                          ("hist", "channel_wise_abs_max", "range_abs_max", True),
                                          ("avg", "abs_max", "range_abs_max", True)):
            name = f"{net}_ptq_{algo}_{'onnx' if onnx else 'old'}"
            try:
                written.append(calibrated(folder, name, make, algo=algo, weight_quantize_type=weights,
                                          activation_quantize_type=acts, onnx_format=onnx))
            except Exception as error:
                print("failed", name, repr(error)[:300], file=sys.stderr)
    x = np.random.RandomState(9).randn(6, 1, 12, 12).astype("float32")
    results = {name: predict(os.path.join(folder, name), x) for name in written}
    np.savez(os.path.join(folder, "paddle.npz"), x=x, **{n.replace("/", ":"): y for n, y in results.items()})


if __name__ == "__main__":
    main(sys.argv[1])
