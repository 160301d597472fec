"""Activations of nn.functional and their layers: values, gradients, dtypes, settings, in-place twins."""
import paddle
import paddle.nn.functional as F
from parity import case, fill, rand


def add(name, names, fn, **options):
    fn.__name__ = name
    case(*names, **options)(fn)


PLAIN = {"hardswish": "Hardswish", "log_sigmoid": "LogSigmoid", "mish": "Mish", "relu": "ReLU", "relu6": "ReLU6",
         "sigmoid": "Sigmoid", "silu": "Silu", "softsign": "Softsign", "swish": "Swish", "tanh": "Tanh",
         "tanhshrink": "Tanhshrink", "hardsigmoid": "Hardsigmoid"}
for f, layer in PLAIN.items():
    for dtype in ("float32", "float64"):
        add(f"{f}_{dtype}", [f"paddle.nn.functional.{f}"],
            lambda f=f, d=dtype: getattr(F, f)(rand(3, 4, dtype=d, low=-8.0, high=8.0)),
            # Paddle rounds attributes (hardsigmoid's slope of 1/6) to float32 even where data are float64
            tol=1e-8 if (f, dtype) == ("hardsigmoid", "float64") else None)
    add(f"{f}_0d", [f"paddle.nn.functional.{f}"], lambda f=f: getattr(F, f)(x=rand()))
    add(f"{layer}_layer", [f"paddle.nn.{layer}"],
        lambda c=layer: (getattr(paddle.nn, c)()(rand(2, 5)), repr(getattr(paddle.nn, c)(name="n"))))

SET = {"celu": ("CELU", {"alpha": 0.75}), "elu": ("ELU", {"alpha": 0.5}), "gelu": ("GELU", {"approximate": True}),
       "hardshrink": ("Hardshrink", {"threshold": 0.25}), "hardtanh": ("Hardtanh", {"min": -0.5, "max": 1.25}),
       "leaky_relu": ("LeakyReLU", {"negative_slope": 0.25}), "selu": ("SELU", {"scale": 1.25, "alpha": 1.5}),
       "softplus": ("Softplus", {"beta": 2, "threshold": 3}), "softshrink": ("Softshrink", {"threshold": 0.25}),
       "thresholded_relu": ("ThresholdedReLU", {"threshold": 0.625}), "softmax": ("Softmax", {"axis": 0}),
       "log_softmax": ("LogSoftmax", {"axis": 1}), "glu": ("GLU", {"axis": 1})}
for f, (layer, how) in SET.items():
    add(f"{f}_default", [f"paddle.nn.functional.{f}"], lambda f=f: getattr(F, f)(rand(3, 4, low=-3.0, high=3.0)))
    add(f"{f}_set", [f"paddle.nn.functional.{f}"],
        lambda f=f, how=how: getattr(F, f)(rand(3, 4, dtype="float64", low=-3.0, high=3.0), **how))
    add(f"{f}_layer", [f"paddle.nn.{layer}"],
        lambda c=layer, how=how: (getattr(paddle.nn, c)(**how)(rand(2, 4)), repr(getattr(paddle.nn, c)(**how)),
                                  getattr(paddle.nn, c)()(rand(2, 4)), repr(getattr(paddle.nn, c)(name="n"))))

for f in ("relu_", "elu_", "tanh_", "softmax_"):
    def in_place(f=f):
        x = rand(3, 4)
        y = x * 1.0
        z = getattr(F, f)(y)
        return y, z, y is z
    add(f"{f}in_place", [f"paddle.nn.functional.{f}"], in_place)


@case("paddle.nn.functional.softmax", "paddle.nn.functional.log_softmax")
def softmax_casts():
    return F.softmax(rand(2, 3), axis=0, dtype="float64"), F.log_softmax(rand(2, 3), dtype="float64")


@case("paddle.nn.functional.maxout", "paddle.nn.Maxout")
def maxout():
    layer = paddle.nn.Maxout(3, axis=-1)
    return F.maxout(rand(2, 6, 3, 4), 3), layer(rand(1, 2, 2, 6)), repr(layer)


@case("paddle.nn.functional.prelu")
def prelu():
    return (F.prelu(rand(2, 3, 4), rand(1)), F.prelu(rand(2, 3, 4), rand(3)),
            F.prelu(rand(2, 4, 3), rand(3), data_format="NLC"))


@case("paddle.nn.PReLU")
def prelu_layer():
    layer = paddle.nn.PReLU(3, 0.1)
    return layer(rand(2, 3, 4)), repr(layer), [k for k in layer.state_dict()], layer._weight


@case("paddle.nn.functional.rrelu", "paddle.nn.RReLU")
def rrelu_outside_training():
    layer = paddle.nn.RReLU(0.1, 0.3)
    layer.eval()
    return F.rrelu(rand(3, 4), training=False), layer(rand(3, 4)), repr(layer)


@case("paddle.nn.Softmax2D")
def softmax2d():
    return paddle.nn.Softmax2D()(rand(2, 3, 4, 5)), paddle.nn.Softmax2D()(rand(3, 4, 5))


@case("paddle.nn.functional.gumbel_softmax", grad=False)
def gumbel_softmax_shape():
    hard = F.gumbel_softmax(rand(4, 5), hard=True)
    soft = F.gumbel_softmax(rand(4, 5), temperature=0.5)
    return hard.sum(-1), hard.max(-1), bool(((soft.sum(-1) - 1).abs() < 1e-5).all())


@case("paddle.nn.ReLU", "paddle.nn.Sequential")
def filled_chain():
    net = fill(paddle.nn.Sequential(paddle.nn.Linear(4, 3), paddle.nn.ReLU(), paddle.nn.PReLU()))
    return net(rand(2, 4))
