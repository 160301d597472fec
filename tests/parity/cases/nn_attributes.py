"""Attributes that only a made layer has, and methods that do nothing much."""
import paddle

from parity import array, case, raised


@case("paddle.nn.Linear.weight", "paddle.nn.Linear.bias", "paddle.nn.Conv1D.weight", "paddle.nn.Conv1D.bias",
      "paddle.nn.Conv2D.weight", "paddle.nn.Conv2D.bias", "paddle.nn.Conv3D.weight", "paddle.nn.Conv3D.bias")
def parameters():
    layers = [paddle.nn.Linear(3, 2), paddle.nn.Conv1D(2, 3, 2), paddle.nn.Conv2D(2, 3, 2), paddle.nn.Conv3D(2, 3, 2)]
    result = []
    for net in layers:
        result += [net.weight.shape, net.bias.shape, net.bias.tolist(), net.weight.stop_gradient, net.weight.trainable,
                   net.weight is dict(net.named_parameters())["weight"]]
        net.weight.set_value(paddle.to_tensor(array(*net.weight.shape).astype("float32")))
        result.append(net.weight.detach())
    return result + [paddle.nn.Linear(3, 2, bias_attr=False).bias, paddle.nn.Conv2D(2, 3, 2, bias_attr=False).bias]


@case("paddle.nn.SimpleRNN.flatten_parameters", "paddle.nn.GRU.flatten_parameters",
      "paddle.nn.LSTM.flatten_parameters")
def flattened():
    result = []
    for kind in (paddle.nn.SimpleRNN, paddle.nn.GRU, paddle.nn.LSTM):
        net = kind(3, 4)
        x = paddle.to_tensor(array(2, 5, 3).astype("float32"))
        before = net(x)[0]
        net.flatten_parameters()
        result.append(bool(paddle.allclose(before, net(x)[0])))
    return result


@case("paddle.nn.Layer.backward", "paddle.nn.Layer.create_tensor", "paddle.nn.Layer.create_variable")
def of_every_layer():
    net = paddle.nn.Layer()
    made, other = net.create_variable(), net.create_tensor(dtype="float64")
    return [str(made.dtype), str(other.dtype), raised(lambda: net.backward(), Exception)]


@case("paddle.nn.RNNCellBase.state_dtype", "paddle.nn.RNNCellBase.state_shape")
def states():
    class Cell(paddle.nn.RNNCellBase):
        @property
        def state_shape(self):
            return [4]

    class Full(Cell):
        @property
        def state_dtype(self):
            return "float32"

    x = paddle.zeros([2, 3])
    return [raised(lambda: Cell().state_dtype, NotImplementedError), Full().state_dtype, Full().state_shape,
            Full().get_initial_states(x, [4], "float32")]


@case("paddle.nn.AdaptiveAvgPool2D", "paddle.nn.AdaptiveMaxPool3D")
def what_subclasses_look_at():
    class Pool(paddle.nn.AdaptiveAvgPool2D):
        def forward(self, x):
            return paddle.nn.functional.adaptive_avg_pool2d(
                x, output_size=self._output_size, data_format=self._data_format, name=self._name)

    x = paddle.to_tensor(array(2, 3, 5, 5).astype("float32"))
    return [Pool(2)(x), paddle.nn.AdaptiveMaxPool3D(2, name="n")._name]


@case("paddle.nn.initializer.Constant", "paddle.ParamAttr")
def what_model_code_says_of_parameters():
    net = paddle.nn.Linear(2, 3)
    paddle.nn.initializer.Constant(0.5)(net.weight, net.weight.block)      # as PaddleSeg initializes
    kept = paddle.ParamAttr(initializer=paddle.nn.initializer.KaimingNormal)   # the class, not one of it
    return [net.weight.detach(), net.weight.block.idx, paddle.ones([2]).block.idx, kept.trainable]


@case("paddle.nn.layer.Sigmoid")
def layers_by_their_folder():
    return [paddle.nn.layer.Sigmoid()(paddle.to_tensor([0.0, 1.0])), paddle.nn.layer.Linear is paddle.nn.Linear]
