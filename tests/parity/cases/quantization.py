"""paddle.quantization and paddle.nn.quant: quantizers in training and evaluation, observers, conversion, straight-through
gradients."""
import paddle
from paddle import nn
from paddle.nn.quant import Stub, quant_layers
from paddle.quantization import (PTQ, QAT, AbsmaxQuantizer, BaseObserver, BaseQuanter, HistQuantizer, ImperativeQuantAware,
                                 KLQuantizer, PerChannelAbsmaxQuantizer, PTQConfig, QuantConfig, quanter)
from paddle.quantization.observers import AbsmaxObserver, GroupWiseWeightObserver
from paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver

from parity import array, case, fill, rand, raised

Q, N = "paddle.quantization.", "paddle.nn.quant."


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.stub = nn.Conv2D(2, 4, 3, padding=1), nn.ReLU(), Stub()
        self.pool, self.out = nn.AvgPool2D(2), nn.Linear(36, 3)

    def forward(self, x):
        return self.out(paddle.flatten(self.pool(self.stub(self.relu(self.conv(x)))), 1))


def steps(net, count=3):
    optimizer = paddle.optimizer.SGD(0.05, parameters=[p for p in net.parameters() if not p.stop_gradient])
    losses = []
    for i in range(count):
        x = paddle.to_tensor(array(4, 2, 6, 6).astype("float32"))
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.detach())
    return losses


def kinds(net):
    return [(name, type(layer).__name__) for name, layer in net.named_sublayers()]


@case(N + "quant_layers.FakeQuantMovingAverageAbsMax", N + "quant_layers.MovingAverageAbsMaxScale", N + "QuantStub")
def averages():
    out = []
    for layer in (quant_layers.FakeQuantMovingAverageAbsMax(moving_rate=0.8), quant_layers.MovingAverageAbsMaxScale()):
        for _ in range(3):
            out.append(layer(rand(3, 5)))
        layer.eval()
        out += [layer(rand(3, 5)), *(p.detach() for p in (layer._scale, layer._state, layer._accum))]
    return out


@case(N + "quant_layers.FakeQuantAbsMax", N + "quant_layers.FakeQuantChannelWiseAbsMax")
def magnitudes():
    whole = quant_layers.FakeQuantAbsMax(quant_bits=6, quant_on_weight=True)
    rows = quant_layers.FakeQuantChannelWiseAbsMax(channel_num=4, quant_axis=0, quant_on_weight=True)
    columns = quant_layers.FakeQuantChannelWiseAbsMax(channel_num=5, quant_axis=1, quant_on_weight=True)
    out = [layer(rand(4, 5)) for layer in (whole, rows, columns, quant_layers.FakeQuantAbsMax())]
    return out, [layer._scale.detach() for layer in (whole, rows, columns)]


# tol of networks: a sum that falls on a rounding edge goes to the one or the other side, by its last bit
@case(Q + "QAT", Q + "QAT.quantize", Q + "QAT.convert", Q + "QuantConfig", Q + "quanters.FakeQuanterWithAbsMaxObserver", N + "Stub",
      N + "qat.QuantedConv2D", N + "qat.QuantedLinear", grad=False, tol=2e-3)
def aware():
    factory = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    qat = QAT(QuantConfig(activation=factory, weight=factory))
    net = qat.quantize(fill(Net()))
    losses = steps(net)
    net.eval()
    x = paddle.to_tensor(array(4, 2, 6, 6).astype("float32"))
    simulated = net(x)
    converted = qat.convert(net)
    return losses, kinds(net), simulated.detach(), kinds(converted), converted(x).detach(), str(factory)


@case(Q + "PTQ", Q + "PTQ.quantize", Q + "PTQ.convert", Q + "observers.AbsmaxObserver", grad=False, tol=2e-3)
def after_training():
    observer = AbsmaxObserver()
    config = QuantConfig(activation=None, weight=None)
    config.add_type_config(nn.Linear, activation=observer, weight=observer)
    net = fill(Net())
    net.eval()
    ptq = PTQ(config)
    observed = ptq.quantize(net)
    x = paddle.to_tensor(array(4, 2, 6, 6).astype("float32"))
    observed(x)
    whole = ptq.convert(observed, remain_weight=True)
    converted = ptq.convert(observed)
    return kinds(observed), kinds(converted), converted(x).detach(), whole(x).detach(), converted.out.weight.detach(), \
        raised(lambda: PTQ(config).quantize(Net().train() or Net()))


@case(Q + "QuantConfig.add_layer_config", Q + "QuantConfig.add_name_config", Q + "QuantConfig.add_type_config",
      Q + "QuantConfig.add_qat_layer_mapping", Q + "QuantConfig.add_customized_leaf", grad=False)
def configured():
    factory = FakeQuanterWithAbsMaxObserver()
    found = []
    for add in (lambda c, n: c.add_layer_config([n.out], activation=factory, weight=factory),
                lambda c, n: c.add_name_config(n.conv.full_name(), activation=factory, weight=None),
                lambda c, n: c.add_type_config([nn.Conv2D, nn.ReLU], activation=None, weight=factory),
                lambda c, n: (c.add_type_config(nn.Linear, activation=factory), c.add_customized_leaf(nn.Sequential))):
        net = Net()
        config = QuantConfig(activation=None, weight=None)
        add(config, net)
        found.append(kinds(QAT(config).quantize(net)))
    return found, raised(lambda: QuantConfig(None, None).add_qat_layer_mapping("Conv2D", Net))


@quanter("Doubling")
class DoublingLayer(BaseQuanter):
    def __init__(self, layer, times=2.0):
        super().__init__()
        self._times = times

    def forward(self, input):
        return input * self._times

    def scales(self):
        return None

    def zero_points(self):
        return None

    def quant_axis(self):
        return -1

    def bit_length(self):
        return 8


@case(Q + "quanter", Q + "BaseQuanter", Q + "BaseObserver", Q + "observers.GroupWiseWeightObserver", grad=False)
def own():
    factory = Doubling(times=3.0)  # noqa: F821 - the decorator makes it
    net = QAT(QuantConfig(activation=factory, weight=None)).quantize(fill(Net()))
    group = GroupWiseWeightObserver()._instance(None)
    group(paddle.to_tensor(array(128, 3).astype("float32")))
    return net(paddle.to_tensor(array(2, 2, 6, 6).astype("float32"))).detach(), str(factory), raised(BaseQuanter), \
        raised(BaseObserver), group.scales(), group.zero_points()


@case(Q + "ImperativeQuantAware", Q + "ImperativeQuantAware.quantize", grad=False, tol=2e-3)
def in_place():
    out = []
    for weights in ("abs_max", "channel_wise_abs_max"):
        net = fill(Net())
        net.conv.skip_quant = weights == "abs_max"
        ImperativeQuantAware(weight_quantize_type=weights).quantize(net)
        out += [steps(net), kinds(net)]
        net.eval()
        out += [net(paddle.to_tensor(array(2, 2, 6, 6).astype("float32"))).detach(), sorted(net.state_dict())]
    return out, raised(lambda: ImperativeQuantAware(weight_quantize_type="moving_average_abs_max")), \
        raised(lambda: ImperativeQuantAware(quantizable_layer_type=["Dropout"]))


@case(Q + "AbsmaxQuantizer", Q + "PerChannelAbsmaxQuantizer", Q + "HistQuantizer", Q + "KLQuantizer", Q + "PTQConfig", grad=False)
def thresholds():
    out = []
    for made in (AbsmaxQuantizer(), HistQuantizer(bins=64, upsample_bins=16, hist_percent=0.98),
                 KLQuantizer(bins=512, upsample_bins=16)):
        for scale in (1.0, 0.5, 1.7):
            made.sample_data(None, (paddle.to_tensor(array(40, 50).astype("float32") ** 3 * scale),))
        made.cal_thresholds()
        out.append([float(t) for t in made.thresholds])
    for layer in (fill(nn.Linear(3, 4)), fill(nn.Conv2D(2, 3, 2))):
        made = PerChannelAbsmaxQuantizer()
        made.sample_data(layer, (layer.weight,))
        made.cal_thresholds()
        out.append(made.thresholds)
    return out, raised(lambda: PTQConfig(PerChannelAbsmaxQuantizer(), AbsmaxQuantizer()))


@case(N + "lsq.FakeQuantActLSQPlus", N + "lsq.FakeQuantWeightLSQPlus")
def learned_steps():
    """Start, average, and learning. Paddle's own weights with one step fail: its scale has no dims, the parameter one."""
    from paddle.nn.quant.lsq import FakeQuantActLSQPlus, FakeQuantWeightLSQPlus
    out = []
    for layer, shape in ((FakeQuantActLSQPlus(8, symmetric=True, batch_init=2), (4, 5)),
                         (FakeQuantActLSQPlus(4, batch_init=3), (4, 5)),
                         (FakeQuantActLSQPlus(3, all_postive=True, batch_init=2), (4, 5)),
                         (FakeQuantWeightLSQPlus(4, per_channel=True, channel_num=4, batch_init=3), (4, 2, 3)),
                         (FakeQuantWeightLSQPlus(4, per_channel=True, channel_num=5, quant_linear=True, batch_init=2), (6, 5))):
        optimizer = paddle.optimizer.SGD(0.01, parameters=layer.parameters())
        for _ in range(4):
            x = paddle.to_tensor(array(*shape).astype("float32"), stop_gradient=False)
            y = layer(x)
            (y * y).sum().backward()
            out += [y.detach(), x.grad, *(p.grad for p in layer.parameters())]
            optimizer.step()
            optimizer.clear_grad()
        out += [p.detach() for p in layer.parameters()]
    return out


@case(Q + "ImperativeQuantAware")
def training_learned_steps():
    net = fill(Net())
    quantizer = ImperativeQuantAware(["Conv2D"], weight_quantize_type="channel_wise_lsq_weight", activation_quantize_type="lsq_act",
                                     weight_bits=6, activation_bits=6)
    quantizer.quantize(net)
    return steps(net, 2), kinds(net), sorted(net.state_dict())
