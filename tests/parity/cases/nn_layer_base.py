"""nn.Layer: walking, state, hooks, attributes, printing; ParamAttr; unique names."""
import copy
import warnings

import numpy as np
import paddle
from paddle import nn

from parity import case, fill, rand, raised

L = "paddle.nn.Layer."


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 3)
        self.block = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.register_buffer("count", paddle.to_tensor([1.0]))
        self.temp = paddle.to_tensor([2.0])

    def forward(self, x):
        return self.block(self.fc1(x)) * self.count


@case("paddle.nn.Layer", L + "forward")
def layer_forward():
    return fill(Net())(rand(2, 4))


@case(L + "named_parameters", L + "parameters", L + "named_sublayers", L + "sublayers", L + "named_children",
      L + "children", L + "named_buffers", L + "buffers", grad=False)
def layer_walk():
    net = Net()
    return [[n for n, _ in net.named_parameters()], [n for n, _ in net.named_parameters("p", False)],
            [n for n, _ in net.named_sublayers(include_self=True)], len(net.sublayers()),
            [n for n, _ in net.named_children()], len(list(net.children())), [n for n, _ in net.named_buffers()],
            len(net.parameters()), len(net.buffers()), len(net.parameters(include_sublayers=False))]


@case(L + "state_dict", L + "set_state_dict", L + "set_dict", L + "load_dict", L + "to_static_state_dict", grad=False)
def layer_state():
    a, b = fill(Net()), Net()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = b.set_state_dict({**a.state_dict(), "more": a.count})
        missing = b.set_dict({"fc1.weight": a.fc1.weight})
    b.load_dict(a.state_dict())
    return [list(a.state_dict()), list(a.to_static_state_dict()), list(result), list(missing), b.state_dict(),
            list(a.state_dict(include_sublayers=False)), list(a.state_dict(structured_name_prefix="x."))]


@case(L + "register_forward_pre_hook", L + "register_forward_post_hook", L + "register_state_dict_hook")
def layer_hooks():
    net, x = fill(nn.Linear(3, 2)), rand(2, 3)
    pre = net.register_forward_pre_hook(lambda layer, inputs: inputs[0] * 2)
    post = net.register_forward_post_hook(lambda layer, inputs, out: out + 1)
    first = net(x)
    pre.remove()
    second = net(x)
    post.remove()
    net.register_state_dict_hook(lambda state: {k + "!": v for k, v in state.items()})
    return first, second, net(x), list(net.state_dict())


@case(L + "train", L + "eval", L + "apply", L + "full_name", grad=False)
def layer_modes():
    with paddle.utils.unique_name.guard():
        net, seen = Net(), []
        net.eval()
        modes = [m.training for m in net.sublayers(include_self=True)]
        net.train()
        same = net.apply(lambda m: seen.append(type(m).__name__)) is net
        return modes, net.training, same, seen, net.full_name(), net.fc1.full_name(), net.fc1.weight.name


@case(L + "add_parameter", L + "add_sublayer", L + "register_buffer", L + "create_parameter", grad=False)
def layer_adds():
    net = nn.Layer()
    p = net.create_parameter([2, 2], default_initializer=nn.initializer.Constant(3.0))
    net.add_parameter("p", p)
    net.add_sublayer("s", nn.Linear(1, 1))
    net.register_buffer("b", paddle.ones([2]), persistable=False)
    errors = [raised(lambda: net.add_parameter("a.b", p)), raised(lambda: net.add_parameter("", p)),
              raised(lambda: net.add_parameter("p2", 3)), raised(lambda: net.register_buffer("s", paddle.ones([1]))),
              raised(lambda: setattr(net, "p", 3)), raised(lambda: setattr(net, "s", 3)),
              raised(lambda: net.nothing), raised(lambda: net.backward())]
    return net.p is p, list(net.state_dict()), p, net.create_parameter([2], attr=False), errors


@case(L + "extra_repr", grad=False)
def layer_repr():
    class Two(nn.Layer):
        def extra_repr(self):
            return "a=1\nb=2"
    return repr(Net()), repr(nn.Layer()), repr(Two())


@case(L + "to", L + "astype", L + "float", grad=False)
def layer_to():
    net = fill(Net())
    net.to(dtype="float64")
    first = [str(p.dtype) for p in net.parameters()] + [str(net.count.dtype)]
    net.float()
    return first, [str(p.dtype) for p in net.parameters()], net.astype("float64").fc1.weight


@case(L + "clear_gradients", grad=False)
def layer_clear():
    net = fill(nn.Linear(3, 2))
    net(rand(2, 3, grad=False)).sum().backward()
    before = net.weight.grad
    net.clear_gradients()
    return before, net.weight.grad is None or float(net.weight.grad.abs().sum())


@case("paddle.nn.Layer", grad=False)
def layer_deepcopy():
    a = fill(Net())
    b = copy.deepcopy(a)
    b.fc1.weight.set_value(np.zeros([4, 3], "float32"))
    return a.fc1.weight, b.fc1.weight, b.block[0].weight, list(b.state_dict())


@case("paddle.ParamAttr", grad=False)
def param_attr():
    attr = paddle.ParamAttr(name="an_own_name", initializer=nn.initializer.Constant(2.0), learning_rate=0.5,
                            trainable=False, need_clip=False)
    w = nn.Linear(2, 2, weight_attr=attr).weight
    return (w, w.name, w.optimize_attr, w.trainable, w.stop_gradient, w.need_clip,
            raised(lambda: paddle.ParamAttr(name="")))


@case("paddle.create_parameter", grad=False)
def create_parameter():
    p = paddle.create_parameter([2, 3], "float32", default_initializer=nn.initializer.Constant(1.5))
    return p, p.trainable, p.persistable


@case("paddle.utils.unique_name.generate", "paddle.utils.unique_name.guard", "paddle.utils.unique_name.switch",
      grad=False)
def unique_names():
    u = paddle.utils.unique_name
    with u.guard():
        names = [u.generate("fc"), u.generate("fc"), u.generate("conv")]
    with u.guard("A_"):
        names.append(u.generate("fc"))
    before = u.switch()
    names.append(u.generate("fc"))
    u.switch(*before)
    return names


@case("paddle.get_default_dtype", "paddle.set_default_dtype", "paddle.finfo", "paddle.iinfo", grad=False)
def default_dtype():
    first = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    second, weight = paddle.get_default_dtype(), str(nn.Linear(1, 1).weight.dtype)
    paddle.set_default_dtype(np.float32)
    f, i = paddle.finfo("float32"), paddle.iinfo(paddle.int8)
    return first, second, weight, f.min, f.max, f.eps, f.tiny, f.bits, f.dtype, i.min, i.max, i.bits
