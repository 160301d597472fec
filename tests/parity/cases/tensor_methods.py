"""Tensor methods that are no operations: hooks, copies, pickling, protocols; and create_parameter."""
import copy
import pickle

import numpy as np
import paddle
from parity import case, ints, raised, rand


@case("paddle.Tensor.register_hook", grad=False)
def hooks():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    seen = []
    double = x.register_hook(lambda g: g * 2)
    look = x.register_hook(lambda g: seen.append(g.numpy()))
    (x * x).sum().backward()
    first = x.grad.numpy()
    x.clear_grad()
    removed = double.remove(), look.remove(), look.remove()
    (x * x).sum().backward()
    h = x * 3.0
    h.register_hook(lambda g: g + 1.0)
    x.clear_grad()
    h.sum().backward()
    return first, seen, removed, x.grad.numpy(), \
        raised(lambda: paddle.ones([2]).register_hook(print), RuntimeError, ValueError)


@case("paddle.Tensor", "paddle.Tensor.stop_gradient", grad=False)
def copies():
    x = rand(2, 3)
    x.name = "mine"
    y = copy.deepcopy(x)
    z = copy.deepcopy({"a": [x, x]})["a"]
    return y, y is x, y.name.startswith("mine"), z[0] is z[1], z[0]


@case("paddle.Tensor", grad=False)
def protocols():
    x = rand(2, 3, grad=False)
    a, b = x
    it = iter(ints(3))
    return np.asarray(x), np.array(x, dtype="float64"), x.__array__(), a, b, next(it), len(x), \
        raised(lambda: list(rand(grad=False)), TypeError, AssertionError), \
        raised(lambda: len(rand(grad=False)), TypeError, AssertionError), \
        x.element_size(), x.dim(), x.ndimension(), x.is_tensor(), hash(x) == hash(x), bool(x[0, 0] == x[0, 0])


@case("paddle.Tensor.cpu", "paddle.Tensor.gradient", "paddle.Tensor.value", grad=False)
def moves():
    x = rand(2, 2)
    none = x.gradient()
    (x * 3.0).sum().backward()
    wide, same, whole = [rand(2, grad=False) for _ in range(3)]  # Paddle's to() changes the tensor itself, too
    return none, x.gradient(), x.cpu(), str(x.cpu().place), x.cpu().stop_gradient, wide.to("float64"), same.to("cpu"), \
        whole.to("cpu", dtype="int32"), rand(2, grad=False).to(ints(2)).dtype == paddle.int64


@case("paddle.Tensor", grad=False)
def pickled():
    x = rand(2, 3, grad=False)
    return pickle.loads(pickle.dumps({"x": x.numpy()}))["x"]


@case("paddle.create_parameter", grad=False)
def parameters():
    fixed = paddle.nn.initializer.Constant(2.5)
    w = paddle.create_parameter([2, 3], "float32", default_initializer=fixed)
    b = paddle.create_parameter(shape=[3], dtype="float64", is_bias=True)
    named = paddle.create_parameter([2], "float32", name="my_w", attr=None)
    given = paddle.create_parameter([2], "float32", attr=paddle.ParamAttr(name="p", initializer=fixed, trainable=False))
    (w * 2.0).sum().backward()
    return w, b, w.grad, w.stop_gradient, w.persistable, w.trainable, named.name, named.shape, given, given.name, \
        given.stop_gradient, raised(lambda: paddle.create_parameter(2, "float32"), TypeError)


@case("paddle.utils.dlpack.to_dlpack", "paddle.utils.dlpack.from_dlpack", grad=False)
def dlpack():
    from paddle.utils.dlpack import from_dlpack, to_dlpack
    x = ints(2, 3)
    capsule = to_dlpack(x)
    y = from_dlpack(capsule)
    return x, y, type(capsule).__name__, from_dlpack(to_dlpack(rand(2, 3, grad=False)[:, 1:].clone())), \
        from_dlpack(to_dlpack(rand(grad=False))), raised(lambda: from_dlpack(3), TypeError), \
        raised(lambda: to_dlpack([1]), TypeError)
