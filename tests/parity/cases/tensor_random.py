"""Random tensors by what must hold of them: shape, dtype, range, moments, repeatability."""
import paddle
from parity import case


def about(x, mean=None):
    v = x.astype("float64")
    out = [x.shape, str(x.dtype).rpartition(".")[2]]
    return out if mean is None else out + [abs(float(v.mean()) - mean) < 0.1]


def inside(x, low, high):
    return bool((x >= low).all()) and bool((x <= high).all())


@case("paddle.rand", "paddle.uniform", grad=False)
def uniform():
    a, b = paddle.rand([2000]), paddle.uniform([40, 50], dtype="float64", min=-3.0, max=1.0)
    return about(a, 0.5), inside(a, 0, 1), about(b, -1.0), inside(b, -3, 1), about(paddle.rand([])), \
        about(paddle.uniform((2, 3))), about(paddle.rand(paddle.to_tensor([2, 3]))), \
        about(paddle.rand([paddle.to_tensor(2), 3]))


@case("paddle.randn", "paddle.standard_normal", "paddle.normal", grad=False)
def normal():
    x = paddle.normal(mean=2.0, std=0.5, shape=[3000])
    mean = paddle.full([2000], 3.0)
    return about(paddle.randn([3000]), 0.0), about(paddle.standard_normal([3000], "float64"), 0.0), about(x, 2.0), \
        abs(float(x.std()) - 0.5) < 0.1, about(paddle.normal(mean, 0.1), 3.0), \
        about(paddle.normal(mean, paddle.full([2000], 0.1)), 3.0), about(paddle.normal(1.0, paddle.full([2000], .1)), 1.0)


@case("paddle.randint", "paddle.randint_like", "paddle.randperm", grad=False)
def integers():
    x, y = paddle.randint(2, 7, [1000]), paddle.randint(5, shape=[30], dtype="int32")
    p = paddle.randperm(20)
    return about(x), inside(x, 2, 6), about(y), inside(y, 0, 4), about(paddle.randint(3)), about(p), \
        p.sort(), about(paddle.randperm(5, "int32")), about(paddle.randint_like(paddle.rand([3]), 1, 9))


@case("paddle.bernoulli", grad=False)
def draws():
    return about(paddle.bernoulli(paddle.full([2000], 0.3)), 0.3)


@case("paddle.seed", "paddle.get_rng_state", "paddle.set_rng_state", grad=False)
def repeat():
    paddle.seed(7)
    a = paddle.rand([5])
    paddle.seed(7)
    b = paddle.rand([5])
    state = paddle.get_rng_state()
    c = paddle.rand([5])
    paddle.set_rng_state(state)
    return bool((a == b).all()), bool((c == paddle.rand([5])).all()), bool((a == c).all())


@case("paddle.Tensor", grad=False)
def refill():
    x = paddle.zeros([2000])
    u = x.uniform_(0.0, 2.0)
    out = [about(x, 1.0), u is x]
    x.normal_(1.0, 0.5)
    out.append(about(x, 1.0))
    x.exponential_(2.0)
    return out + [about(x, 0.5), bool((x >= 0).all())]
