"""Family `kernels`: one op a row, forward, or forward and backward together ("f+b", as eager users call it). Tensors of
the memory-bound rows are 64 MiB: beyond the caches. Over an adapter of frameworks.py."""
import functools

import numpy as np
from common import Row, Unit
from frameworks import integers, random

MIB = 2 ** 20


@functools.lru_cache(maxsize=16)
def tiled(*shape):
    """Numbers without the cost of drawing each."""
    return np.resize(random(4099), shape)


def forward(function, *arrays):
    def make(fw):
        inputs = [fw.tensor(a()) for a in arrays]
        return lambda: function(fw, *inputs)
    return make


def backward(function, *arrays, fixed=0):
    """The last `fixed` arrays want no gradient."""
    def make(fw):
        inputs = [fw.tensor(a(), grad=i < len(arrays) - fixed) for i, a in enumerate(arrays)]
        wanted = inputs[:len(inputs) - fixed]
        with fw.no_grad():
            shape = tuple(function(fw, *inputs).shape)
        seed = fw.tensor(tiled(*shape))

        def call():
            fw.backward(function(fw, *inputs), seed)
            for tensor in wanted:
                fw.clear(tensor)
        return call
    return make


def normal(*shape):
    return lambda: tiled(*shape)


# ---- products -----------------------------------------------------------------------------------------------------------

def matmul_rows(tiny):
    def row(name, batch, m, k, n):
        lead = (batch,) if batch > 1 else ()
        title = f"{name}, {'×'.join(str(v) for v in lead + (m, k, n))}"
        m, k, n = (max(1, v // 64) for v in (m, k, n)) if tiny else (m, k, n)
        y = normal(*lead, k, n) if n > 1 else normal(k)
        return Row(title, forward(lambda fw, x, y: fw.t.matmul(x, y), normal(*lead, m, k), y),
                   2.0 * batch * m * k * n, 4.0 * batch * (m * k + k * n + m * n), "read")
    return [row("sgemm square", 1, 1024, 1024, 1024), row("sgemm tall", 1, 16384, 256, 256),
            row("sgemm thin", 1, 64, 4096, 1024), row("sgemm batched", 64, 128, 64, 128),
            row("sgemm small batched", 512, 32, 32, 32), row("gemv", 1, 4096, 4096, 1)]


def linear_rows(tiny):
    rows, inputs, outputs = (4, 8, 8) if tiny else (2048, 512, 512)
    f = lambda fw, x, w, b: fw.t.matmul(x, w) + b
    return [Row("linear f+b, 2048×512→512",
                backward(f, normal(rows, inputs), normal(inputs, outputs), normal(outputs)),
                6.0 * rows * inputs * outputs)]


# ---- convolutions -------------------------------------------------------------------------------------------------------

def conv_rows(tiny):
    def rows(name, n, c, o, side, k, stride=1, groups=1):
        title = f"{name}, {n}×{c}×{side}×{side}→{o}"
        n, c, o, side, groups = (1, 4, 4, 7, 4 if groups > 1 else 1) if tiny else (n, c, o, side, groups)
        pad, out = k // 2, (side + 2 * (k // 2) - k) // stride + 1
        flops = 2.0 * n * o * out * out * (c // groups) * k * k
        moved = 4.0 * n * (c * side * side + o * out * out)
        f = lambda fw, x, w: fw.F.conv2d(x, w, None, stride, pad, 1, groups)
        arrays = normal(n, c, side, side), normal(o, c // groups, k, k)
        return [Row(title, forward(f, *arrays), flops, moved),
                Row(title + " f+b", backward(f, *arrays), 3 * flops, 3 * moved)]
    return [*rows("conv 3×3", 16, 64, 64, 56, 3), *rows("conv 3×3", 16, 256, 256, 14, 3),
            *rows("conv 3×3 deep", 16, 512, 512, 2, 3), *rows("conv 1×1", 16, 64, 256, 56, 1),
            *rows("conv 3×3 stride 2", 16, 64, 128, 56, 3, 2), *rows("conv 5×5 LeNet", 64, 6, 16, 14, 5),
            *rows("depthwise 3×3", 16, 192, 192, 56, 3, 1, 192),
            *rows("depthwise 3×3 stride 2", 16, 192, 192, 56, 3, 2, 192)]


# ---- normalization, activations ------------------------------------------------------------------------------------------

def norm_rows(tiny):
    rows, width = (4, 8) if tiny else (16384, 1024)
    n, c, side = (2, 4, 4) if tiny else (16, 64, 128)
    size = 4.0 * rows * width
    image = 4.0 * n * c * side * side

    def softmax(fw, x):
        return fw.F.softmax(x, -1)

    def layer_norm(fw, x, w, b):
        return fw.F.layer_norm(x, [width], w, b)

    def batch_norm(fw, x, w, b, mean, var):
        return fw.batch_norm(x, mean, var, w, b, True)

    ln = normal(rows, width), normal(width), normal(width)
    bn = normal(n, c, side, side), normal(c), normal(c), lambda: np.zeros(c, "f4"), lambda: np.ones(c, "f4")
    return [Row("softmax", forward(softmax, normal(rows, width)), bytes=2 * size),
            Row("softmax f+b", backward(softmax, normal(rows, width)), bytes=5 * size),
            Row("layer norm", forward(layer_norm, *ln), bytes=2 * size),
            Row("layer norm f+b", backward(layer_norm, *ln), bytes=5 * size),
            Row("batch norm, training", forward(batch_norm, *bn), bytes=3 * image),
            Row("batch norm, training f+b", backward(batch_norm, *bn, fixed=2), bytes=8 * image)]


def elementwise_rows(tiny):
    n = 64 if tiny else 16 * MIB
    x, size = normal(n), 4.0 * n

    def chain(fw, x, y):
        return x * fw.F.sigmoid(x) + 2.0 * y
    single = {"relu": lambda fw, x: fw.F.relu(x), "tanh": lambda fw, x: fw.t.tanh(x),
              "GELU": lambda fw, x: fw.F.gelu(x), "SiLU": lambda fw, x: fw.F.silu(x),
              "exp": lambda fw, x: fw.t.exp(x)}
    rows = [Row(name, forward(f, x), bytes=2 * size) for name, f in single.items()]
    rows += [Row(name + " f+b", backward(single[name], x), bytes=5 * size) for name in ("GELU", "SiLU", "tanh")]
    return rows + [
        Row("x + y", forward(lambda fw, x, y: x + y, x, x), bytes=3 * size, limit="triad"),
        Row("x += y", forward(lambda fw, x, y: fw.add_(x, y), x, x), bytes=3 * size, limit="triad"),
        Row("x·sigmoid(x) + 2y", forward(chain, x, x), bytes=3 * size, limit="triad"),
        Row("dropout 0.1", forward(lambda fw, x: fw.F.dropout(x, 0.1), x), bytes=2 * size),
        Row("dropout 0.1 f+b", backward(lambda fw, x: fw.F.dropout(x, 0.1), x), bytes=4 * size),
        Row("cast float32 → float16", forward(lambda fw, x: fw.cast(x, "float16"), x), bytes=1.5 * size),
        Row("cast float32 → int32", forward(lambda fw, x: fw.cast(x, "int32"), x), bytes=2 * size)]


# ---- loss, attention, embedding ------------------------------------------------------------------------------------------

def loss_rows(tiny):
    rows, words = (4, 32) if tiny else (512, 30522)
    size = 4.0 * rows * words

    def entropy(fw, x, labels):
        return fw.F.cross_entropy(x, labels)

    def labels():
        return integers(words, rows)
    return [Row("cross-entropy, 512×30522", forward(entropy, normal(rows, words), labels), bytes=size, limit="read"),
            Row("cross-entropy f+b, 512×30522", backward(entropy, normal(rows, words), labels, fixed=1),
                bytes=3 * size, limit="triad")]


def attention_rows(tiny):
    b, n, h, d = (1, 8, 2, 4) if tiny else (2, 1024, 8, 64)
    qkv = (normal(b, n, h, d),) * 3
    rows = []
    for causal in (False, True):
        f = lambda fw, q, k, v, causal=causal: fw.attention(q, k, v, causal)
        flops = 4.0 * b * h * n * n * d * (0.5 if causal else 1)
        name = f"attention{', causal' if causal else ''}, 2×1024×8×64"
        rows += [Row(name, forward(f, *qkv), flops), Row(name + " f+b", backward(f, *qkv), 3.5 * flops)]
    return rows


def index_rows(tiny):
    words, width, n = (16, 4, 8) if tiny else (50000, 512, 16384)
    size, rows = 4.0 * n * width, lambda: integers(words, n)

    def embedding(fw, table, index):
        return fw.F.embedding(index, table)
    a, b = (4, 8) if tiny else (4096, 4096)
    image = (2, 3, 4, 5) if tiny else (16, 256, 64, 64)
    x, moved = normal(a, b), 8.0 * a * b

    def laid_out(order):
        """Transposed in memory, too: transposing alone is a view."""
        return lambda fw, x: fw.permute(x, order).contiguous()
    return [Row("embedding", forward(embedding, normal(words, width), rows), bytes=2 * size),
            Row("embedding f+b", backward(embedding, normal(words, width), rows, fixed=1),
                bytes=4 * size + 4.0 * words * width),
            Row("gather rows", forward(lambda fw, x, i: fw.gather(x, i), normal(words, width), rows), bytes=2 * size),
            Row("scatter-add rows", forward(lambda fw, x, i, y: fw.scatter_add(x, i, y), normal(words, width), rows,
                                            normal(n, width)), bytes=3 * size + 8.0 * words * width),
            Row("transpose, 4096×4096", forward(laid_out([1, 0]), x), bytes=moved),
            Row("transpose NCHW → NHWC", forward(laid_out([0, 2, 3, 1]), normal(*image)),
                bytes=8.0 * np.prod(image)),
            Row("concat of two", forward(lambda fw, x: fw.concat([x, x], 1), x), bytes=1.5 * moved)]


# ---- reductions, sorting, optimizers -------------------------------------------------------------------------------------

def reduce_rows(tiny):
    shape = (2, 3, 4) if tiny else (256, 256, 256)
    x, size = normal(*shape), 4.0 * np.prod(shape)
    rows = [Row(f"sum, axis {axis}", forward(lambda fw, x, axis=axis: x.sum(axis), x), bytes=size, limit="read")
            for axis in (0, 1, 2)]
    return rows + [Row("sum of all", forward(lambda fw, x: x.sum(), x), bytes=size, limit="read"),
                   Row("max, last axis", forward(lambda fw, x: fw.t.amax(x, -1), x), bytes=size, limit="read"),
                   Row("argmax, last axis", forward(lambda fw, x: x.argmax(-1), x), bytes=size, limit="read"),
                   Row("mean and variance, last axis", forward(lambda fw, x: (x.mean(-1), x.var(-1)), x), bytes=size,
                       limit="read"),
                   Row("cumsum, last axis", forward(lambda fw, x: fw.t.cumsum(x, -1), x), bytes=2 * size)]


def sort_rows(tiny):
    n, rows, width = (16, 4, 8) if tiny else (1000000, 512, 30000)
    return [Row("argsort of 1 M", forward(lambda fw, x: fw.t.argsort(x), lambda: random(n)), bytes=n, limit="radix"),
            Row("sort of 1 M", forward(lambda fw, x: fw.t.sort(x), lambda: random(n)), bytes=n, limit="radix"),
            Row("top 10 of 30000, 512 rows", forward(lambda fw, x: fw.t.topk(x, min(10, width)),
                                                           lambda: random(rows, width)),
                bytes=4.0 * rows * width, limit="read")]


def optimizer_rows(tiny):
    side, count = (4, 2) if tiny else (1000, 25)

    def make(kind):
        def prepare(fw):
            class Net(fw.Module):
                def __init__(self):
                    super().__init__()
                    self.parts = fw.modules([fw.nn.Linear(side, side) for _ in range(count)])
            net = Net()
            step = fw.optimizer(kind, net.parameters())
            for p in net.parameters():
                fw.set_grad(p, tiled(*p.shape))
            return step.step
        return prepare
    n = 4.0 * count * side * side
    return [Row("SGD step, 25 M", make("sgd"), bytes=3 * n, limit="triad"),
            Row("Momentum step, 25 M", make("momentum"), bytes=5 * n, limit="triad"),
            Row("Adam step, 25 M", make("adam"), bytes=7 * n, limit="adam"),
            Row("AdamW step, 25 M", make("adamw"), bytes=7 * n, limit="adam")]


def units(tiny=False):
    return [Unit("products", (*matmul_rows(tiny), *linear_rows(tiny), *attention_rows(tiny))),
            Unit("convolutions", tuple(conv_rows(tiny))),
            Unit("elementwise", (*elementwise_rows(tiny), *norm_rows(tiny))),
            Unit("rows", (*loss_rows(tiny), *index_rows(tiny), *reduce_rows(tiny), *sort_rows(tiny),
                          *optimizer_rows(tiny)))]
