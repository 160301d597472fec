"""Convolutions, pooling and their layers: padding forms, strides, dilation, groups, layouts, masks."""
import paddle
import paddle.nn.functional as F
from parity import case, fill, raised, rand

N = "paddle.nn.functional."
SPACE = {1: [9], 2: [7, 8], 3: [5, 6, 4]}
FIRST = {1: "NCL", 2: "NCHW", 3: "NCDHW"}
LAST = {1: "NLC", 2: "NHWC", 3: "NDHWC"}


def add(name, names, fn, **options):
    fn.__name__ = name
    case(*names, **options)(fn)


for n in (1, 2, 3):
    def conv(n=n):
        f, x = getattr(F, f"conv{n}d"), rand(2, 4, *SPACE[n])
        w, b = rand(6, 4, *[3] * n), rand(6)
        return (f(x, w), f(x, w, b, 2, 1), f(x, w, b, stride=[2] * n, padding=[1] * n, dilation=[1] * n),
                f(x, w, padding="SAME"), f(x, w, padding="valid"), f(x, w, padding=[1, 2] * n),
                f(x, rand(6, 2, *[2] * n), b, dilation=2, groups=2), f(x, rand(4, 1, *[2] * n), groups=4),
                f(rand(2, *SPACE[n], 4), w, b, padding=1, data_format=LAST[n]))
    add(f"conv{n}d", [N + f"conv{n}d"], conv, tol=1e-4)  # sums of up to 108 products, in an order of its own

    def double(n=n):
        return getattr(F, f"conv{n}d")(rand(1, 2, *SPACE[n], dtype="float64"), rand(3, 2, *[2] * n, dtype="float64"))
    add(f"conv{n}d_float64", [N + f"conv{n}d"], double)

    def transposed(n=n):
        f, x = getattr(F, f"conv{n}d_transpose"), rand(2, 4, *SPACE[n])
        w, b = rand(4, 3, *[3] * n), rand(3)
        return (f(x, w), f(x, w, b, stride=2, padding=1), f(x, w, b, stride=2, padding=1, output_padding=1),
                f(x, w, stride=2, output_size=[2 * s + 2 for s in SPACE[n]]),
                f(x, rand(4, 2, *[2] * n), groups=2, dilation=2))
    add(f"conv{n}d_transpose", [N + f"conv{n}d_transpose"], transposed, tol=1e-4)  # as conv

    def layers(n=n):
        c, t = getattr(paddle.nn, f"Conv{n}D"), getattr(paddle.nn, f"Conv{n}DTranspose")
        net = [fill(c(4, 6, 3)), fill(c(4, 6, 3, 2, 1, bias_attr=False)), fill(c(4, 4, 2, groups=4, dilation=2)),
               fill(c(4, 2, 3, padding=1, padding_mode="replicate")), fill(t(4, 3, 3, stride=2, padding=1)),
               fill(t(4, 3, 3, stride=2, output_padding=1))]
        x = rand(2, 4, *SPACE[n])
        return [m(x) for m in net], [repr(m) for m in net], [list(m.state_dict()) for m in net], net[0].weight
    add(f"conv{n}d_layers", [f"paddle.nn.Conv{n}D", f"paddle.nn.Conv{n}DTranspose", f"paddle.nn.Conv{n}D.weight",
                             f"paddle.nn.Conv{n}D.bias"], layers, tol=1e-4)  # as conv

    def avg(n=n):
        f, x = getattr(F, f"avg_pool{n}d"), rand(2, 3, *SPACE[n])
        m = getattr(paddle.nn, f"AvgPool{n}D")(2, 2)
        more = [] if n == 1 else [f(x, 2, divisor_override=3), f(rand(2, *SPACE[n], 3), 2, data_format=LAST[n])]
        return [f(x, 2), f(x, 3, 2, 1), f(x, 3, 2, 1, exclusive=False), f(x, 3, 2, 1, ceil_mode=True),
                f(x, [2] * n, stride=[1] * n, padding="SAME"), f(x, 2, 2, 2, exclusive=False), m(x), repr(m)] + more
    add(f"avg_pool{n}d", [N + f"avg_pool{n}d", f"paddle.nn.AvgPool{n}D"], avg)

    def largest(n=n):
        f, x = getattr(F, f"max_pool{n}d"), rand(2, 3, *SPACE[n])
        m = getattr(paddle.nn, f"MaxPool{n}D")(3, 2, 1)
        return [f(x, 2), f(x, 3, 2, 1), f(x, 3, 2, 1, ceil_mode=True), f(x, 2, padding="VALID"),
                f(x, 2, return_mask=True), f(x, 3, 2, 1, True), f(x, 2, 2, 3), m(x), repr(m)]
    add(f"max_pool{n}d", [N + f"max_pool{n}d", f"paddle.nn.MaxPool{n}D"], largest)

    def adaptive(n=n):
        x, out = rand(2, 3, *SPACE[n]), [3, 2, 2][:n] if n > 1 else 3
        a, b = getattr(paddle.nn, f"AdaptiveAvgPool{n}D")(2), getattr(paddle.nn, f"AdaptiveMaxPool{n}D")(out, True)
        free = [] if n == 1 else [getattr(F, f"adaptive_avg_pool{n}d")(x, [None] + [2] * (n - 1))]
        return [getattr(F, f"adaptive_avg_pool{n}d")(x, out), getattr(F, f"adaptive_max_pool{n}d")(x, out),
                getattr(F, f"adaptive_max_pool{n}d")(x, 2, return_mask=True), a(x), b(x), repr(a), repr(b)] + free
    add(f"adaptive_pool{n}d", [N + f"adaptive_avg_pool{n}d", N + f"adaptive_max_pool{n}d",
                               f"paddle.nn.AdaptiveAvgPool{n}D", f"paddle.nn.AdaptiveMaxPool{n}D"], adaptive)

    def unpooled(n=n):
        x = rand(1, 2, *[6] * n)
        out, mask = getattr(F, f"max_pool{n}d")(x, 2, 2, return_mask=True)
        return getattr(F, f"max_unpool{n}d")(out, mask, 2, 2), getattr(paddle.nn, f"MaxUnPool{n}D")(2, 2)(out, mask)
    add(f"max_unpool{n}d", [N + f"max_unpool{n}d", f"paddle.nn.MaxUnPool{n}D"], unpooled)


@case(N + "conv2d", grad=False)
def conv2d_refuses():
    x, w = rand(1, 4, 5, 5), rand(2, 4, 3, 3)
    return [raised(lambda: F.conv2d(x, w, padding="half"), ValueError),
            raised(lambda: F.conv2d(x, w, data_format="NCL"), ValueError),
            raised(lambda: F.conv2d(x, w, padding=-1), ValueError),
            raised(lambda: F.conv2d(x, w, stride=[1, 2, 3]), ValueError),
            raised(lambda: F.conv2d(x, w, groups=3), ValueError)]


@case(N + "conv2d")
def conv2d_padding_of_all_axes():
    x, w = rand(1, 2, 5, 6), rand(2, 2, 3, 3)
    return F.conv2d(x, w, padding=[[0, 0], [0, 0], [1, 2], [0, 1]])
