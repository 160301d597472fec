"""One rank of a training that must equal one process on the joined batch: losses and weights of all steps.

    python -m proa.distributed.launch --nproc_per_node 4 tests/ranks/_training.py [--steps 50] [CASE…]

A case is model/mode/precision, as resnet/to_static/float32; without cases all run. Rank 0 trains alone on all rows first;
then all ranks train on their rows. Prints the largest difference of each case; exits with 1 if one is too large.
"""
import argparse
import contextlib
import itertools
import sys

import numpy as np

import proa as paddle
import proa.distributed as dist
from proa import _core
from proa.nn import functional as F
from proa.nn.layer.norm import statistics_move

ROWS = 16
# Relative to the largest weight. Under bfloat16 a rank's gradients are rounded to eight bits before they are added, and one bit more
# or less in a sum may round an activation to another of eight bits. One process therefore takes the rows of each rank by themselves
# and adds in the order of ranks what ranks exchange (gradients, statistics of batch normalization): both must round alike.
LIMIT = 1e-5
PRECISIONS = ("float32", "bfloat16", "float64")  # float64: ResNets alone


class Block(paddle.nn.Layer):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.a = paddle.nn.Conv2D(inside, out, 3, stride, 1, bias_attr=False)
        self.b = paddle.nn.Conv2D(out, out, 3, 1, 1, bias_attr=False)
        self.norm_a, self.norm_b = paddle.nn.BatchNorm2D(out), paddle.nn.BatchNorm2D(out)
        self.short, self.relu = paddle.nn.Conv2D(inside, out, 1, stride, bias_attr=False), paddle.nn.ReLU()

    def forward(self, x):
        return self.relu(self.norm_b(self.b(self.relu(self.norm_a(self.a(x))))) + self.short(x))


class ResNet(paddle.nn.Layer):
    """ResNet's blocks and batch normalization, at the size of a test."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = paddle.nn.Conv2D(3, 8, 3, 1, 1, bias_attr=False), paddle.nn.BatchNorm2D(8)
        self.relu = paddle.nn.ReLU()
        self.blocks = paddle.nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.out = paddle.nn.Linear(16, 10)

    def forward(self, x):
        return self.out(self.blocks(self.relu(self.norm(self.stem(x)))).mean([2, 3]))


class Lstm(paddle.nn.Layer):
    """A table whose gradients are rows, and an LSTM."""

    def __init__(self):
        super().__init__()
        self.table = paddle.nn.Embedding(30, 12, sparse=True)
        self.lstm = paddle.nn.LSTM(12, 12)
        self.out = paddle.nn.Linear(12, 10)

    def forward(self, x):
        return self.out(self.lstm(self.table(x))[0][:, -1])


class Transformer(paddle.nn.Layer):
    """The table is the output layer, too; one layer is never used."""

    def __init__(self):
        super().__init__()
        self.table = paddle.nn.Embedding(30, 16)
        self.layer = paddle.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0)
        self.unused = paddle.nn.Linear(16, 16)

    def forward(self, x):
        return self.layer(self.table(x))[:, 0].matmul(self.table.weight, transpose_y=True)


MODELS = {"resnet": ResNet, "lstm": Lstm, "transformer": Transformer,
          "resnet18": lambda: paddle.vision.models.resnet18(num_classes=10)}


def data(model, step):
    rng = np.random.RandomState(1000 + step)
    label = rng.randint(0, 10, (ROWS, 1))
    if has_norms(model):
        side = 12 if model == "resnet" else 64
        return rng.standard_normal((ROWS, 3, side, side)).astype(paddle.get_default_dtype()), label
    return rng.randint(0, 30, (ROWS, 6)), label


def own(arrays, parallel):
    return part(arrays, dist.get_rank(), dist.get_world_size()) if parallel else arrays


def part(arrays, rank, size):
    """The rows of a rank."""
    n = len(arrays[0]) // size
    return [a[rank * n:(rank + 1) * n] for a in arrays]


def has_norms(model):
    """Batch normalization reads all ranks' rows at once."""
    return model.startswith("resnet")


def parts_of(model, precision, parallel):
    """In how many parts a process takes its rows."""
    return dist.get_world_size() if precision == "bfloat16" and not has_norms(model) and not parallel else 1


def precision_of(name):
    return paddle.amp.auto_cast(dtype="bfloat16") if name == "bfloat16" else contextlib.nullcontext()


def optimizer(model, precision, parameters=None):
    """ResNet-18 is chaotic at larger rates: at 0.002 one process is 4e-6 from itself in 50 steps if one weight's bits are changed."""
    return paddle.optimizer.Momentum(0.002 if (model, precision) == ("resnet18", "float32") else 0.02, 0.9, parameters=parameters)


def make(model, precision, parallel):
    paddle.seed(5)
    net = MODELS[model]()
    if precision == "float32":
        smooth(net)
    if parallel:
        return paddle.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    if precision == "bfloat16" and has_norms(model) and dist.get_world_size() > 1:
        for layer in net.sublayers():
            if isinstance(layer, (paddle.nn.Conv2D, paddle.nn.Linear)):
                layer.forward = rank_by_rank(layer, layer.forward)
            elif isinstance(layer, paddle.nn.BatchNorm2D):
                layer.forward = normalize_by_ranks(layer)
    return net


def smooth(net):
    """Puts SiLUs in the place of ReLUs, and means in that of ResNet-18's maxima. A ReLU's slope jumps at 0 and a maximum's gradient moves
    to another pixel: in float32 one bit of a sum over ranks turns an element over, and becomes 9e-4 of the small ResNet's weights in 50
    steps, and 0.3 of ResNet-18's in eight. Both are trained in float64, and ReLUs in bfloat16."""
    kinds = ((paddle.nn.ReLU, paddle.nn.Silu), (paddle.nn.MaxPool2D, lambda: paddle.nn.AvgPool2D(3, 2, 1)))
    for layer in net.sublayers(include_self=True):
        for name, part in layer.named_children():
            for kind, make in kinds:
                if isinstance(part, kind):
                    setattr(layer, name, make())


def copies(x):
    """x once a rank. Each sum of gradients behind them has two terms, so that the copies' are added in the order of ranks."""
    out = []
    for _ in range(dist.get_world_size() - 1):
        out.append(paddle.assign(x))
        x = paddle.assign(x)
    return [x, *out[::-1]]


def rank_by_rank(layer, forward):
    """The forward of a layer that takes the rows of each rank by themselves, with copies of the parameters."""
    def run(x):
        kept, outs = dict(layer._parameters), []
        copied = {name: copies(p) for name, p in kept.items() if p is not None}
        for r, rows in enumerate(paddle.split(x, dist.get_world_size())):
            layer._parameters.update({name: each[r] for name, each in copied.items()})
            outs.append(forward(rows))
        layer._parameters.update(kept)
        return paddle.concat(outs)
    return run


def normalize_by_ranks(layer):
    """Batch normalization as the ranks compute it together, sums in the order of ranks."""
    def run(x):
        column = lambda v: v.reshape([1, -1, 1, 1])
        rows = [part.astype("float32") for part in paddle.split(x, dist.get_world_size())]
        elements = paddle.full([1], x.shape[2] * x.shape[3] * ROWS)  # of a tensor: a number's reciprocal would be rounded
        total = over_ranks([part.sum([0, 2, 3]) for part in rows])
        centred = [part - column(t / elements) for part, t in zip(rows, copies(total))]
        squares = over_ranks([(part * part).sum([0, 2, 3]) for part in centred])
        if x.is_symbolic:
            statistics_move(layer._mean, layer._variance)
        with paddle.no_grad():
            for kept, now in ((layer._mean, total), (layer._variance, squares)):
                kept.scale_(layer._momentum).add_((now / elements).detach() * (1 - layer._momentum))
        outs = [part * column((v / elements + layer._epsilon).rsqrt()) * column(w) + column(b)
                for part, v, w, b in zip(centred, copies(squares), copies(layer.weight), copies(layer.bias))]
        return paddle.concat([out.astype(x.dtype) for out in outs])
    return run


def over_ranks(parts):
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def train_dygraph(model, mode, precision, parallel, steps):
    net = make(model, precision, parallel)
    called = paddle.jit.to_static(net, full_graph=True) if mode == "to_static" else net
    if parallel:
        called = paddle.DataParallel(called, find_unused_parameters=True, comm_buffer_size=0.01, last_comm_buffer_size=0.001)
    opt, losses, parts = optimizer(model, precision, net.parameters()), [], parts_of(model, precision, parallel)
    for step in range(steps):
        mean = 0.0
        for i in range(parts):
            x, label = map(paddle.to_tensor, part(own(data(model, step), parallel), i, parts))
            with precision_of(precision):
                loss = F.cross_entropy(called(x).astype(paddle.get_default_dtype()), label) / parts
            loss.backward()
            mean += float(loss)
        opt.step()
        opt.clear_grad()
        losses.append(mean)
    return losses, {n: p.numpy() for n, p in net.named_parameters()}


def train_static(model, mode, precision, parallel, steps):
    paddle.enable_static()
    main, startup, losses = paddle.static.Program(), paddle.static.Program(), []
    try:
        with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()), \
                paddle.utils.unique_name.guard():  # names are alike on all ranks, whatever was made before
            x, label = (paddle.static.data(n, [None, *a.shape[1:]], str(a.dtype)) for n, a in zip("xy", data(model, 0)))
            net, parts = make(model, precision, parallel), parts_of(model, precision, parallel)
            pieces = zip(paddle.split(x, parts), paddle.split(label, parts)) if parts > 1 else [(x, label)]
            loss = 0.0
            for rows, labels in pieces:
                with precision_of(precision):
                    loss = F.cross_entropy(net(rows).astype(paddle.get_default_dtype()), labels) / parts + loss
            optimizer(model, precision).minimize(loss)
            if parallel:
                from proa.fluid.transpiler.collective import GradAllReduce
                env = dist.ParallelEnv()
                GradAllReduce(fuse_grad_size_in_MB=0.01).transpile(startup, main, env.rank, env.trainer_endpoints,
                                                                   env.current_endpoint)
            exe = paddle.static.Executor()
            exe.run(startup)
            for step in range(steps):
                feed = dict(zip("xy", own(data(model, step), parallel)))
                losses.append(float(exe.run(main, feed, [loss])[0]))
            names = [(n, p.name) for n, p in net.named_parameters()]
            return losses, {n: np.array(paddle.static.global_scope().find_var(v).get_tensor()) for n, v in names}
    finally:
        paddle.disable_static()


def train(model, mode, precision, parallel, steps):
    # A residual that is fused into a convolution is rounded once, and one process, which joins the rows of ranks, cannot fuse it.
    _core.set_flag("passes", "-epilogue_fusion" if precision == "bfloat16" and has_norms(model) else "all")
    how = train_static if mode == "static" else train_dygraph
    paddle.set_default_dtype("float64" if precision == "float64" else "float32")
    return how(model, mode, precision, parallel, steps)


def averaged(losses):
    total = paddle.to_tensor(np.array(losses, "float64"))
    dist.all_reduce(total, dist.ReduceOp.AVG)
    return total.numpy()


def same_on_all(weights):
    """Whether all ranks have the same bits."""
    flat = np.concatenate([w.reshape(-1) for w in weights.values()]).view("int32")
    parts = []
    dist.all_gather(parts, paddle.to_tensor(flat))
    return all((p.numpy() == flat).all() for p in parts)


def apart(one, other):
    """The largest difference of losses, and of weights relative to the largest."""
    largest = max(np.abs(w).max() for w in one[1].values())
    return max(np.abs(np.array(one[0]) - other[0]).max(), max(np.abs(other[1][n] - w).max() for n, w in one[1].items()) / largest)


def difference(case, steps):
    """The distance of the ranks from one process."""
    alone = train(*case, False, steps) if dist.get_rank() == 0 else None
    dist.barrier()
    losses, weights = train(*case, True, steps)
    losses = averaged(losses)
    if not same_on_all(weights):
        return float("inf")
    if alone is None:
        return 0.0
    assert np.isfinite(losses).all(), (case, losses)
    return apart(alone, (losses, weights))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    dist.init_parallel_env()
    every = [case for case in itertools.product(MODELS, ("eager", "to_static", "static"), PRECISIONS)
             if (case[2] != "float64" or has_norms(case[0])) and (case[2] != "bfloat16" or case[0] != "resnet18")]
    cases = [tuple(c.split("/")) for c in options.cases] or every
    bad = 0
    for case in cases:
        off = difference(case, options.steps)
        if dist.get_rank() == 0:
            print("/".join(case), dist.get_world_size(), "ranks:", f"{off:.2e}", flush=True)
        bad += not off <= LIMIT
    sys.exit(bad > 0)


main()
