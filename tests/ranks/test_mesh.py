"""Tensors on a mesh of processes against the same maths of whole tensors: every placement to every other one, ops with gradients,
layers, optimizers and clips, printing, and errors."""
import pytest

from _job import passes

RESHARD = """
import itertools
from proa.distributed import Partial, ProcessMesh, Replicate, Shard, reshard, shard_tensor
P, counted = [Replicate(), Shard(0), Shard(1), Partial()], 0
meshes = [ProcessMesh(list(range(size)), dim_names=["x"]), ProcessMesh(list(range(size))[::-1])]
if size == 4:
    meshes += [ProcessMesh([[0, 1], [2, 3]]), ProcessMesh([[3, 1], [2, 0]])]
for mesh in meshes:
    combos = [c for c in itertools.product(P, repeat=mesh.ndim)
              if len({p.get_dim() for p in c if p.is_shard()}) == sum(p.is_shard() for p in c)]
    for shape in ([4, 8], [5, 3], [4, 4, 6]):
        x, w = (np.random.RandomState(i).randint(-4, 5, shape).astype("float32") for i in range(2))
        for a, b in itertools.product(combos, combos):
            t = shard_tensor(x, mesh, list(a), stop_gradient=False)
            u = reshard(t, mesh, list(b))
            assert u.shape == shape and u.placements == list(b)
            np.testing.assert_array_equal(u.numpy(), x, err_msg=f"{a} {b} {mesh}")
            (u * paddle.to_tensor(w)).sum().backward()
            np.testing.assert_array_equal(t.grad.numpy(), w, err_msg=f"gradient {a} {b} {mesh}")
            counted += 1
assert counted == (96 if size == 2 else 1272), counted

# Every reduction of a Partial, of terms that differ by process.
mesh = meshes[0]
terms = np.random.RandomState(3).randint(-4, 5, [size, 4, 4]).astype("float32")
for name, f in {"kRedSum": np.sum, "kRedAvg": np.mean, "kRedMax": np.max, "kRedMin": np.min, "kRedProd": np.prod}.items():
    from proa.distributed.auto_parallel.api import dtensor_from_local
    made = dtensor_from_local(paddle.to_tensor(terms[rank]), mesh, [Partial(getattr(dist.ReduceType, name))])
    np.testing.assert_allclose(made.numpy(), f(terms, 0), rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(reshard(made, mesh, [Shard(1)]).numpy(), f(terms, 0), rtol=1e-6)
"""

# Cases: what is computed, and shapes of the inputs ("i": class numbers or ids below the last number).
OPS = """
import itertools
from proa.distributed import Partial, ProcessMesh, Replicate, Shard, reshard, shard_tensor
F, R = paddle.nn.functional, Replicate()
CASES = {
    "add": (lambda x, y: x + y, [4, 8], [4, 8]), "broadcast": (lambda x, y: x * y + 2, [4, 8], [8]),
    "column": (lambda x, y: x / (y * y + 1), [4, 8], [4, 1]), "number": (lambda x: 3 - 2 * x / 4 + x ** 2, [4, 8]),
    "same": (lambda x: x * x, [4, 8]), "relu": (lambda x: F.relu(x).exp(), [4, 8]), "gelu": (lambda x: F.gelu(x).tanh(), [5, 3]),
    "where": (lambda x, y: paddle.where(x > y, x, 2 * y), [4, 8], [4, 8]), "clip": (lambda x: x.clip(-1, 1), [4, 8]),
    "matmul": (lambda x, y: x @ y, [4, 8], [8, 6]), "transposed": (lambda x, y: paddle.matmul(x, y, transpose_y=True), [4, 8], [6, 8]),
    "batched": (lambda x, y: paddle.matmul(x, y), [2, 4, 8], [2, 8, 4]), "batch and matrix": (lambda x, y: x @ y, [2, 4, 8], [8, 4]),
    "vector": (lambda x, y: x @ y, [4, 8], [8]), "linear": (lambda x, w, b: F.linear(x, w, b), [4, 8], [8, 6], [6]),
    "two layers": (lambda x, v, w: F.gelu(x @ v) @ w, [4, 8], [8, 8], [8, 4]),
    "sum": (lambda x: x.sum(), [4, 8]), "sum of axis": (lambda x: x.sum(0), [4, 8]), "mean": (lambda x: x.mean(-1, keepdim=True), [4, 8]),
    "mean of uneven": (lambda x: x.mean(0), [5, 3]), "sum of uneven": (lambda x: x.sum(0), [7, 3]), "max": (lambda x: x.max(1), [4, 8]),
    "prod": (lambda x: paddle.prod(x, 0), [4, 4]), "sum of sums": (lambda x, y: x.sum(0) + y.sum(0), [4, 8], [4, 8]),
    "mean of product": (lambda x, y: (x @ y).mean() * 3, [4, 8], [8, 4]), "logsumexp": (lambda x: x.logsumexp(1), [4, 8]),
    "softmax": (lambda x: F.softmax(x), [4, 8]), "softmax of rows": (lambda x: F.log_softmax(x, 0), [4, 8]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, 8, w, b), [4, 2, 8], [8], [8]),
    "embedding": (lambda i, w: F.embedding(i, w), ("i", 8, [4, 2]), [8, 4]),
    "padded embedding": (lambda i, w: F.embedding(i, w, padding_idx=3), ("i", 8, [4, 2]), [8, 4]),
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i), [4, 8], ("i", 8, [4])),
    "cross_entropy of rows": (lambda x, i: F.cross_entropy(x, i, reduction="none"), [4, 2, 8], ("i", 8, [4, 2, 1])),
    "soft labels": (lambda x, y: F.cross_entropy(x, F.softmax(y), soft_label=True), [4, 8], [4, 8]),
    "ignored": (lambda x, i: F.cross_entropy(x, i, ignore_index=2), [4, 8], ("i", 8, [4])),
    "mse": (lambda x, y: F.mse_loss(x, y), [4, 8], [4, 8]),
    "reshape": (lambda x: x.reshape([4, 2, 4]), [4, 8]), "joined axes": (lambda x: x.reshape([-1, 4]), [4, 2, 4]),
    "flatten": (lambda x: x.flatten(1), [4, 2, 4]), "transpose": (lambda x: x.transpose([2, 0, 1]), [4, 2, 8]),
    "T": (lambda x: x.T, [4, 8]), "unsqueeze": (lambda x: x.unsqueeze([0, -1]), [4, 8]), "squeeze": (lambda x: x.squeeze(1), [4, 1, 8]),
    "concat": (lambda x, y: paddle.concat([x, y], 1), [4, 8], [4, 4]), "split": (lambda x: paddle.split(x, 2, 1)[1], [4, 8]),
    "stack": (lambda x, y: paddle.stack([x, y]), [4, 8], [4, 8]), "slice": (lambda x: x[:, 2:6], [4, 8]), "row": (lambda x: x[1], [4, 8]),
    "picked": (lambda x: x[..., None, ::2], [4, 4, 8]), "gathered": (lambda x, i: paddle.gather(x, i), [8, 4], ("i", 8, [4])),
    "topk": (lambda x: paddle.topk(x, 2, 0)[0], [4, 8]), "flip": (lambda x: x.flip([0]), [4, 8]), "cumprod": (lambda x: x.cumprod(1), [4, 8]),
    "argmax": (lambda x: (x * x).sum() * x.argmax(1).astype("float32"), [4, 8]), "stack of three": (lambda x, y, z: paddle.stack(
        [x, y, z], -1), [4, 2, 4], [4, 2, 4], [4, 2, 4]), "heads": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [4, 3, 4, 8],
                                                                 [4, 3, 4, 8], [4, 3, 4, 8]),
    "causal heads": (lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True), [4, 3, 4, 8], [4, 3, 4, 8]),
    "cumsum": (lambda x: x.cumsum(0), [4, 8]), "sort": (lambda x: x.sort(-1), [4, 8]), "cast": (lambda x: x.astype("float64"), [4, 8]),
    "conv2d": (lambda x, w: F.conv2d(x, w), [4, 2, 5, 5], [4, 2, 3, 3]), "batch_norm": (lambda x: F.batch_norm(
        x, paddle.zeros([2]), paddle.ones([2]), training=True), [4, 2, 4]),
    "attention": (lambda q, k, v: F.softmax(q.reshape([2, 4, 2, 4]).transpose([0, 2, 1, 3]) @ k.reshape([2, 4, 2, 4]).transpose(
        [0, 2, 3, 1])) @ v.reshape([2, 4, 2, 4]).transpose([0, 2, 1, 3]), [2, 4, 8], [2, 4, 8], [2, 4, 8]),
}

def value(at, spec):
    draw = np.random.RandomState(at)
    return draw.randint(0, spec[1], spec[2]) if spec[0] == "i" else draw.uniform(-2, 2, spec).astype("float32")

def run(f, inputs):
    out = f(*inputs)
    weight = paddle.to_tensor(np.random.RandomState(9).uniform(0.5, 1.5, out.shape).astype("float32"))
    (out * weight).sum().backward()
    return out

def placements(ndim, dims):
    one = [R, Partial(), *(Shard(d) for d in range(min(ndim, 3)))]
    for chosen in itertools.product(one, repeat=dims):
        if len({p.get_dim() for p in chosen if p.is_shard()}) == sum(p.is_shard() for p in chosen):
            yield list(chosen)

counted = 0
for mesh, most in MESHES:
    for name, (f, *specs) in CASES.items():
        values = [value(at, spec) for at, spec in enumerate(specs)]
        plain = [paddle.to_tensor(v, stop_gradient=v.dtype.kind == "i") for v in values]
        want = run(f, plain)
        all_of_them = list(itertools.product(*(placements(v.ndim, mesh.ndim) for v in values)))
        np.random.RandomState(1).shuffle(all_of_them)
        for chosen in all_of_them[:most]:
            placed = [shard_tensor(v, mesh, p, stop_gradient=v.dtype.kind == "i") for v, p in zip(values, chosen)]
            got = run(f, placed)
            told = f"{name} {chosen} on {mesh}"
            assert got.shape == want.shape and got.dtype == want.dtype, told
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=2e-5, err_msg=told)
            for p, t in zip(placed, plain):
                assert (p.grad is None) == (t.grad is None), told
                if t.grad is not None:
                    np.testing.assert_allclose(p.grad.numpy(), t.grad.numpy(), rtol=5e-5, atol=5e-5, err_msg="gradient, " + told)
            counted += 1
print("cases", counted)
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_placement_to_every_other(tmp_path, ranks):
    passes(tmp_path, ranks, RESHARD)


def test_ops_on_two_processes(tmp_path):
    passes(tmp_path, 2, OPS.replace("MESHES", "[(ProcessMesh([0, 1]), 27)]"))


def test_ops_on_four_processes(tmp_path):
    passes(tmp_path, 4, OPS.replace("MESHES", "[(ProcessMesh([0, 1, 2, 3]), 9), (ProcessMesh([[0, 1], [2, 3]]), 12)]"))


LAYERS = """
from proa.distributed import ProcessMesh, Replicate, Shard, shard_layer, shard_optimizer, shard_tensor
nn, R = paddle.nn, Replicate()
mesh = ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"]) if size == 4 else ProcessMesh([[0, 1]], dim_names=["dp", "mp"])

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.table, self.first, self.norm, self.second = nn.Embedding(12, 8), nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, ids):
        return self.second(nn.functional.gelu(self.norm(self.first(self.table(ids)))))

def tensor_parallel(name, layer, mesh):
    places = {"table": {"weight": 0}, "first": {"weight": 1, "bias": 0}, "second": {"weight": 0}}.get(name, {})
    for key, axis in places.items():
        setattr(layer, key, shard_tensor(getattr(layer, key), mesh, [R, Shard(axis)], stop_gradient=False))

def states_divided(name, param, state):
    if state.shape and state.shape[0] % 2 == 0 and param.placements[1] != Shard(0):
        return dist.reshard(state, mesh, [Shard(0), param.placements[1]])
    return state

def batches():
    draw = np.random.RandomState(0)
    return [(draw.randint(0, 12, (4, 3)), draw.randint(0, 4, (4, 3, 1))) for _ in range(6)]

def trained(net, opt, placed):
    losses = []
    for ids, labels in batches():
        ids, labels = placed(ids), placed(labels)
        loss = nn.functional.cross_entropy(net(ids), labels)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(float(loss))
    return losses, {k: v.numpy() for k, v in net.state_dict().items()}

KINDS = {
    "SGD": lambda p, c: paddle.optimizer.SGD(0.1, p, grad_clip=c), "AdamW": lambda p, c: paddle.optimizer.AdamW(0.01, parameters=p, grad_clip=c),
    "Momentum": lambda p, c: paddle.optimizer.Momentum(0.05, parameters=p, grad_clip=c),
    "Lamb": lambda p, c: paddle.optimizer.Lamb(0.01, parameters=p, grad_clip=c),
}
CLIPS = [lambda: None, lambda: nn.ClipGradByGlobalNorm(0.05), lambda: nn.ClipGradByNorm(0.02), lambda: nn.ClipGradByValue(0.01)]
for kind, make in KINDS.items():
    for clip in CLIPS:
        for how in ("data and model", "states divided", "plain optimizer"):
            paddle.seed(5)
            one = Net()
            paddle.seed(5)
            many = shard_layer(Net(), mesh, tensor_parallel)
            assert all(p.is_dist() for p in many.parameters()) and many.first.weight.name.endswith(".w_0")
            want = trained(one, make(one.parameters(), clip()), paddle.to_tensor)
            opt = make(many.parameters(), clip())
            if how != "plain optimizer":
                opt = shard_optimizer(opt, states_divided if how == "states divided" else None)
            got = trained(many, opt, lambda v: shard_tensor(v, mesh, [Shard(0)]))
            np.testing.assert_allclose(got[0], want[0], rtol=2e-5, err_msg=f"{kind} {clip()} {how}")
            for key in want[1]:
                np.testing.assert_allclose(got[1][key], want[1][key], rtol=1e-4, atol=2e-6, err_msg=f"{kind} {clip()} {how} {key}")
            assert many.first.weight._local_shape == [8, 8] and many.first.weight.placements == [R, Shard(1)]
        if kind == "AdamW" and clip() is None:
            states = shard_optimizer(make(many.parameters(), None), states_divided).state_dict()
            moment = next(v for k, v in states.items() if k.startswith(many.norm.weight.name) and "moment1" in k)
            assert moment.placements == [Shard(0), R] and moment.shape == [16]

# Hooks of shard_layer, hooks of tensors, paddle.grad.
paddle.seed(5)
net = shard_layer(Net(), mesh, input_fn=lambda inputs, mesh: [shard_tensor(inputs[0], mesh, [Shard(0)])],
                  output_fn=lambda out, mesh: dist.reshard(out, mesh, [R, R])._local_value())
out = net(paddle.to_tensor(batches()[0][0]))
assert not out.is_dist() and out.shape == [4, 3, 4]
x = shard_tensor(np.ones([4, 4], "float32"), mesh, [Shard(0), Shard(1)], stop_gradient=False)
seen = []
x.register_hook(lambda g: seen.append(g.placements) or g * 2)
y = (x * x * 3).sum()
g, = paddle.grad(y, [x], create_graph=False, retain_graph=True)
np.testing.assert_allclose(g.numpy(), np.full([4, 4], 12.0))  # the hook doubles it
paddle.autograd.backward([y])
np.testing.assert_allclose(x.grad.numpy(), np.full([4, 4], 12.0))
assert seen == [[Shard(0), Shard(1)]] * 2
paddle.seed(1 + rank)  # dropout agrees although the seeds do not
d = paddle.nn.functional.dropout(shard_tensor(np.ones([64, 4], "float32"), mesh, [Shard(0)]), 0.5)
found = []
dist.all_gather_object(found, d.numpy().tolist())
assert all(f == found[0] for f in found) and d.placements == [Shard(0), R]
with paddle.no_grad():
    x.fill_(3.0); x[0] = 1.0; x.add_(paddle.ones([4, 4]))
    np.testing.assert_allclose(x.numpy(), np.array([[2.0] * 4] + [[4.0] * 4] * 3))
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_layers_and_optimizers(tmp_path, ranks):
    passes(tmp_path, ranks, LAYERS)


STAGES = """
from proa.distributed import Partial, ProcessMesh, Replicate, Shard, reshard, shard_layer, shard_optimizer, shard_tensor
nn, R = paddle.nn, Replicate()
stages = [ProcessMesh([0, 1]), ProcessMesh([2, 3])] if size == 4 else [ProcessMesh([0]), ProcessMesh([1])]

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.parts = nn.LayerList([nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.0), nn.LayerNorm(8)) for _ in range(3)])

    def forward(self, x):
        for i, part in enumerate(self.parts):  # the third part is on the first stage again
            if PLACED and i:
                x = reshard(x, stages[i % 2], [Shard(0)])
            x = part(x)
        return x

def trained(net, opt, placed):
    draw, losses = np.random.RandomState(0), []
    for _ in range(4):
        x, y = draw.uniform(-1, 1, (4, 8)).astype("float32"), draw.randint(0, 8, (4, 1))
        loss = nn.functional.cross_entropy(net(placed(x)), placed(y))
        loss.backward()
        opt.step()
        opt.clear_grad()
        if not loss.is_dist() or loss._is_initialized():
            losses.append(float(loss))
        else:
            assert loss.shape == []
    return losses

for clip in (None, nn.ClipGradByGlobalNorm(0.05), nn.ClipGradByNorm(0.02)):
    PLACED = False
    paddle.seed(7)
    one = Net()
    want = trained(one, paddle.optimizer.AdamW(0.05, parameters=one.parameters(), grad_clip=clip), paddle.to_tensor)
    PLACED = True
    paddle.seed(7)
    many = Net()
    for i, part in enumerate(many.parts):
        shard_layer(part, stages[i % 2])
    opt = shard_optimizer(paddle.optimizer.AdamW(0.05, parameters=many.parameters(), grad_clip=clip))
    got = trained(many, opt, lambda v: shard_tensor(v, stages[0], [Shard(0)]))
    np.testing.assert_allclose(got, want if stages[0].contains(rank) else [], rtol=2e-5)
    for p, q in zip(many.parameters(), one.parameters()):
        if p._is_initialized():
            np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-4, atol=1e-6)

# Between meshes that share some of their processes, and to a larger one.
whole = ProcessMesh(list(range(size)))
for source, target in [(stages[0], whole), (whole, stages[1]), (stages[1], stages[0]), (whole, ProcessMesh(list(range(size))[::-1]))]:
    for p in ([R], [Shard(0)], [Partial()]):
        x = shard_tensor(np.arange(12.0).reshape(4, 3).astype("float32"), source, p, stop_gradient=False)
        y = reshard(x, target, [Shard(1)])
        assert y.shape == [4, 3] and y.process_mesh == target and not y.stop_gradient
        (y * y).sum().backward()
        if source.contains(rank):
            np.testing.assert_allclose(x.grad.numpy(), 2 * np.arange(12.0).reshape(4, 3))
        if target.contains(rank):
            np.testing.assert_allclose(y.numpy(), np.arange(12.0).reshape(4, 3))
        else:
            for wrong in (y.numpy, y._local_value, lambda: float(y.sum())):
                try:
                    wrong()
                except RuntimeError as e:
                    assert f"process {rank} is not in" in str(e)
                else:
                    raise AssertionError
        assert reshard(x.detach() if source.contains(rank) else x, target, [R]).shape == [4, 3] if source is whole else True
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_meshes_as_stages(tmp_path, ranks):
    passes(tmp_path, ranks, STAGES)


STATES = """
from proa.distributed import ProcessMesh, Replicate, Shard, shard_layer, shard_optimizer, shard_tensor
nn, R, mesh = paddle.nn, Replicate(), ProcessMesh([0, 1])

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.first, self.second = nn.Conv2D(3, 4, 3, bias_attr=False), nn.BatchNorm2D(4), nn.Linear(144, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.second(nn.functional.relu(self.first(self.norm(self.conv(x)).flatten(1))))

def places(name, layer, mesh):
    if name == "first":
        layer.weight = shard_tensor(layer.weight, mesh, [Shard(1)])
        layer.bias = shard_tensor(layer.bias, mesh, [Shard(0)])
    if name == "second":
        layer.weight = shard_tensor(layer.weight, mesh, [Shard(0)])

def divided(name, param, state):
    at = param.placements[0]
    return dist.reshard(state, mesh, [Shard(0)]) if at == R and state.shape[0] % 2 == 0 else state

def batch(step, place):
    draw = np.random.RandomState(step)
    return place(draw.uniform(-1, 1, (4, 3, 8, 8)).astype("float32")), place(draw.randint(0, 3, (4, 1)))

def steps(net, opt, numbers, place, level="O0", scaler=None):
    losses = []
    for step in numbers:
        x, y = batch(step, place)
        with paddle.amp.auto_cast(enable=level != "O0", level=level if level != "O0" else "O1", dtype="bfloat16"):
            loss = nn.functional.cross_entropy(net(x), y)
        if scaler:
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        else:
            loss.backward()
            opt.step()
        opt.clear_grad()
        losses.append(float(loss))
    return losses

def made(shard_fn=None, on_mesh=True, **options):
    paddle.seed(2)
    net = Net()
    if on_mesh:
        shard_layer(net, mesh, places)
    opt = paddle.optimizer.AdamW(0.01, parameters=net.parameters(), **options)
    return net, shard_optimizer(opt, shard_fn) if on_mesh else opt

split = lambda v: shard_tensor(v, mesh, [Shard(0)])
one, plain = made(on_mesh=False)
want = steps(one, plain, range(6), paddle.to_tensor)
for shard_fn in (None, divided):
    net, opt = made(shard_fn)
    np.testing.assert_allclose(steps(net, opt, range(3), split), want[:3], rtol=1e-4)
    state = {**net.state_dict(), **opt.state_dict()}
    assert all(v.is_dist() for v in state.values())
    folder = f"{sys.argv[1]}/{shard_fn is None}"
    dist.save_state_dict({**net.state_dict(), **{f"opt{i}": v for i, v in enumerate(opt.state_dict().values())}}, folder)
    for other in (None, divided):  # the states may be placed in another way where they are loaded
        net, opt = made(other)
        found = {**net.state_dict(), **{f"opt{i}": v for i, v in enumerate(opt.state_dict().values())}}
        dist.load_state_dict(found, folder)
        np.testing.assert_allclose(steps(net, opt, range(3, 6), split), want[3:], rtol=1e-4)
for key, value in one.state_dict().items():  # running statistics are those of the whole batch
    np.testing.assert_allclose(net.state_dict()[key].numpy(), value.numpy(), rtol=2e-3, atol=2e-5, err_msg=key)

# Half parameters with masters, and loss scaling.
one, plain = made(on_mesh=False, multi_precision=True)
one, plain = paddle.amp.decorate(one, plain, level="O2", dtype="bfloat16")
want = steps(one, plain, range(4), paddle.to_tensor, "O2", paddle.amp.GradScaler(init_loss_scaling=256.0))
paddle.seed(2)
net = paddle.amp.decorate(Net(), level="O2", dtype="bfloat16")
shard_layer(net, mesh, places)
opt = shard_optimizer(paddle.optimizer.AdamW(0.01, parameters=net.parameters(), multi_precision=True))
got = steps(net, opt, range(4), split, "O2", paddle.amp.GradScaler(init_loss_scaling=256.0))
np.testing.assert_allclose(got, want, rtol=3e-2)
assert net.first.weight.dtype == paddle.bfloat16 and net.first.weight._local_shape == [144, 4]
"""


def test_states(tmp_path):
    passes(tmp_path, 2, STATES)
