#!/usr/bin/env python3
"""Exports models with real Paddle 2.6.2 for the loading tests, with fixed random weights.

    export_models.py OUT          (run with the oracle's Python)

Writes OUT/<name>.pdmodel, .pdiparams, and <name>.npz with inputs in0, in1, … and eager outputs out0, ….
"""
import os
import pathlib
import sys

os.environ.setdefault("GLOG_minloglevel", "3")
import numpy as np
import paddle
from paddle import nn
from paddle.static import InputSpec


class Mlp(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.b(nn.functional.relu(self.a(x)))


class TwoInputs(nn.Layer):
    """Two inputs in an order that is not alphabetical, two outputs."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)

    def forward(self, z, a):
        h = self.linear(z)
        return h + a, paddle.mean(h, axis=1)


class Rnn(nn.Layer):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 7, num_layers=2, direction="bidirect")
        self.out = nn.Linear(14, 3)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, activation="gelu")
        self.embed = nn.Embedding(50, 32)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(32, 50)

    def forward(self, ids):
        return self.out(self.encoder(self.embed(ids)))


class Algebra(nn.Layer):
    """Every op of linear algebra that Paddle's programs have; of vectors, what does not depend on their signs."""

    def __init__(self):
        super().__init__()
        self.right = self.create_parameter([4, 2], default_initializer=nn.initializer.Constant(0.5))

    def forward(self, x):
        la, eye = paddle.linalg, paddle.eye(4)
        a, s = x * 0.3 + 1.5 * eye, paddle.matmul(x, x, transpose_y=True) + eye
        factor, (q, r) = la.cholesky(s), la.qr(a)
        u, sigma, vh = la.svd(a)
        w, v = la.eigh(s)
        packed, pivots = la.lu(a)
        _, lower, upper = la.lu_unpack(packed, pivots)
        solution = la.lstsq(a, paddle.matmul(x, self.right), driver="gelsd")[0]
        numbers = [la.det(a), la.slogdet(a)[1], paddle.norm(x, "fro", [1, 2]), la.matrix_rank(a).astype("float32"),
                   paddle.sum(paddle.abs(la.eigvals(a)), axis=-1), paddle.abs(la.eig(s)[1]).sum(axis=[1, 2])]
        return (la.inv(a), la.solve(a, self.right), la.triangular_solve(a, self.right, upper=False), factor,
                la.cholesky_solve(paddle.matmul(x, self.right), factor), la.matrix_power(a, 3), q, r, paddle.abs(u),
                sigma, paddle.abs(vh), w, paddle.abs(v), la.eigvalsh(s, UPLO="U"), packed, lower, upper, solution,
                nn.functional.normalize(x, axis=1), paddle.norm(x, 3, axis=2, keepdim=True), la.pinv(a),
                paddle.stack([paddle.reshape(v, [-1]) for v in numbers], axis=1), x + la.multi_dot([self.right, self.right.t(), self.right])[:, :1])


class Tensors(nn.Layer):
    """Diagonals, products, counts, special functions, running extremes, repetition; rows of the batch stay apart."""

    def __init__(self):
        super().__init__()
        self.small = self.create_parameter([2, 2], default_initializer=nn.initializer.Constant(0.5))

    def forward(self, x):
        s, real, whole = nn.functional.sigmoid(x), "float32", paddle.cast(x * 3, "int64")
        pairs = paddle.as_complex(paddle.reshape(x, [-1, 6, 2]))
        top, at = paddle.cummax(x, axis=1)
        least, _ = paddle.cummin(x, axis=2)
        often, place = paddle.mode(whole, axis=2)
        runs, inverse, lengths = paddle.unique_consecutive(paddle.to_tensor([1, 1, 2, 3, 3]), True, True)
        fixed = paddle.concat([runs, inverse, lengths, paddle.histogram(self.small, 4), paddle.tril_indices(3, 2)[0],
                               paddle.bincount(runs, minlength=5), paddle.triu_indices(2, 3, 1)[1]]).astype(real)
        square, n = x[:, :, :3], paddle.increment(paddle.zeros([1]), 2.0)
        return (paddle.diagonal(x, 1, 1, 2), x + paddle.trace(x, 0, 1, 2).reshape([-1, 1, 1]), paddle.diag_embed(x, 1),
                fixed + x[:, 0, :1],
                paddle.matmul(square, paddle.diag(x[0, 0, :3] * 0 + n)),
                paddle.matmul(square, paddle.diag(self.small.flatten()[:3])),
                paddle.kron(x, self.small), paddle.cross(square, square.flip(1), axis=1), top, at.astype(real), least,
                paddle.logcumsumexp(x, axis=2), often.astype(real), place.astype(real), paddle.logit(s, 0.125),
                paddle.repeat_interleave(x, 2, 1), paddle.repeat_interleave(x, paddle.to_tensor([1, 0, 2]), 1),
                paddle.isclose(x, paddle.round(x), 0.1, 0.1).astype(real), paddle.as_real(pairs * pairs),
                paddle.real(paddle.complex(x, s) * paddle.complex(s, s)), paddle.i0(x) + paddle.i0e(x) + paddle.i1(x),
                paddle.i1e(x) + paddle.polygamma(s, 1), paddle.renorm(x, 2.0, 0, 1.0), paddle.nextafter(x, s),
                paddle.shard_index((paddle.abs(whole) % 20).reshape([-1, 1]), 20, 3, 1).reshape([-1, 12]).astype(real),
                paddle.reverse(x, axis=1), paddle.multiplex([x, s], paddle.cast(x[:, 0, :1] > 0, "int32")),
                x + paddle.dist(self.small, self.small * 3), x + paddle.allclose(self.small, self.small).astype(real),
                x + paddle.equal_all(self.small, self.small).astype(real) + paddle.is_empty(self.small).astype(real))


class Control(nn.Layer):
    """Branches and loops that Paddle's own to_static writes: nested, with break, values swapped from step to step.
    What they decide by does not depend on the batch."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        steps, weight = paddle.zeros([1], "int64"), paddle.sum(self.linear.weight)
        a, b = x, self.linear(x)
        while steps < 5:
            a, b = b, a + 0.5 * b
            if paddle.cast(steps % 2, "bool"):
                a = paddle.tanh(a)
            else:
                b = b - 1
            steps = steps + 1
        i = paddle.zeros([1], "int32")
        while i < 4:
            a = a + paddle.cast(i, "float32")
            if i == 2:
                break
            i = i + 1
        chosen = paddle.static.nn.cond(weight < 1e6, lambda: (a * 2, b), lambda: (b, a))
        return chosen[0], chosen[1], b


class Unpooled(nn.Layer):
    """Largest values back at their places, as in SegNet: sizes that windows give, and ones that are said."""

    def __init__(self):
        super().__init__()
        self.conv, self.back = nn.Conv2D(2, 3, 3, padding=1), nn.Conv2D(3, 2, 3, padding=1)

    def forward(self, x):
        y, at = nn.functional.max_pool2d(self.conv(x), 2, 2, return_mask=True)
        deep, below = nn.functional.max_pool2d(y, 3, 2, return_mask=True)
        y = y + nn.functional.max_unpool2d(deep, below, 3, 2, output_size=[5, 6])
        return self.back(nn.functional.max_unpool2d(y, at, 2, 2))


class Normed(nn.Layer):
    """Its weights are made anew in every call and assigned to variables that the file holds, too: with old values."""

    def __init__(self):
        super().__init__()
        self.first = nn.utils.weight_norm(nn.Conv1D(2, 3, 3))
        self.second = nn.utils.spectral_norm(nn.Linear(6, 4))
        self(paddle.ones([1, 2, 8]))

    def forward(self, x):
        return self.second(self.first(x))


def models():
    from paddle.vision.models import LeNet, mobilenet_v2, resnet18
    image = InputSpec([None, 3, 64, 64], "float32", "image")
    x = np.random.RandomState(1)
    f = lambda *s: x.standard_normal(s).astype("float32")
    yield "mlp", Mlp(), [InputSpec([None, 8], "float32", "x")], [f(5, 8)]
    yield "two_inputs", TwoInputs(), [InputSpec([None, 6], "float32", "z"), InputSpec([None, 5], "float32", "a")], \
        [f(3, 6), f(3, 5)]
    yield "lenet", LeNet(), [InputSpec([None, 1, 28, 28], "float32", "image")], [f(3, 1, 28, 28)]
    yield "resnet18", resnet18(num_classes=10), [image], [f(2, 3, 64, 64)]
    yield "mobilenet_v2", mobilenet_v2(num_classes=10), [image], [f(2, 3, 64, 64)]
    yield "encoder", Encoder(), [InputSpec([None, 12], "int64", "ids")], [x.randint(0, 50, (2, 12)).astype("int64")]
    yield "algebra", Algebra(), [InputSpec([None, 4, 4], "float32", "x")], [f(3, 4, 4)]
    yield "tensors", Tensors(), [InputSpec([None, 3, 4], "float32", "x")], [f(3, 3, 4)]
    yield "control", Control(), [InputSpec([None, 4], "float32", "x")], [f(3, 4)]
    yield "unpooled", Unpooled(), [InputSpec([None, 2, 10, 12], "float32", "x")], [f(2, 2, 10, 12)]
    yield "normed", Normed(), [InputSpec([None, 2, 8], "float32", "x")], [f(3, 2, 8)]
    yield "lstm", Rnn(), [InputSpec([None, 9, 6], "float32", "x")], [f(2, 9, 6)]


def randomize(layer, seed):
    """Weights that depend on nothing but the seed; running statistics that are not 0 and 1."""
    x = np.random.RandomState(seed)
    for name, p in sorted(layer.state_dict().items()):
        v = x.standard_normal(p.shape).astype("float32")
        fan = np.prod(p.shape[1:]) if len(p.shape) > 2 else (p.shape[0] if p.shape else 1)
        if name.endswith("_variance"):
            v = np.abs(v) + 0.5
        elif len(p.shape) > 1:
            v *= (2.0 / fan) ** 0.5
        else:
            v = 0.1 * v + (1.0 if name.endswith("weight") else 0.0)
        p.set_value(v.astype(p.numpy().dtype))


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, layer, spec, inputs in models():
        randomize(layer, 7)
        layer.eval()
        paddle.jit.save(layer, str(out / name), input_spec=spec)
        results = paddle.jit.load(str(out / name))(*[paddle.to_tensor(v) for v in inputs])
        results = results if isinstance(results, (list, tuple)) else [results]
        arrays = {f"in{i}": v for i, v in enumerate(inputs)}
        arrays.update({f"out{i}": v.numpy() for i, v in enumerate(results)})
        np.savez(out / f"{name}.npz", **arrays)
        print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
