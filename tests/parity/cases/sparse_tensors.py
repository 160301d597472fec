"""paddle.sparse: making, functions of values, moving entries, layers; what Paddle has CPU kernels of."""
import numpy as np
import paddle

from parity import array, case, rand, raised

S = "paddle.sparse."
AT = [[0, 0, 1, 2, 3], [1, 4, 2, 0, 3]]


def matrix(low=-2.0, high=2.0):
    return paddle.sparse.sparse_coo_tensor(AT, rand(5, low=low, high=high), [4, 5], stop_gradient=False)


def parts(t):
    """The parts of a sparse tensor."""
    own = (t.indices(),) if t.is_sparse_coo() else (t.crows(), t.cols())
    return [list(t.shape), str(t.dtype), *own, t.values(), t.nnz()]


@case(S + "sparse_coo_tensor", S + "sparse_csr_tensor", "paddle.Tensor.to_dense", "paddle.Tensor.to_sparse_csr",
      "paddle.Tensor.to_sparse_coo", "paddle.Tensor.is_sparse", "paddle.Tensor.is_sparse_coo", "paddle.Tensor.is_sparse_csr",
      "paddle.Tensor.nnz", "paddle.Tensor.values", "paddle.Tensor.indices", "paddle.Tensor.crows", "paddle.Tensor.cols",
      grad=False)
def making():
    coo = matrix()
    csr = paddle.sparse.sparse_csr_tensor([0, 2, 3, 5], [1, 3, 2, 0, 1], [1, 2, 3, 4, 5], [3, 4], dtype="float32")
    batch = paddle.sparse.sparse_csr_tensor([0, 1, 2, 0, 0, 1], [1, 0, 2], [1.0, 2.0, 3.0], [2, 2, 3])
    rows = paddle.sparse.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], dtype="float64")
    texts = [str(one) for one in (paddle.sparse.sparse_coo_tensor([[0, 2], [1, 0]], [1.5, -2.25], [3, 3]), csr, rows)]
    dense = paddle.to_tensor(np.where(array(3, 4) > 0, 1.5, 0.0).astype("float32"))
    kinds = [(t.is_sparse(), t.is_sparse_coo(), t.is_sparse_csr(), t.is_tensor() if hasattr(t, "is_tensor") else 0)
             for t in (coo, csr, dense)]
    return ([parts(t) for t in (coo, csr, batch, rows, coo.to_sparse_csr(), csr.to_sparse_coo(2), dense.to_sparse_coo(2),
                                dense.to_sparse_coo(1), dense.to_sparse_csr())],
            [t.to_dense() for t in (coo, csr, batch, rows)], kinds,
            raised(lambda: paddle.sparse.sparse_coo_tensor([[0, 1]], [1.0])),
            raised(lambda: paddle.sparse.sparse_coo_tensor([[0, 9]], [1.0, 2.0], [3])),
            raised(lambda: paddle.sparse.sparse_csr_tensor([0, 1], [0], [1.0], [3])), texts)


@case(*(S + n for n in "abs asin asinh atan atanh deg2rad expm1 isnan log1p neg pow rad2deg sin sinh sqrt square tan tanh cast"
        .split()))
def of_values():
    x = matrix(0.1, 0.9)
    csr = x.to_sparse_csr()
    names = "abs asin asinh atan atanh expm1 log1p neg sin sinh sqrt square tan tanh deg2rad rad2deg".split()
    out = [getattr(paddle.sparse, n)(x) for n in names] + [paddle.sparse.pow(x, 3), paddle.sparse.cast(x, None, "float64")]
    return [t.values() for t in out], [getattr(paddle.sparse, n)(csr).values().detach() for n in names], \
        paddle.sparse.isnan(x).values()


@case(S + "add", S + "subtract", S + "multiply", S + "divide", S + "is_same_shape", "paddle.Tensor.is_same_shape", grad=False)
def of_two():
    x = matrix()
    y = paddle.sparse.sparse_coo_tensor([[0, 1, 3, 3], [1, 0, 1, 3]], rand(4, low=0.5, high=2.0), [4, 5])
    pairs = ((x, y), (x.to_sparse_csr(), y.to_sparse_csr()))
    same = paddle.sparse.sparse_coo_tensor(AT, [1.0] * 5, [4, 5])
    return ([f(*p).to_dense() for p in pairs for f in (paddle.sparse.add, paddle.sparse.subtract, paddle.sparse.multiply)],
            [parts(paddle.sparse.add(*p)) for p in pairs], paddle.sparse.divide(x, y).to_dense(),
            parts(paddle.sparse.multiply(x, same)), paddle.sparse.is_same_shape(x, y), x.is_same_shape(paddle.ones([4, 5])),
            paddle.sparse.is_same_shape(paddle.ones([1]), x))


@case(S + "coalesce", "paddle.Tensor.coalesce", S + "transpose", S + "reshape", S + "slice", S + "sum", grad=False)
def moving():
    x, csr = matrix(), matrix().to_sparse_csr()
    twice = paddle.sparse.sparse_coo_tensor([[1, 0, 1], [1, 0, 1]], [1.0, 2.0, 3.0])
    cube = paddle.sparse.sparse_coo_tensor([[0, 1, 1], [2, 0, 1], [1, 0, 1]], rand(3), [2, 3, 2])
    made = [paddle.sparse.coalesce(twice), twice.coalesce(), paddle.sparse.transpose(csr, [1, 0]),
            paddle.sparse.reshape(x, [2, -1]), paddle.sparse.reshape(csr, [2, 10]), paddle.sparse.reshape(cube, [1, 0, -1]),
            paddle.sparse.slice(x, [0, 1], [1, -3], [3, 5]), paddle.sparse.slice(csr, [0], [1], [4])]
    dense = [paddle.sparse.transpose(x, [1, 0]), paddle.sparse.transpose(cube, [2, 0, 1]), paddle.sparse.sum(x),
             paddle.sparse.sum(x, 0), paddle.sparse.sum(x, -1, keepdim=True), paddle.sparse.sum(cube, 1)]
    return [parts(t) for t in made], [t.to_dense() for t in dense]


@case(S + "nn.functional.relu", S + "nn.functional.relu6", S + "nn.functional.leaky_relu", S + "nn.functional.softmax",
      S + "nn.ReLU", S + "nn.ReLU6", S + "nn.LeakyReLU", S + "nn.Softmax")
def activations():
    x = matrix(-3.0, 8.0)
    csr = x.to_sparse_csr()
    F, nn = paddle.sparse.nn.functional, paddle.sparse.nn
    return [f(x).values() for f in (F.relu, F.relu6, F.leaky_relu, lambda t: F.leaky_relu(t, 0.3), nn.ReLU(), nn.ReLU6(),
                                    nn.LeakyReLU(0.2))] + [F.softmax(csr).values().detach(), nn.Softmax()(csr).values().detach()]


def points(channels=2, n=6):
    at = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 2, 2], [1, 1, 2, 3, 0, 1], [0, 2, 1, 1, 3, 3]])[:, :n]
    return paddle.sparse.sparse_coo_tensor(at, rand(n, channels), [2, 3, 4, 4, channels], stop_gradient=False)


@case(S + "nn.functional.conv3d", S + "nn.functional.subm_conv3d", S + "nn.functional.max_pool3d", S + "nn.MaxPool3D")
def convolutions():
    F, x, w, b = paddle.sparse.nn.functional, points(), rand(3, 3, 3, 2, 4), rand(4)
    small = rand(1, 2, 2, 2, 3)
    return (F.conv3d(x, w, b, 1, 1).to_dense(), F.conv3d(x, small, None, [1, 2, 1]).to_dense(),
            F.subm_conv3d(x, w, b, 1, 1).to_dense(), F.subm_conv3d(x, w).values(),
            F.max_pool3d(x, 2, 2).to_dense(), paddle.sparse.nn.MaxPool3D([1, 2, 2], 1)(x).to_dense())


@case(S + "nn.Conv3D", S + "nn.SubmConv3D", S + "nn.BatchNorm", grad=False)
def layers():
    out = []
    for cls, options in ((paddle.sparse.nn.Conv3D, {"padding": 1}), (paddle.sparse.nn.SubmConv3D, {"padding": 1})):
        layer = cls(2, 3, 3, **options)
        layer.weight.set_value(array(3, 3, 3, 2, 3).astype("float32"))
        layer.bias.set_value(array(3).astype("float32"))
        made = layer(points())
        made.to_dense().sum().backward()
        out += [made.to_dense(), layer.weight.grad, layer.bias.grad, sorted(layer.state_dict())]
    norm, x = paddle.sparse.nn.BatchNorm(2), points()
    out += [norm(x).values(), norm._mean, norm._variance, sorted(norm.state_dict())]
    still = paddle.sparse.nn.BatchNorm(2)  # Paddle's takes a batch's statistics for ever once it was trained
    still.eval()
    return out + [still(x).values()]
