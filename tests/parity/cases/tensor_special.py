"""Diagonals, products, counts, special functions, complex pairs, running extremes, repetition, draws."""
import numpy as np
import paddle
from parity import array, case, ints, raised, rand

T = paddle.to_tensor


@case("paddle.diag", "paddle.diagonal", "paddle.Tensor.diagonal", "paddle.Tensor.diag", "paddle.diagflat",
      "paddle.Tensor.diagflat")
def diagonals():
    x = rand(3, 4)
    return paddle.diag(x), paddle.diag(rand(3)), paddle.diag(rand(2), 1, 5.0), paddle.diagonal(x, 1), \
        x.diagonal(offset=-1), paddle.diagonal(rand(2, 3, 4), axis1=1, axis2=2), paddle.diagflat(rand(2, 2)), \
        rand(3).diag(offset=-2), paddle.diag(ints(4)), rand(2).diagflat(-1)


@case("paddle.trace", "paddle.Tensor.trace")
def traces():
    return [paddle.trace(rand(3, 4)), rand(2, 3, 4).trace(1, 0, 2), paddle.trace(ints(3, 3), offset=-1),
            paddle.trace(rand(3, 3, 2, dtype="float64"), axis1=-3, axis2=1), paddle.trace(rand(3, 3, dtype="complex64"))]


@case("paddle.diag_embed", "paddle.Tensor.diag_embed", "paddle.nn.functional.diag_embed", grad=False)
def embedded_diagonals():
    x = rand(2, 3, grad=False)
    return [paddle.diag_embed(x), x.diag_embed(offset=1, dim1=0, dim2=2), paddle.nn.functional.diag_embed(x, -1),
            paddle.diag_embed(ints(3))]


@case("paddle.Tensor.fill_diagonal_tensor", "paddle.Tensor.fill_diagonal_tensor_")
def filled_diagonals():
    x, y = rand(3, 4), rand(3)
    z = rand(2, 3, 4) * 1
    return [x.fill_diagonal_tensor(y), z.fill_diagonal_tensor_(rand(2, 3), offset=1, dim1=1, dim2=2)]


@case("paddle.cross", "paddle.kron", "paddle.Tensor.cross", "paddle.Tensor.kron")
def products():
    x, y = rand(2, 3), rand(2, 3)
    return [paddle.cross(x, y), x.cross(y, axis=1), paddle.kron(x, y), x.kron(rand(2, 2)), paddle.kron(rand(3), x),
            paddle.cross(rand(3, 2, dtype="float64"), rand(3, 2, dtype="float64")), paddle.kron(ints(2), ints(2, 2)),
            raised(lambda: paddle.cross(rand(2, 2, grad=False), rand(2, 2, grad=False)), ValueError, RuntimeError)]


@case("paddle.histogram", "paddle.Tensor.histogram", "paddle.bincount", "paddle.Tensor.bincount", grad=False)
def counts():
    x = rand(20, grad=False)
    return [paddle.histogram(x), x.histogram(bins=4, min=-1, max=1), paddle.bincount(ints(9, high=5)),
            paddle.bincount(ints(3, high=4), rand(3, grad=False), minlength=6), paddle.histogram(ints(4, 5), 5),
            ints(5, high=4, dtype="int32").bincount(weights=rand(5, dtype="float64", grad=False)),
            paddle.histogram(paddle.full([3], 2.0), bins=4)]


@case("paddle.i0", "paddle.i0e", "paddle.i1", "paddle.i1e", "paddle.Tensor.i0", "paddle.Tensor.i0e", "paddle.Tensor.i1",
      "paddle.Tensor.i1e", "paddle.i0_", "paddle.Tensor.i0_", tol=1e-6)  # Paddle's float32 Bessel functions are off by some ulp
def bessel():
    x = rand(3, 4, low=-6, high=6)
    y = rand(3, dtype="float64", low=-30, high=30)
    z = rand(4) * 2
    return [paddle.i0(x), x.i0e(), paddle.i1(x), x.i1e(), x.i0(), paddle.i0e(y), x.i1(), paddle.i1e(y), paddle.i0_(z),
            z.i0_()]


@case("paddle.polygamma", "paddle.Tensor.polygamma", "paddle.polygamma_", "paddle.Tensor.polygamma_", tol=1e-6)
def polygammas():  # sums of other lengths
    x = rand(3, 4, dtype="float64", low=0.3, high=6)
    y, z = rand(3, low=0.3, high=6, grad=False) * 1, rand(3, low=0.3, high=6, grad=False) * 1
    return [paddle.polygamma(x, 1), x.polygamma(2), paddle.polygamma(x, 0), paddle.polygamma_(y, 1), z.polygamma_(1)]


@case("paddle.logit", "paddle.Tensor.logit", "paddle.logit_", "paddle.Tensor.logit_", "paddle.nextafter",
      "paddle.Tensor.nextafter")
def logits():
    x, y = rand(3, 4, low=0.05, high=0.95), rand(5, low=0.1, high=0.9) * 1
    near = rand(3, grad=False)
    return [paddle.logit(x), x.logit(0.25), paddle.logit(x, eps=0.125), paddle.logit_(y), paddle.nextafter(near, near + 1),
            near.nextafter(near - 1), (rand(2, low=0.2, high=0.8) * 1).logit_(eps=0.25)]


@case("paddle.real", "paddle.imag", "paddle.conj", "paddle.complex", "paddle.as_real", "paddle.as_complex",
      "paddle.Tensor.real", "paddle.Tensor.imag", "paddle.Tensor.conj", "paddle.Tensor.as_real", "paddle.Tensor.as_complex")
def complex_parts():
    z = rand(3, 2, dtype="complex64")
    return [paddle.real(z), paddle.imag(z), paddle.conj(z), z.real(), z.imag(), z.conj(), paddle.as_real(z),
            paddle.as_complex(rand(3, 2)), paddle.complex(rand(3), rand(3)), paddle.conj(rand(2)), z.as_real(),
            rand(2, 2, dtype="float64").as_complex(), paddle.complex(rand(2, 1), rand(3))]


@case("paddle.sgn", "paddle.Tensor.sgn", "paddle.polar", grad=False)
def complex_forms():
    z = rand(4, dtype="complex64", grad=False)
    return paddle.sgn(z), z.sgn(), paddle.polar(rand(3, low=0.5, high=2, grad=False), rand(3, grad=False))


@case("paddle.cummax", "paddle.cummin", "paddle.Tensor.cummax", "paddle.Tensor.cummin")
def running_extremes():
    x = rand(3, 4)
    return [paddle.cummax(x), x.cummin(axis=0), paddle.cummin(x, -1, "int32"), x.cummax(1), paddle.cummax(ints(7, high=3)),
            paddle.cummin(ints(7, high=3, dtype="int32"))]


@case("paddle.logcumsumexp", "paddle.Tensor.logcumsumexp")
def running_sums():
    x = rand(3, 4)
    return [paddle.logcumsumexp(x), x.logcumsumexp(axis=0), paddle.logcumsumexp(x, 1, "float64"),
            paddle.logcumsumexp(rand(5, dtype="float64", low=-300, high=300))]


@case("paddle.mode", "paddle.Tensor.mode")
def modes():
    x = T(np.array([[2, 2, 1, 1, 3], [3, 1, 3, 1, 3]], "float32"), stop_gradient=False)
    out, places = paddle.mode(x)
    out.sum().backward()
    return [out, places, paddle.mode(ints(4, 6, high=3), 0, True), ints(5, high=2).mode(), x.grad]


@case("paddle.repeat_interleave", "paddle.Tensor.repeat_interleave")
def repeated():
    x = rand(2, 3)
    return [paddle.repeat_interleave(x, 2), x.repeat_interleave(3, axis=-1), x.repeat_interleave(T([2, 0]), 0),
            paddle.repeat_interleave(x, T([1, 2, 3], dtype="int32"), axis=1)]


@case("paddle.unique_consecutive", "paddle.Tensor.unique_consecutive", grad=False)
def runs():
    x = T([[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [2.0, 2.0, 2.0]])
    return [paddle.unique_consecutive(x), x.unique_consecutive(return_inverse=True, return_counts=True),
            paddle.unique_consecutive(x, axis=0, return_counts=True, dtype="int32"), x.unique_consecutive(axis=1)]


@case("paddle.multiplex", "paddle.Tensor.multiplex", "paddle.shard_index", "paddle.Tensor.shard_index")
def chosen():
    a, b = rand(3, 2), rand(3, 2)
    index = T([[1], [0], [1]], dtype="int32")
    labels = T([[16], [1], [19]])
    return [paddle.multiplex([a, b], index), paddle.shard_index(labels, 20, 2, 0),
            labels.shard_index(index_num=20, nshards=3, shard_id=2, ignore_value=-5)]


@case("paddle.isclose", "paddle.allclose", "paddle.equal_all", "paddle.Tensor.isclose", "paddle.Tensor.allclose",
      "paddle.Tensor.equal_all", grad=False)
def closeness():
    x = T([1.0, 100.0, float("nan"), float("inf"), float("inf")])
    y = T([1.00001, 101.0, float("nan"), float("inf"), 1.0])
    return [paddle.isclose(x, y), x.isclose(y, rtol=0.1), paddle.isclose(x, y, 1e-3, 1e-3, True), paddle.allclose(x, x),
            x.allclose(x, equal_nan=True), paddle.equal_all(ints(3), ints(3)), x.equal_all(x), x[:2].equal_all(x[:2]),
            paddle.isclose(T([1.0], dtype="float64"), T([1.0 + 1e-9], dtype="float64")), x[:1].equal_all(x[:2])]


@case("paddle.tril_indices", "paddle.triu_indices")
def corners():
    return [paddle.tril_indices(3, 3), paddle.triu_indices(3, 4, 1), paddle.tril_indices(4, 2, -1, "int32"),
            paddle.triu_indices(2, offset=5)]


def about(x, mean=None):
    """Properties that two streams of random numbers share: shape, dtype, and roughly the mean."""
    out = [str(x.dtype), list(x.shape)]
    return out if mean is None else out + [bool(abs(float(x.astype("float64").mean()) - mean) < 0.1 * (1 + mean))]


@case("paddle.bernoulli", "paddle.multinomial", "paddle.Tensor.multinomial", "paddle.poisson", grad=False)
def draws():
    x = paddle.bernoulli(paddle.full([2000], 0.3))
    m = paddle.multinomial(T([[0.2, 0.0, 0.8], [0.5, 0.5, 0.0]]), 50, replacement=True)
    w = paddle.multinomial(T([0.1, 0.2, 0.7]), 3)
    few = T([0.5, 0.5, 0.0], dtype="float64").multinomial(2)
    return [about(x, 0.3), about(m), bool((m[0] != 1).all()), bool((m[1] != 2).all()), w.sort(), few.sort(),
            about(paddle.poisson(paddle.full([4000], 3.0)), 3.0), about(paddle.poisson(paddle.full([9, 4], 50.0, "float64"))),
            raised(lambda: paddle.multinomial(T([0.5, 0.0]), 2), ValueError, RuntimeError)]


@case("paddle.poisson")
def poisson_gradient():
    x = T(array(4, low=1, high=3).astype("float32"), stop_gradient=False)
    paddle.poisson(x).sum().backward()
    return x.grad


@case("paddle.Tensor.fill_diagonal_", "paddle.renorm", "paddle.Tensor.renorm", "paddle.view", "paddle.Tensor.view")
def views_and_norms():
    x, tall = rand(3, 4) * 1, rand(7, 3, grad=False) * 1
    return [x.fill_diagonal_(2.0, offset=1), tall.fill_diagonal_(5, wrap=True), paddle.renorm(rand(3, 4), 2.0, 0, 1.0),
            rand(2, 3, 4).renorm(1.0, -1, 5.0), paddle.view(rand(2, 4, grad=False), "int32"), ints(3, 2).view("float64"),
            paddle.view(rand(2, 6, grad=False), [3, 4])]


@case("paddle.combinations", "paddle.Tensor.combinations")
def choices():
    x = rand(4)
    return [paddle.combinations(x), x.combinations(3), x.combinations(2, with_replacement=True)]
