"""Normalizations: functions and layers, training and evaluation, running statistics, layouts, state names."""
import paddle
import paddle.nn.functional as F
from parity import case, fill, rand

N = "paddle.nn.functional."
L = "paddle.nn."
SHAPE = {1: [4, 3, 6], 2: [4, 3, 5, 6], 3: [2, 3, 3, 4, 2]}


def add(name, names, fn, **options):
    fn.__name__ = name
    case(*names, tol=1e-4, **options)(fn)  # quotients of sums


for n in (1, 2, 3):
    def batch(n=n):
        m = fill(getattr(paddle.nn, f"BatchNorm{n}D")(3, momentum=0.8))
        x = rand(*SHAPE[n])
        first = m(x)
        mean, variance = m._mean.clone(), m._variance.clone()
        m.eval()
        return first, mean, variance, m(x), repr(m), list(m.state_dict()), [p.name for p in m.parameters()][:0]
    add(f"batch_norm_{n}d", [L + f"BatchNorm{n}D", N + "batch_norm"], batch)

    def instance(n=n):
        m = fill(getattr(paddle.nn, f"InstanceNorm{n}D")(3))
        bare = getattr(paddle.nn, f"InstanceNorm{n}D")(3, weight_attr=False, bias_attr=False)
        x = rand(*SHAPE[n])
        return m(x), bare(x), repr(m), list(m.state_dict()), F.instance_norm(x)
    add(f"instance_norm_{n}d", [L + f"InstanceNorm{n}D", N + "instance_norm"], instance)


def functional_batch_norm():
    mean, variance = paddle.zeros([3]), paddle.ones([3])
    w, b, x = rand(3), rand(3), rand(4, 3, 5)
    fixed = paddle.full([3], 0.5)
    return (F.batch_norm(x, mean, variance, w, b, training=True), mean, variance,
            F.batch_norm(x, fixed, fixed, w, b), F.batch_norm(x, mean, variance, training=True, use_global_stats=False),
            F.batch_norm(rand(4, 5, 3), mean, variance, w, b, True, data_format="NLC"))


def batch_norm_forms():
    m = fill(paddle.nn.BatchNorm(3, act="relu"))
    s = fill(paddle.nn.BatchNorm1D(3, use_global_stats=True))
    last = fill(paddle.nn.BatchNorm2D(3, data_format="NHWC"))
    return m(rand(4, 3, 5)), s(rand(4, 3)), last(rand(2, 4, 5, 3)), m._mean, repr(last)


def one_value_a_channel():
    """x passes, its gradient too; the parameters' gradients are zeros, and the running statistics stay."""
    result = []
    for kind, shape, options in (("1D", (1, 3), {}), ("1D", (1, 3, 1), {}), ("2D", (1, 3, 1, 1), {}),
                                 ("2D", (1, 1, 1, 3), {"data_format": "NHWC"}), ("3D", (1, 3, 1, 1, 1), {}),
                                 ("1D", (1, 3), {"use_global_stats": True})):
        m = fill(getattr(paddle.nn, f"BatchNorm{kind}")(3, **options))
        x = rand(*shape)
        y = m(x)
        (y * y).sum().backward()
        result += [y.detach(), x.grad, m.weight.grad, m.bias.grad, m._mean, m._variance]
        m.eval()
        result.append(m(x).detach())
    relu = paddle.nn.BatchNorm(3, act="relu")
    return result, relu(paddle.to_tensor([[-1.0, 2.0, 3.0]]))


def sync_batch_norm():
    net = paddle.nn.Sequential(paddle.nn.Conv2D(2, 3, 1), paddle.nn.BatchNorm2D(3))
    made = paddle.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    return type(made[1]).__name__, list(made.state_dict()), type(paddle.nn.SyncBatchNorm(3)).__name__


def layer_norm():
    m, two = fill(paddle.nn.LayerNorm(6)), fill(paddle.nn.LayerNorm([3, 6], epsilon=1e-3))
    bare = paddle.nn.LayerNorm(6, weight_attr=False, bias_attr=False)
    x = rand(2, 3, 6)
    return (m(x), two(x), bare(x), F.layer_norm(x, 6), F.layer_norm(x, (3, 6), rand(18), rand(18)), repr(m),
            list(two.state_dict()), F.layer_norm(rand(2, 6, dtype="float64"), [6]))


def group_norm():
    m, bare = fill(paddle.nn.GroupNorm(3, 6)), paddle.nn.GroupNorm(2, 6, weight_attr=False, bias_attr=False)
    x = rand(2, 6, 4, 5)
    return m(x), bare(x), repr(m), list(bare.state_dict()), bare.weight.stop_gradient, m.weight.stop_gradient


def normalize():
    x = rand(3, 4)
    return F.normalize(x), F.normalize(x, p=1, axis=0), F.normalize(x, 3)


def local_response():
    m = paddle.nn.LocalResponseNorm(3, alpha=0.1)
    x = rand(2, 6, 4, 5)
    return (F.local_response_norm(x, 3, 0.2), F.local_response_norm(rand(2, 5, 4), 4, 0.2),
            F.local_response_norm(rand(2, 4, 5, 6), 3, 0.2, data_format="NHWC"), m(x), repr(m),
            F.local_response_norm(rand(1, 5, 2, 3, 2), 3, 0.3, data_format="NCDHW"))


def spectral():
    m = fill(paddle.nn.SpectralNorm([4, 3, 2], dim=1, power_iters=2))
    return m(rand(4, 3, 2)), list(m.state_dict())


add("functional_batch_norm", [N + "batch_norm"], functional_batch_norm)
add("batch_norm_forms", [L + "BatchNorm", L + "BatchNorm2D"], batch_norm_forms)
add("one_value_a_channel", [L + f"BatchNorm{n}D" for n in (1, 2, 3)], one_value_a_channel, grad=False)
add("sync_batch_norm", [L + "SyncBatchNorm", L + "SyncBatchNorm.convert_sync_batchnorm"], sync_batch_norm)
add("layer_norm", [N + "layer_norm", L + "LayerNorm"], layer_norm)
add("group_norm", [L + "GroupNorm"], group_norm)
add("normalize", [N + "normalize"], normalize)
add("local_response", [N + "local_response_norm", L + "LocalResponseNorm"], local_response)
# real Paddle's gradient is not the derivative of W / (u · W · v) with u and v constant, which ours is
add("spectral", [L + "SpectralNorm"], spectral, grad=False)
