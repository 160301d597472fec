"""Tensors from nothing, from data and from other tensors; printing."""
import numpy as np
import paddle
from parity import array, case, ints, rand


@case("paddle.zeros", "paddle.ones", "paddle.full", grad=False)
def constants():
    two = paddle.to_tensor(2)
    return [paddle.zeros([2, 3]), paddle.ones((2,), "int32"), paddle.full([2, 2], 1.5), paddle.full([2], 3, "int64"),
            paddle.full(shape=[2], fill_value=True, dtype="bool"), paddle.zeros([two, 3]), paddle.zeros([]),
            paddle.ones(paddle.to_tensor([2, 3])), paddle.full([0, 2], 1), paddle.full([2], paddle.to_tensor(4.0)),
            paddle.ones([2], paddle.float64), paddle.zeros([1], np.int8)]


@case("paddle.empty", "paddle.empty_like", grad=False)
def empties():
    x = paddle.empty([2, 3], "float64")
    y = paddle.empty_like(x, "int32")
    return x.shape, str(x.dtype)[-4:], y.shape


@case("paddle.zeros_like", "paddle.ones_like", "paddle.full_like", grad=False)
def likes():
    x = ints(2, 3, dtype="int32")
    return paddle.zeros_like(x), paddle.ones_like(x, dtype="float32"), paddle.full_like(x, 3), \
        paddle.full_like(rand(2), 2, "float64"), paddle.ones_like(rand())


@case("paddle.arange", "paddle.linspace", "paddle.logspace", grad=False)
def ranges():
    return [paddle.arange(5), paddle.arange(1, 6, 2), paddle.arange(0.0, 1.0, 0.3), paddle.arange(5, dtype="float64"),
            paddle.arange(start=5, end=0, step=-2), paddle.arange(paddle.to_tensor(4)), paddle.arange(3.0),
            paddle.linspace(0, 1, 5), paddle.linspace(0, 10, 4, "int32"), paddle.linspace(3.0, -1.0, 3, "float64"),
            paddle.linspace(0, 5, 1), paddle.logspace(0, 3, 4), paddle.logspace(0, 3, 4, 2, "int64")]


@case("paddle.eye", "paddle.meshgrid", "paddle.tril_indices", "paddle.triu_indices")
def matrices():
    x, y = rand(2), rand(3)
    return [paddle.eye(3), paddle.eye(2, 4, "int32"), paddle.meshgrid(x, y), paddle.meshgrid([x, y]),
            paddle.tril_indices(3, 4, 1), paddle.triu_indices(3, 4, -1)]


@case("paddle.tril", "paddle.triu")
def triangles():
    x = rand(4, 5)
    return paddle.tril(x), paddle.triu(x), paddle.tril(x, -1), paddle.triu(x, diagonal=2), paddle.tril(rand(2, 3, 3))


@case("paddle.assign", "paddle.clone", "paddle.Tensor.clone")
def copies():
    x = rand(2, 3)
    out = paddle.zeros([2, 3])
    paddle.assign(x, out)
    others = [paddle.zeros([2, 3]), paddle.zeros([2])]
    for into, value in zip(others, (array(2, 3).astype("int64"), paddle.to_tensor([1, 2, 3], dtype="int32"))):
        assert paddle.assign(value, into) is into  # takes over dtype and shape
    return paddle.assign(x), out, x.clone(), paddle.clone(x), paddle.assign([1, 2, 3]), paddle.assign(3.0), *others


@case("paddle.to_tensor", grad=False)
def to_tensor():
    t = paddle.to_tensor
    return [t(1), t(1.5), t(True), t([1, 2]), t([[1.0, 2], [3, 4]]), t((1, 2)), t(array(2, 3)), t(np.arange(3)),
            t([1, 2], dtype="float32"), t(np.float64(3)), t(1 + 2j), t([]), t(t([1.0])), t(np.zeros((0, 3))),
            t([True, False]), t(np.array([1], "uint8")), t([1.5], "float64", stop_gradient=False),
            t([t(1.0), t(2.0)]) if False else 0, t(np.ones(2, "float16"))]


@case("paddle.cast", "paddle.Tensor.cast", "paddle.Tensor.astype")
def casts():
    x = rand(3)
    return paddle.cast(x, "float64"), x.cast("int32"), x.astype(paddle.float64), x.astype("bool"), \
        x.detach().astype(np.float16)  # Paddle cuts gradients to float16, Proa rounds


@case("paddle.set_default_dtype", "paddle.get_default_dtype", grad=False)
def default_dtype():
    was = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    now = paddle.get_default_dtype()
    x = paddle.ones([2])
    paddle.set_default_dtype(was)
    return was, now, x


@case("paddle.zeros", "paddle.ones", "paddle.zeros_like", "paddle.ones_like", "paddle.full_like", grad=False)
def by_their_module():
    t = paddle.tensor.creation
    x = t.zeros([2])
    return [x, t.ones([1], "int32"), t.zeros_like(x), t.ones_like(x, dtype="int64"), t.full_like(x, 3), t.empty([2]).shape]


@case("paddle.set_printoptions", "paddle.Tensor", grad=False)
def printing():
    tensors = [paddle.to_tensor(array(3, 4).astype("float32")), paddle.arange(5), paddle.to_tensor(2.5),
               paddle.to_tensor([True, False]), paddle.zeros([2, 2, 2]), paddle.arange(2000).reshape([40, 50]),
               paddle.to_tensor([1e10, 1e-10, -3.0]), paddle.zeros([0, 3]), paddle.to_tensor([float("inf"), 1.5]),
               paddle.to_tensor([1 + 2j]), paddle.ones([2], "bfloat16"), paddle.to_tensor([-1, 20, 300]),
               paddle.arange(40).astype("float32") / 7]
    out = [str(t) for t in tensors] + [repr(tensors[0])]
    paddle.set_printoptions(precision=3, threshold=10, edgeitems=2, linewidth=40)
    out += [str(t) for t in tensors]
    paddle.set_printoptions(sci_mode=True)
    out += [str(t) for t in tensors]
    paddle.set_printoptions(8, 1000, 3, False, 80)
    return out


@case("paddle.broadcast_shape", "paddle.Tensor.broadcast_shape", grad=False)
def broadcast_shapes():
    return list(paddle.broadcast_shape([2, 1, 3], [1, 3])), list(paddle.broadcast_shape([], [4]))


@case("paddle.tolist", "paddle.Tensor.item", "paddle.Tensor.numpy", "paddle.Tensor.shape", "paddle.Tensor.ndim",
      "paddle.Tensor.size", "paddle.Tensor.dim", "paddle.Tensor.ndimension", "paddle.Tensor.dtype",
      "paddle.Tensor.stop_gradient", "paddle.Tensor.persistable", "paddle.Tensor.is_leaf", "paddle.Tensor.place",
      "paddle.Tensor.inplace_version", grad=False)
def members():
    x = ints(2, 3)
    return [paddle.tolist(x), x.tolist(), x[0, 0].item(), x.item(1, 2), x.item(4), x.numpy(), x.shape, x.ndim, x.size,
            x.dim(), x.ndimension(), x.stop_gradient, x.persistable, x.is_leaf, str(x.place), x.inplace_version]


@case("paddle.Tensor.set_value", "paddle.Tensor.copy_", "paddle.Tensor.detach", "paddle.Tensor.cpu",
      "paddle.Tensor.gradient", "paddle.Tensor.clear_grad", "paddle.Tensor.clear_gradient", "paddle.Tensor.grad",
      "paddle.Tensor.backward", grad=False)
def state():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    (x * x).sum().backward()
    g = x.grad.numpy(), x.gradient()
    x.clear_gradient()
    y = paddle.zeros([2])
    y.set_value(np.array([3, 4], "float32"))
    z = paddle.zeros([2])
    z.copy_(y, True)
    x.clear_grad()
    return g, y, z, x.detach(), x.grad is None, x.cpu(), x.detach().stop_gradient


@case("paddle.Tensor.astype", "paddle.equal")
def python_numbers_and_types():
    x = paddle.to_tensor([1, 2, 3])
    return [x.astype(int), x.astype(float), x.astype(bool), x.astype("int"), x.astype(complex),
            paddle.zeros([2], dtype=int), paddle.equal(x, 2),
            paddle.equal(x.astype("float32"), 2.0), paddle.equal(x, x)]


@case("paddle.empty_like")
def shapes_of_arrays():
    made = [paddle.empty_like(np.ones((2, 3), "float64")), paddle.empty_like(np.ones(4, "int32"), dtype="float32")]
    return [(one.shape, str(one.dtype)) for one in made]
