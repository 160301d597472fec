"""Methods that a subclass may write anew: each class is subclassed with every method wrapped, and used; the methods
that are called are those that real Paddle calls. Public names count, and private ones that programs override."""
import copy
import types

import numpy as np
import paddle
from parity import array, case, ints

nn, optimizer = paddle.nn, paddle.optimizer
IMAGE, LINE, CUBE = (2, 3, 8, 8), (2, 3, 8), (2, 3, 8, 8, 8)

# Private methods of Paddle's that public programs override, or call through super().
OVERRIDDEN = set("""
_append_optimize_op _apply_boxes _apply_image _apply_mask _apply_optimize _build_once _check_data_format
_check_input_dim _compute_fans _create_accumulators _create_global_learning_rate _create_optimization_pass
_create_param_lr _create_regularization_of_grad _dygraph_call_func _dygraph_clip _dynamic_apply_image
_dynamic_get_param _finish_update _get_param _get_params _prepare_qkv _state_dict_impl _update_param_group
__delitem__ __getitem__ __getstate__ __iter__ __len__ __setitem__ __setstate__""".split())


def counted(name):
    return not name.startswith("_") or name in OVERRIDDEN


def wrapped(name, method, log):
    def called(*args, **kwargs):
        log.add(name)
        return method(*args, **kwargs)
    return called


def spied(cls, log):
    """A subclass that notes which of its methods are called."""
    body = {}
    for base in cls.__mro__:
        for name, m in vars(base).items():
            if base is object or name in body or not counted(name):
                continue
            if isinstance(m, types.FunctionType):
                body[name] = wrapped(name, m, log)
            elif isinstance(m, property) and m.fget:
                body[name] = property(wrapped(name, m.fget, log), m.fset, m.fdel)
    return type(cls)(cls.__name__, (cls,), body)


class Calls:
    """The calls in each phase, by name of the phase."""

    def __init__(self, cls):
        self.log, self.phases = set(), {}
        self.cls = spied(cls, self.log)

    def run(self, phase, fn):
        self.log.clear()
        result = fn()
        self.phases[phase] = sorted(self.log)
        return result


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def tensor(value):
    t = paddle.to_tensor(value)
    t.stop_gradient = t.dtype != paddle.float32
    return t


LAYER_PHASES = {
    "state_dict": lambda net: net.state_dict(),
    "to_static_state_dict": lambda net: net.to_static_state_dict(),
    "set_state_dict": lambda net: net.set_state_dict(net.state_dict()),
    "set_dict": lambda net: net.set_dict(net.state_dict()),
    "train": lambda net: net.train(),
    "eval": lambda net: net.eval(),
    "repr": repr,
    "parameters": lambda net: net.parameters(),
    "named_parameters": lambda net: list(net.named_parameters()),
    "buffers": lambda net: net.buffers(),
    "sublayers": lambda net: net.sublayers(),
    "children": lambda net: list(net.children()),
    "clear_gradients": lambda net: net.clear_gradients(),
    "full_name": lambda net: net.full_name(),
    "apply": lambda net: net.apply(lambda layer: None),
    "float": lambda net: net.float(),
    "set": lambda net: (setattr(net, "an_attribute", 1), setattr(net, "a_layer", nn.ReLU()), delattr(net, "a_layer")),
    "add": lambda net: (net.add_sublayer("added", nn.ReLU()), net.add_parameter("no", None)),
    "deepcopy": copy.deepcopy,
}
LIST_PHASES = {
    "len": len, "iter": list, "get": lambda net: net[0], "slice": lambda net: net[0:1],
    "append": lambda net: net.append(nn.ReLU()), "extend": lambda net: net.extend([nn.ReLU()]),
    "set item": lambda net: net.__setitem__(0, nn.ReLU()), "delete": lambda net: net.__delitem__(0),
}
DICT_PHASES = {
    "len": len, "iter": list, "get": lambda net: net["a"], "keys": lambda net: list(net.keys()),
    "set item": lambda net: net.__setitem__("b", nn.ReLU()), "update": lambda net: net.update({"c": nn.ReLU()}),
    "pop": lambda net: net.pop("b"), "delete": lambda net: net.__delitem__("c"), "clear": lambda net: net.clear(),
}


def layer_case(name, args, *inputs, more=None, constructs=True, **kwargs):
    """args: a tuple, or a function that makes one."""
    def run():
        calls = Calls(getattr(nn, name))
        given = args() if callable(args) else args
        net = calls.run("construct", lambda: calls.cls(*given, **kwargs))
        if not constructs:
            del calls.phases["construct"]
        values = [tensor(make() if callable(make) else array(*make).astype("float32")) for make in inputs]
        if inputs:
            outs = calls.run("call", lambda: net(*values))
            outs = [o for o in flat(outs) if not o.stop_gradient]
            if outs:
                calls.run("backward", lambda: sum(o.sum() for o in outs).backward())
        for phase, fn in {**(more or {}), **LAYER_PHASES}.items():
            if phase != "float" or name not in ("SimpleRNN", "LSTM", "GRU"):
                calls.run(phase, lambda: fn(net))
        if inputs:
            net.register_forward_pre_hook(lambda layer, given: None)
            calls.run("hooked", lambda: net(*[v.detach() for v in values]))
        return calls.phases
    run.__name__ = f"methods_of_{name}"
    run.__module__ = __name__
    case(f"paddle.nn.{name}", grad=False)(run)


for one in ("CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid LogSoftmax Mish "
            "ReLU ReLU6 RReLU SELU Sigmoid Silu Softmax Softplus Softshrink Softsign Swish Tanh Tanhshrink "
            "ThresholdedReLU PReLU AlphaDropout Dropout").split():
    layer_case(one, (), (3, 4))
for dims, shape in ((1, LINE), (2, IMAGE), (3, CUBE)):
    layer_case(f"AdaptiveAvgPool{dims}D", (3,), shape)
    layer_case(f"AdaptiveMaxPool{dims}D", (4,), shape)
    layer_case(f"AvgPool{dims}D", (3, 2, 1), shape)
    layer_case(f"MaxPool{dims}D", (3, 2, 1), shape)
    layer_case(f"BatchNorm{dims}D", (3,), shape)
    layer_case(f"InstanceNorm{dims}D", (3,), shape)
    layer_case(f"Conv{dims}D", (3, 4, 3, 2, 1), shape)
    layer_case(f"Conv{dims}DTranspose", (3, 4, 3, 2, 1), shape)
    layer_case(f"Pad{dims}D", ([1, 2] * dims, "replicate"), shape)
for one, args, *inputs in (
        ("GLU", (), (3, 8)), ("Maxout", (2,), (2, 4, 5, 5)), ("Softmax2D", (), IMAGE), ("Dropout2D", (), IMAGE),
        ("Dropout3D", (), CUBE), ("BatchNorm", (3,), IMAGE), ("GroupNorm", (2, 4), (2, 4, 5, 5)),
        ("LayerNorm", ([8, 8],), IMAGE), ("LocalResponseNorm", (3,), IMAGE), ("SpectralNorm", ([4, 5],), (4, 5)),
        ("Linear", (5, 3), (2, 5)), ("Bilinear", (4, 5, 3), (2, 4), (2, 5)),
        ("Embedding", (10, 4), lambda: ints(3, 4)), ("Flatten", (), IMAGE), ("Unflatten", (1, [2, -1]), (2, 6, 3)),
        ("Fold", (5, 2), (2, 12, 16)), ("Unfold", (3,), IMAGE), ("ChannelShuffle", (3,), (2, 6, 3, 3)),
        ("PixelShuffle", (2,), (2, 8, 3, 3)), ("PixelUnshuffle", (2,), (2, 3, 4, 4)),
        ("ZeroPad2D", ([1, 0, 2, 1],), IMAGE),
        ("Upsample", ([5, 4],), IMAGE), ("UpsamplingBilinear2D", ([12, 10],), IMAGE),
        ("UpsamplingNearest2D", ([12, 10],), IMAGE), ("CosineSimilarity", (), (4, 5), (4, 5)),
        ("PairwiseDistance", (), (4, 5), (4, 5)), ("L1Loss", (), (4, 5), (4, 5)), ("MSELoss", (), (4, 5), (4, 5)),
        ("SmoothL1Loss", (), (4, 5), (4, 5)), ("BCEWithLogitsLoss", (), (4, 3), (4, 3)),
        ("CrossEntropyLoss", (), (4, 10), lambda: ints(4)), ("NLLLoss", (), (4, 10), lambda: ints(4)),
        ("KLDivLoss", (), (4, 5), (4, 5)), ("MarginRankingLoss", (), (6,), (6,), (6,)),
        ("SoftMarginLoss", (), (4, 5), (4, 5)), ("HingeEmbeddingLoss", (), (4, 5), (4, 5)),
        ("TripletMarginLoss", (), (4, 5), (4, 5), (4, 5)), ("HSigmoidLoss", (4, 10), (5, 4), lambda: ints(5, 1)),
        ("MultiLabelSoftMarginLoss", (), (4, 5), (4, 5)), ("PoissonNLLLoss", (), (4, 5), (4, 5)),
        ("GRUCell", (4, 3), (2, 4)), ("LSTMCell", (4, 3), (2, 4)), ("SimpleRNNCell", (4, 3), (2, 4)),
        ("RNN", lambda: (nn.GRUCell(4, 3),), (2, 5, 4)),
        ("BiRNN", lambda: (nn.LSTMCell(4, 3), nn.LSTMCell(4, 3)), (2, 5, 4)),
        ("TransformerEncoderLayer", (8, 2, 12), (2, 5, 8)),
        ("TransformerDecoderLayer", (8, 2, 12), (2, 3, 8), (2, 5, 8)),
        ("TransformerEncoder", lambda: (nn.TransformerEncoderLayer(8, 2, 12), 2), (2, 5, 8)),
        ("TransformerDecoder", lambda: (nn.TransformerDecoderLayer(8, 2, 12), 2), (2, 3, 8), (2, 5, 8)),
        ("Transformer", (8, 2, 1, 1, 12), (2, 3, 8), (2, 5, 8))):
    layer_case(one, args, *inputs)
for one in ("SimpleRNN", "LSTM", "GRU"):  # construction: Paddle joins the weights for cuDNN, by methods of theirs
    layer_case(one, (4, 3), (2, 5, 4), constructs=False)
layer_case("Sequential", lambda: (nn.Linear(4, 4), nn.ReLU()), (2, 4), more={
    k: LIST_PHASES[k] for k in ("len", "get", "slice", "set item")})
layer_case("LayerList", lambda: ([nn.Linear(4, 4), nn.ReLU()],), more=LIST_PHASES)
layer_case("LayerDict", lambda: ({"a": nn.Linear(4, 4)},), more=DICT_PHASES)
layer_case("Layer", ())


def attended(net):
    x = paddle.ones([2, 5, 8])
    return net(x, x, x, None, net.gen_cache(x))


layer_case("MultiHeadAttention", (8, 2), (2, 5, 8), (2, 5, 8), (2, 5, 8), more={"with a cache": attended})


@case("paddle.nn.MultiHeadAttention")
def what_prepare_qkv_returns_counts():
    """As rotary positions need it."""
    class Shifted(nn.MultiHeadAttention):
        def _prepare_qkv(self, query, key, value, cache=None):
            q, k, v = super()._prepare_qkv(query, key, value, cache)
            return q + 1.0, paddle.roll(k, 1, 2), v * 2.0
    net = Shifted(4, 2)
    for p in net.parameters():
        p.set_value(np.linspace(-1, 1, int(np.prod(p.shape))).reshape(p.shape).astype("float32"))
    x = paddle.to_tensor(array(2, 3, 4).astype("float32"))
    y = net(x)
    y.sum().backward()
    return [y, *[p.grad for p in net.parameters()]]


@case("paddle.nn.Layer")
def build_once_and_calls_with_hooks():
    seen = []

    class Lazy(nn.Layer):
        def _build_once(self, x):
            seen.append("built")

        def _dygraph_call_func(self, *inputs, **kwargs):
            seen.append("hooked")
            return super()._dygraph_call_func(*inputs, **kwargs)

        def forward(self, x):
            seen.append("forward")
            return x
    net = Lazy()
    net(paddle.ones([1]))
    net.register_forward_post_hook(lambda layer, inputs, outputs: outputs * 2)
    y = net(paddle.ones([1]))
    return seen, y


@case("paddle.nn.BatchNorm1D", "paddle.nn.InstanceNorm2D")
def norms_of_other_ranks():
    class Any1D(nn.BatchNorm1D):
        def _check_input_dim(self, input):
            pass

    class Any2D(nn.InstanceNorm2D):
        def _check_input_dim(self, input):
            pass
    x = paddle.to_tensor(array(2, 3, 4, 5).astype("float32"))
    return Any1D(3)(x), Any2D(3)(x[:, :, :, 0])


# ---- optimizers ----


def trained(kind, cls, grouped, steps=3):
    net = nn.Linear(2, 2)
    for p in net.parameters():
        p.set_value(np.linspace(-1, 1, int(np.prod(p.shape))).reshape(p.shape).astype("float32"))
    params = [{"params": [net.weight]}, {"params": [net.bias], "learning_rate": 0.5}] if grouped else net.parameters()
    opt = cls(learning_rate=0.1, parameters=params)
    for _ in range(steps):
        (net(paddle.ones([2, 2])) ** 2).sum().backward()
        opt.step()
        opt.clear_grad()
    return net, opt


def optimizer_case(kind):
    def run():
        result = {}
        for grouped in (False, True):
            calls = Calls(getattr(optimizer, kind))
            calls.run(f"steps {grouped}", lambda: trained(kind, calls.cls, grouped))
            result.update(calls.phases)
        net, opt = trained(kind, calls.cls, False)
        pairs = [(p, paddle.ones_like(p)) for p in net.parameters()]
        calls.run("apply_gradients", lambda: opt.apply_gradients(pairs))
        calls.run("state_dict", lambda: opt.state_dict())
        loss = net(paddle.ones([2, 2])).sum()
        loss.backward()
        calls.run("minimize", lambda: opt.minimize(loss))
        return {**result, **calls.phases}
    run.__name__ = f"methods_of_{kind}"
    run.__module__ = __name__
    case(f"paddle.optimizer.{kind}", grad=False)(run)

    def values():
        class Doubled(getattr(optimizer, kind)):
            def _append_optimize_op(self, block, param_and_grad):
                pair = param_and_grad["params"] if isinstance(param_and_grad, dict) else param_and_grad
                pair = (pair[0], pair[1] * 2.0)
                if isinstance(param_and_grad, dict):
                    pair = {**param_and_grad, "params": pair}
                return super()._append_optimize_op(block, pair)
        return [trained(kind, Doubled, grouped)[0].parameters() for grouped in (False, True)]
    values.__name__ = f"{kind}_with_its_own_append_optimize_op"
    values.__module__ = __name__
    case(f"paddle.optimizer.{kind}")(values)


for one in ("SGD", "Momentum", "Adagrad", "RMSProp", "Adadelta", "Adam", "AdamW", "Adamax", "Lamb"):
    optimizer_case(one)


@case("paddle.optimizer.SGD.step", "paddle.optimizer.SGD.minimize")
def own_steps():
    """_apply_optimize and _create_regularization_of_grad of a user's; minimize does not go by step()."""
    seen = []

    class Own(optimizer.SGD):
        def step(self):
            seen.append("step")
            super().step()

        def _apply_optimize(self, loss, startup_program, params_grads, param_group_idx=0):
            seen.append(len(params_grads))
            half = [(p, g * 0.5) for p, g in params_grads]
            return super()._apply_optimize(loss, startup_program, half, param_group_idx)

        def _create_regularization_of_grad(self, param, grad, regularization=None):
            seen.append("regularization")
            return grad + param
    net, opt = trained("SGD", Own, False)
    loss = net(paddle.ones([2, 2])).sum()
    loss.backward()
    opt.minimize(loss)
    return seen, net.parameters()


@case("paddle.nn.ClipGradByGlobalNorm", "paddle.nn.ClipGradByNorm", "paddle.nn.ClipGradByValue")
def clips():
    result = []
    for kind in ("ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"):
        calls = Calls(getattr(nn, kind))
        clip = calls.run("construct", lambda: calls.cls(0.1))
        net = nn.Linear(2, 2)
        opt = optimizer.SGD(0.1, parameters=net.parameters(), grad_clip=clip)
        net(paddle.ones([1, 2])).sum().backward()
        calls.run("step", opt.step)
        result.append(calls.phases)
    return result


SCHEDULES = {
    "NoamDecay": (2, 2), "PiecewiseDecay": ([1, 2], [0.1, 0.2, 0.3]), "NaturalExpDecay": (0.1, 0.5),
    "InverseTimeDecay": (0.1, 0.5), "PolynomialDecay": (0.1, 3), "LinearWarmup": (0.1, 3, 0.0, 0.1),
    "ExponentialDecay": (0.1, 0.5), "MultiStepDecay": (0.1, [1, 2]), "StepDecay": (0.1, 2),
    "LambdaDecay": (0.1, lambda e: 0.9), "CosineAnnealingDecay": (0.1, 3), "MultiplicativeDecay": (0.1, lambda e: 0.9),
    "OneCycleLR": (0.1, 10), "CyclicLR": (0.1, 0.2, 3), "ReduceOnPlateau": (0.1,)}


@case(*[f"paddle.optimizer.lr.{name}" for name in SCHEDULES], grad=False)
def schedules():
    result = {}
    for kind, args in SCHEDULES.items():
        calls = Calls(getattr(optimizer.lr, kind))
        made = calls.run("construct", lambda: calls.cls(*args))
        metric = (1.0,) if kind == "ReduceOnPlateau" else ()
        calls.run("step", lambda: made.step(*metric))
        calls.run("step to", lambda: made.step(*metric, epoch=3))
        calls.run("call", made)
        state = calls.run("state_dict", lambda: made.state_dict())
        calls.run("set_state_dict", lambda: made.set_state_dict(state))
        opt = optimizer.SGD(made, parameters=nn.Linear(1, 1).parameters())
        calls.run("optimizer", lambda: (opt.get_lr(), opt.state_dict()))
        result[kind] = calls.phases
    return result


@case("paddle.metric.Accuracy", "paddle.metric.Precision", "paddle.metric.Recall", "paddle.metric.Auc", grad=False)
def metrics():
    result = {}
    scores, labels = np.array([[0.2, 0.8], [0.6, 0.4]], "float32"), np.array([[1], [0]])
    for kind in ("Accuracy", "Precision", "Recall", "Auc"):
        calls = Calls(getattr(paddle.metric, kind))
        made = calls.run("construct", calls.cls)
        given = [made.compute(paddle.to_tensor(scores), paddle.to_tensor(labels))] if kind == "Accuracy" else \
            [scores if kind == "Auc" else scores[:, 1], labels]
        calls.run("update", lambda: (made.update(*given), made.accumulate(), made.name()))
        calls.run("reset", made.reset)
        result[kind] = calls.phases
    return result


# ---- data ----


class Numbers(paddle.io.Dataset):
    def __getitem__(self, i):
        return np.float32(i)

    def __len__(self):
        return 6


@case("paddle.io.Dataset", "paddle.io.Sampler", "paddle.io.BatchSampler", "paddle.io.DataLoader", grad=False)
def datasets_and_samplers():
    result, io = {}, paddle.io
    for kind, args in ((Numbers, ()), (io.TensorDataset, ([paddle.ones([6, 2])],)), (io.Subset, (Numbers(), [0, 1])),
                       (io.ConcatDataset, ([Numbers(), Numbers()],)), (io.ComposeDataset, ([Numbers(), Numbers()],))):
        calls = Calls(kind)
        made = calls.run("construct", lambda: calls.cls(*args))
        calls.run("loader", lambda: list(io.DataLoader(made, batch_size=2)))
        calls.run("shuffled", lambda: list(io.DataLoader(made, batch_size=2, shuffle=True)))
        calls.run("length", lambda: len(io.DataLoader(made, batch_size=2)))
        result[kind.__name__] = calls.phases
    for kind in (io.SequenceSampler, io.RandomSampler):
        calls = Calls(kind)
        made = calls.run("construct", lambda: calls.cls(Numbers()))
        calls.run("batches", lambda: list(io.BatchSampler(sampler=made, batch_size=2)))
        result[kind.__name__] = calls.phases
    for kind, args in ((io.BatchSampler, (Numbers(), None, False, 2)),
                       (io.DistributedBatchSampler, (Numbers(), 2, 1, 0))):
        calls = Calls(kind)
        made = calls.run("construct", lambda: calls.cls(*args))
        calls.run("loader", lambda: list(io.DataLoader(Numbers(), batch_sampler=made)))
        calls.run("length", lambda: len(io.DataLoader(Numbers(), batch_sampler=made)))
        result[kind.__name__] = calls.phases
    return result


TRANSFORMS = {
    "Resize": (4,), "CenterCrop": (4,), "RandomCrop": (4,), "RandomHorizontalFlip": (1.0,),
    "RandomVerticalFlip": (1.0,),
    "Normalize": ([1.0] * 3, [2.0] * 3, "HWC"), "Transpose": (), "BrightnessTransform": (0.4,),
    "SaturationTransform": (0.4,), "ContrastTransform": (0.4,), "HueTransform": (0.4,),
    "ColorJitter": (0.1, 0.1, 0.1, 0.1), "Pad": (1,),
    "RandomRotation": (10,), "Grayscale": (), "RandomResizedCrop": (4,), "ToTensor": (), "RandomAffine": (10,),
    "RandomPerspective": (1.0,)}


@case(*[f"paddle.vision.transforms.{name}" for name in TRANSFORMS], grad=False)
def transforms():
    result, image = {}, (np.arange(192) % 255).astype("uint8").reshape(8, 8, 3)
    for kind, args in TRANSFORMS.items():
        calls = Calls(getattr(paddle.vision.transforms, kind))
        made = calls.run("construct", lambda: calls.cls(*args))
        calls.run("call", lambda: made(image))
        calls.run("composed", lambda: paddle.vision.transforms.Compose([made])(image))
        result[kind] = calls.phases
    return result


class Pairs(paddle.io.Dataset):
    def __getitem__(self, i):
        return np.ones(2, "float32"), np.ones(1, "float32")

    def __len__(self):
        return 4


@case("paddle.Model.fit", "paddle.Model.evaluate", "paddle.Model.predict", "paddle.callbacks.Callback", grad=False)
def model_and_callbacks():
    calls, back = Calls(paddle.Model), Calls(paddle.callbacks.Callback)
    model = calls.run("construct", lambda: calls.cls(nn.Linear(2, 1)))
    callback = back.run("construct", back.cls)
    opt = optimizer.SGD(0.1, parameters=model.parameters())
    calls.run("prepare", lambda: model.prepare(opt, nn.MSELoss()))
    for phase, use in (("fit", lambda: model.fit(Pairs(), Pairs(), 2, 1, verbose=0, callbacks=[callback])),
                       ("evaluate", lambda: model.evaluate(Pairs(), 2, verbose=0, callbacks=[callback])),
                       ("predict", lambda: model.predict(Pairs(), 2, verbose=0, callbacks=[callback]))):
        calls.run(phase, lambda: back.run(phase, use))
    return calls.phases, back.phases
