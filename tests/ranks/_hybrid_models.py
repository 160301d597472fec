"""Small GPT-, BERT- and ResNet-style models as lists of pieces, whole or with weights divided by tensor parallelism. A piece has
the same names of parameters either way."""
import numpy as np

import proa as paddle
from proa import nn
from proa.distributed import fleet
from proa.distributed.fleet.meta_parallel import (ColumnParallelLinear, LayerDesc, ParallelCrossEntropy, RowParallelLinear,
                                                  SharedLayerDesc, VocabParallelEmbedding)
from proa.distributed.fleet.utils import recompute
from proa.nn import functional as F

VOCABULARY, WIDTH, HEADS, LENGTH, CLASSES, BLOCKS, ROWS = 32, 16, 4, 6, 8, 4, 32


def column(divided, inside, out, bias=True, gather=False):
    """A linear layer whose columns may be divided."""
    if divided:
        return ColumnParallelLinear(inside, out, has_bias=bias, gather_output=gather)
    return nn.Linear(inside, out, bias_attr=None if bias else False)


def row(divided, inside, out):
    """A linear layer whose rows may be divided."""
    return RowParallelLinear(inside, out, input_is_parallel=True) if divided else nn.Linear(inside, out)


class Table(nn.Layer):
    def __init__(self, divided):
        super().__init__()
        self.divided = divided
        self.inner = (VocabParallelEmbedding if divided else nn.Embedding)(VOCABULARY, WIDTH)
        self.weight = self.inner.weight

    def forward(self, x):
        return self.inner(x)


def scores(table, x):
    """Logits over a table's rows, each rank's own where it is divided."""
    if table.divided:
        x = paddle._core.mp_identity(x, group=fleet.get_hybrid_communicate_group().get_model_parallel_group().id)
    return paddle.matmul(x, table.weight, transpose_y=True)


class Position(nn.Layer):
    def __init__(self, divided):
        super().__init__()
        self.weight = self.create_parameter([LENGTH, WIDTH])

    def forward(self, x):
        return x + self.weight


class Attention(nn.Layer):
    def __init__(self, divided, causal):
        super().__init__()
        # no bias of keys: its gradient is rounding alone, which Adam would blow up
        self.q, self.k, self.v = (column(divided, WIDTH, WIDTH, bias) for bias in (True, False, True))
        self.out = row(divided, WIDTH, WIDTH)
        self.mask = paddle.to_tensor(np.triu(np.full([LENGTH, LENGTH], -1e4, "float32"), 1)) if causal else None

    def forward(self, x):
        q, k, v = (f(x).reshape([x.shape[0], LENGTH, -1, WIDTH // HEADS]).transpose([0, 2, 1, 3]) for f in (self.q, self.k, self.v))
        weights = paddle.matmul(q, k, transpose_y=True) * (WIDTH // HEADS) ** -0.5
        if self.mask is not None:
            weights = weights + self.mask.astype(weights.dtype)
        return self.out(paddle.matmul(F.softmax(weights), v).transpose([0, 2, 1, 3]).reshape([x.shape[0], LENGTH, -1]))


class Block(nn.Layer):
    """A transformer's layer: norms before its parts (GPT) or behind (BERT)."""

    def __init__(self, divided, causal):
        super().__init__()
        self.first = causal
        self.attention = Attention(divided, causal)
        self.up, self.down = column(divided, WIDTH, 2 * WIDTH), row(divided, 2 * WIDTH, WIDTH)
        self.norm_a, self.norm_b = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        if self.first:
            x = x + self.attention(self.norm_a(x))
            return x + self.down(F.gelu(self.up(self.norm_b(x))))
        x = self.norm_a(x + self.attention(x))
        return self.norm_b(x + self.down(F.gelu(self.up(x))))


class Norm(nn.Layer):
    def __init__(self, divided):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.norm(x)


class Pooler(nn.Layer):
    def __init__(self, divided):
        super().__init__()
        self.dense = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return paddle.tanh(self.dense(x[:, 0]))


class Head(nn.Layer):
    def __init__(self, divided):
        super().__init__()
        self.out = column(divided, WIDTH, CLASSES, gather=True)

    def forward(self, x):
        return self.out(x)


class Residual(nn.Layer):
    """ResNet's block with group normalization: batch normalization of a micro-batch is not that of the batch. SiLU stands for ReLU in
    float32, where the slope's jump would make a difference in rounding one of weights."""

    def __init__(self, divided, inside, out, stride):
        super().__init__()
        self.a, self.b = nn.Conv2D(inside, out, 3, stride, 1, bias_attr=False), nn.Conv2D(out, out, 3, 1, 1, bias_attr=False)
        self.norm_a, self.norm_b = nn.GroupNorm(4, out), nn.GroupNorm(4, out)
        self.short = nn.Conv2D(inside, out, 1, stride, bias_attr=False)
        self.act = F.relu if paddle.get_default_dtype() == "float64" else F.silu

    def forward(self, x):
        return self.act(self.norm_b(self.b(self.act(self.norm_a(self.a(x))))) + self.short(x))


def pooled(x):
    """The mean of each channel."""
    return x.mean([2, 3])


PIECES = {"gpt": [("table", None), (Position,), *[(Block, True)] * BLOCKS, (Norm,), ("table", scores)],
          "bert": [(Table,), (Position,), *[(Block, False)] * BLOCKS, (Pooler,), (Head,)],
          "resnet": [(Residual, 3, 8, 1), (Residual, 8, 8, 1), (Residual, 8, 16, 2), (Residual, 16, 16, 1), (Residual, 16, 16, 1),
                     (pooled,), (Head,)]}


def descriptions(model, divided):
    """The pieces as a PipelineLayer takes them."""
    made = []
    for what, *arguments in PIECES[model]:
        if what == "table":
            made.append(SharedLayerDesc("table", Table, arguments[0], "weight", divided))
        else:
            made.append(LayerDesc(what, divided, *arguments) if isinstance(what, type) else what)
    return made


class Stack(nn.Layer):
    """All pieces in one process, named by their numbers as in a PipelineLayer."""

    def __init__(self, model, divided, recomputed=False):
        super().__init__()
        self.recomputed, self.run = recomputed, []
        for i, desc in enumerate(descriptions(model, divided)):
            if isinstance(desc, SharedLayerDesc) and desc.forward_func is not None:
                self.run.append(lambda x: scores(self._sub_layers["0"], x))
            elif isinstance(desc, LayerDesc):
                self.run.append(self.add_sublayer(str(i), desc.build_layer()))
            else:
                self.run.append(desc)

    def forward(self, x):
        for piece in self.run:
            x = recompute(piece, x) if self.recomputed and isinstance(piece, (Block, Residual)) else piece(x)
        return x


def whole_name(model, name):
    """The name in a Stack of a parameter of a PipelineLayer: a tied table has one."""
    first, rest = name.split(".", 1)
    return f"0.{rest}" if model == "gpt" and int(first) == len(PIECES["gpt"]) - 1 else name


def loss_of(model, divided):
    """The mean loss of logits and labels."""
    cross = ParallelCrossEntropy() if divided and model == "gpt" else None

    def loss(logits, labels):
        if cross is not None:
            return cross(logits.astype("float32"), labels.unsqueeze(-1)).mean()
        return F.cross_entropy(logits.astype(paddle.get_default_dtype()), labels.unsqueeze(-1))

    return loss


def batch(model, step):
    """The joined batch of a step: inputs, labels."""
    rng = np.random.RandomState(1000 + step)
    if model == "resnet":
        return rng.standard_normal((ROWS, 3, 8, 8)).astype(paddle.get_default_dtype()), rng.randint(0, CLASSES, ROWS)
    ids = rng.randint(0, VOCABULARY, (ROWS, LENGTH))
    return ids, (ids + 1) % VOCABULARY if model == "gpt" else ids[:, 0] % CLASSES
