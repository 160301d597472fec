"""nn.initializer: exact ones by value, drawn ones by their moments and bounds."""
import numpy as np
import paddle
from paddle import nn

from parity import case, raised

I = nn.initializer
N = "paddle.nn.initializer."


def made(init, shape, dtype="float32"):
    return paddle.create_parameter(shape, dtype, default_initializer=init).numpy()


@case(N + "Constant", N + "Assign", N + "Dirac", N + "Bilinear", grad=False)
def exact():
    return (made(I.Constant(2.5), [2, 3]), made(I.Assign(np.arange(6.0).reshape(2, 3)), [2, 3]),
            made(I.Assign([1, 2, 3]), [3]), made(I.Assign(paddle.to_tensor([1.0, 2.0])), [2]),
            made(I.Assign(np.ones((2, 3))), [4]),  # a shape that differs: the values have it
            made(I.Dirac(), [4, 3, 3]), made(I.Dirac(groups=2), [4, 2, 3, 3]), made(I.Dirac(), [2, 2, 3, 2, 3]),
            made(I.Bilinear(), [2, 1, 4, 4]), made(I.Bilinear(), [1, 1, 3, 3]), made(I.Constant(1.5), [2], "float64"))


@case(N + "Orthogonal", grad=False)
def orthogonal():
    a, b, c = made(I.Orthogonal(), [3, 5]), made(I.Orthogonal(gain=2.0), [6, 2]), made(I.Orthogonal(), [4, 2, 3])
    return a @ a.T, b.T @ b, c.reshape(4, 6) @ c.reshape(4, 6).T


@case(N + "Normal", N + "Uniform", N + "TruncatedNormal", grad=False, tol=0.03)  # moments of drawn numbers
def drawn():
    big = [200, 300]
    u, t = made(I.Uniform(-2.0, 3.0), big), made(I.TruncatedNormal(1.0, 0.5), big)
    n = made(I.Normal(1.0, 2.0), big)
    return (float(n.mean()), float(n.std()), float(u.mean()), float(u.std()), float(u.min()), float(u.max()),
            float(t.mean()), float(t.std()), float(t.min()), float(t.max()))


@case(N + "XavierNormal", N + "XavierUniform", N + "KaimingNormal", N + "KaimingUniform", grad=False,
      tol=0.03)  # moments of drawn numbers
def fans():
    result = []
    for init in (I.XavierNormal(), I.XavierUniform(), I.XavierUniform(fan_in=3, fan_out=5), I.KaimingNormal(),
                 I.KaimingUniform(), I.KaimingUniform(fan_in=4), I.KaimingNormal(None, 0.2, "leaky_relu")):
        for shape in ([200, 300], [40, 50, 5, 5]):
            result.append(float(made(init, shape).std()) * 10)
    return result


@case(N + "calculate_gain", grad=False)
def gains():
    names = ("sigmoid", "linear", "conv2d", "conv1d_transpose", "tanh", "relu", "leaky_relu", "selu")
    return ([float(I.calculate_gain(n)) for n in names], I.calculate_gain("leaky_relu", 0.5),
            raised(lambda: I.calculate_gain("none_such")))


@case(N + "set_global_initializer", grad=False)
def global_initializer():
    I.set_global_initializer(I.Constant(2.0), I.Constant(1.0))
    a = nn.Linear(2, 2)
    b = nn.Linear(2, 2, weight_attr=I.Constant(5.0))
    I.set_global_initializer(None)
    return a.weight, a.bias, b.weight
