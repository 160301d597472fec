"""Methods of a static program's Variable: the operators they build, whose results and gradients must agree."""
import numpy as np
import paddle
import paddle.static as static
from parity import array, case

FEED = {}


def _fill():
    f = np.float32
    FEED.update(
        x=array(3, 4).astype(f), y=array(3, 4, low=0.5).astype(f), s=array(4, 4).astype(f),
        u=array(3, 4, low=0.1, high=0.9).astype(f), i=np.array([[3, 0, 2, 1], [1, 1, 0, 5], [7, 2, 2, 4]]),
        k=np.array([2, 0]), v=array(4).astype(f), b=np.array([[True, False, True, True]] * 3),
        c=(array(2, 2) + 1j * array(2, 2)).astype("complex64"), t=array(2, 3, 4).astype(f),
        p=(lambda a: a @ a.T + 4 * np.eye(4))(array(4, 4)).astype(f))


def run(methods, grad=True):
    """name -> what each method's call fetches; and the gradients of the sum of all float results."""
    _fill()
    paddle.enable_static()
    try:
        main = static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, static.Program()):
            v = {n: static.data(n, list(a.shape), str(a.dtype)) for n, a in FEED.items()}
            for n in "xysuvtp":
                v[n].stop_gradient = False
            found, total = {}, 0.0
            for name, fn in methods.items():
                outs = fn(v)
                outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
                found[name] = [o for o in outs if isinstance(o, static.Variable)]
                for o in found[name]:
                    if grad and not o.stop_gradient and ("float32" in str(o.dtype) or "FP32" in str(o.dtype)):
                        total = total + (o * o * 0.5 + o).sum()
            wanted = [v[n] for n in ("x", "y", "s", "u", "v", "t", "p")]
            grads = [g for g in static.gradients([total], wanted) if g is not None] if grad else []
            fetched = static.Executor().run(main, dict(FEED), [o for outs in found.values() for o in outs] + grads)
            results = iter(fetched)
            return {name: [next(results) for _ in outs] for name, outs in found.items()}, list(results)
    finally:
        paddle.disable_static()


def named(methods):
    return ["paddle.static.Variable", *(f"paddle.static.Variable.{name}" for name in methods)]


UNARY = {name: (lambda v, name=name: getattr(v["x"], name)()) for name in
         "abs ceil cos cosh erf exp floor sign sin sinh square tanh round t".split() if name != "t"}
UNARY |= {name: (lambda v, name=name: getattr(v["y"], name)()) for name in
          "log log10 log1p log2 reciprocal rsqrt sqrt".split()}
UNARY |= {name: (lambda v, name=name: getattr(v["u"], name)()) for name in "acos asin atan".split()}
UNARY |= {"stanh": lambda v: v["x"].stanh(0.5, 1.5), "scale": lambda v: v["x"].scale(2.0, 1.0),
          "clip": lambda v: v["x"].clip(-1.0, 1.0), "pow": lambda v: v["y"].pow(2.5), "clone": lambda v: v["x"].clone()}


@case(*named(UNARY))
def elementwise():
    return run(UNARY)


IN_PLACE = {name + "_": (lambda v, name=name: getattr(v["y"] * 1.0, name + "_")()) for name in
            "ceil exp floor reciprocal round rsqrt sqrt tanh".split()}
IN_PLACE |= {"add_": lambda v: (v["x"] * 1.0).add_(v["y"]), "subtract_": lambda v: (v["x"] * 1.0).subtract_(v["y"]),
             "clip_": lambda v: (v["x"] * 1.0).clip_(-0.5, 0.5), "scale_": lambda v: (v["x"] * 1.0).scale_(3.0),
             "flatten_": lambda v: (v["t"] * 1.0).flatten_(), "reshape_": lambda v: (v["x"] * 1.0).reshape_([4, 3]),
             "squeeze_": lambda v: (v["x"] * 1.0).unsqueeze(0).squeeze_(0),
             "unsqueeze_": lambda v: (v["x"] * 1.0).unsqueeze_(1),
             "increment": lambda v: (v["v"] * 1.0).sum().reshape([1]).increment(2.0),
             "scatter_": lambda v: (v["x"] * 1.0).scatter_(v["k"], v["y"][:2])}


@case(*named(IN_PLACE))
def in_place():
    return run(IN_PLACE, grad=False)


BINARY = {name: (lambda v, name=name: getattr(v["x"], name)(v["y"])) for name in
          "add subtract multiply divide maximum minimum dist".split()}
BINARY |= {name: (lambda v, name=name: getattr(v["i"], name)(v["i"] + 2)) for name in
           "floor_divide mod remainder floor_mod".split()}
BINARY |= {name: (lambda v, name=name: getattr(v["x"], name)(v["y"])) for name in
           "equal greater_equal greater_than less_equal less_than not_equal allclose equal_all".split()}
BINARY |= {name: (lambda v, name=name: getattr(v["b"], name)(v["x"] > 0)) for name in
           "logical_and logical_or logical_xor".split()}
BINARY |= {"logical_not": lambda v: v["b"].logical_not(), "where": lambda v: v["b"].where(v["x"], v["y"]),
           "cross": lambda v: v["t"].cross(v["t"] * 2.0 + 1.0, axis=1), "kron": lambda v: v["v"].kron(v["x"]),
           "add_n": lambda v: paddle.add_n([v["x"], v["y"]]),
           "multiplex": lambda v: paddle.multiplex([v["x"], v["y"]], (v["i"][:, 1:2] % 2).astype("int32"))}


@case(*named(BINARY))
def with_another():
    return run(BINARY)


PRODUCTS = {"matmul": lambda v: v["x"].matmul(v["s"]), "mm": lambda v: v["x"].mm(v["s"]),
            "mv": lambda v: v["x"].mv(v["v"]), "dot": lambda v: v["v"].dot(v["v"] + 1.0),
            "bmm": lambda v: v["t"].bmm(v["t"].transpose([0, 2, 1])),
            "addmm": lambda v: v["x"].addmm(v["y"], v["s"], 0.5, 2.0), "trace": lambda v: v["s"].trace(),
            "norm": lambda v: v["x"].norm(), "inverse": lambda v: v["p"].inverse(),
            "cholesky": lambda v: v["p"].cholesky(), "t": lambda v: v["x"].t(),
            "transpose": lambda v: v["t"].transpose([2, 0, 1])}


@case(*named(PRODUCTS), tol=1e-4)  # an inverse and a factor of float32 matrices, differentiated
def products():
    return run(PRODUCTS)


REDUCED = {name: (lambda v, name=name: getattr(v["x"], name)(1)) for name in
           "sum mean max min prod logsumexp median std var argmax argmin argsort sort cumsum flip".split()
           if name != "flip"}
REDUCED |= {"flip": lambda v: v["x"].flip([0]), "all": lambda v: v["b"].all(), "any": lambda v: v["b"].any(1),
            "topk": lambda v: v["x"].topk(2), "numel": lambda v: v["x"].numel(), "rank": lambda v: v["t"].rank(),
            "is_empty": lambda v: v["x"].is_empty(), "isfinite": lambda v: v["x"].isfinite(),
            "isinf": lambda v: v["x"].isinf(), "isnan": lambda v: v["x"].isnan(),
            "histogram": lambda v: v["x"].histogram(bins=5, min=-2, max=2)}


@case(*named(REDUCED))
def reductions():
    return run(REDUCED)


SHAPED = {"reshape": lambda v: v["x"].reshape([2, 6]), "flatten": lambda v: v["t"].flatten(1),
          "squeeze": lambda v: v["x"].unsqueeze(0).squeeze(0), "unsqueeze": lambda v: v["x"].unsqueeze([0, 2]),
          "expand": lambda v: v["v"].expand([3, 4]), "expand_as": lambda v: v["v"].expand_as(v["x"]),
          "broadcast_to": lambda v: v["v"].broadcast_to([2, 4]), "tile": lambda v: v["x"].tile([2, 1]),
          "concat": lambda v: paddle.concat([v["x"], v["y"]]), "stack": lambda v: paddle.stack([v["x"], v["y"]], 1),
          "split": lambda v: v["x"].split(2, 1), "chunk": lambda v: v["x"].chunk(2, 1),
          "unbind": lambda v: v["x"].unbind(0), "unstack": lambda v: v["x"].unstack(1),
          "roll": lambda v: v["x"].roll(1, 1), "reverse": lambda v: v["x"].reverse([1]),
          "slice": lambda v: v["x"].slice([0, 1], [1, 0], [3, 2]),
          "strided_slice": lambda v: v["x"].strided_slice([1], [0], [4], [2]),
          "cast": lambda v: v["x"].cast("int32"), "astype": lambda v: v["i"].astype("float32")}


@case(*named(SHAPED))
def shapes():
    return run(SHAPED)


PICKED = {"gather": lambda v: v["x"].gather(v["k"]), "gather_nd": lambda v: v["x"].gather_nd(v["k"].reshape([2, 1])),
          "index_select": lambda v: v["x"].index_select(v["k"], 1),
          "index_sample": lambda v: v["x"].index_sample(v["i"][:, :2] % 4),
          "masked_select": lambda v: v["x"].masked_select(v["b"]), "nonzero": lambda v: v["i"].nonzero(),
          "scatter": lambda v: v["x"].scatter(v["k"], v["y"][:2]),
          "scatter_nd": lambda v: v["k"].reshape([2, 1]).scatter_nd(v["y"][:2], [5, 4]),
          "scatter_nd_add": lambda v: v["x"].scatter_nd_add(v["k"].reshape([2, 1]), v["y"][:2]),
          "shard_index": lambda v: v["i"].reshape([12, 1]).shard_index(20, 2, 0), "unique": lambda v: v["i"].unique(),
          "real": lambda v: v["c"].real(), "imag": lambda v: v["c"].imag(),
          "conj": lambda v: [v["c"].conj().real(), v["c"].conj().imag()]}


@case(*named(PICKED))
def picked():
    return run(PICKED)


@case("paddle.static.Variable.name", "paddle.static.Variable.shape", "paddle.static.Variable.dtype",
      "paddle.static.Variable.to_string", "paddle.static.Variable.grad_name", "paddle.static.Variable.is_tensor",
      "paddle.static.Variable.broadcast_shape", "paddle.static.Variable.lod_level", "paddle.static.Variable.detach",
      "paddle.static.Variable.get_value", "paddle.static.Variable.set_value", "paddle.static.Variable.stop_gradient",
      "paddle.static.Variable.persistable", "paddle.static.Variable.type")
def facts():
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            x = static.data("x", [None, 3], "float32")
            w = static.create_parameter([3, 2], "float32", name="w",
                                        default_initializer=paddle.nn.initializer.Constant(0.5))
            exe = static.Executor()
            exe.run(startup)
            out = [x.name, list(x.shape), x.dtype == paddle.float32, "x" in x.to_string(True), x.grad_name, paddle.is_tensor(x),
                   x.lod_level, x.stop_gradient, x.persistable, w.persistable, w.stop_gradient, x.type == w.type,
                   paddle.broadcast_shape([2, 1], [1, 3]), np.array(w.get_value())]
            w.set_value(np.arange(6, dtype="float32").reshape(3, 2))
            y = paddle.matmul(x.detach(), w)
            return out, exe.run(main, {"x": np.ones((2, 3), "float32")}, [y])
    finally:
        paddle.disable_static()


@case("paddle.static.append_backward", "paddle.matmul", "paddle.concat", "paddle.topk", "paddle.mean")
def names_of_results():
    """`name` names a call's results; the gradients of what lies between have names, too."""
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup):
            x = static.data("x", [2, 3])
            a = paddle.full([1], 1.5)
            a.stop_gradient = False
            start = paddle.nn.initializer.Assign(np.arange(12, dtype="float32").reshape(3, 4) ** 0.5)
            w = paddle.create_parameter([3, 4], "float32", default_initializer=start)
            h = paddle.matmul(x * a, w, name="product")
            values, _ = paddle.topk(paddle.concat([h, h * 0.5], axis=1, name="both"), 2, name="largest")
            loss = paddle.mean(values, name="loss")
            static.append_backward(loss)
            exe = static.Executor()
            exe.run(startup)
            fetched = exe.run(main, {"x": np.arange(6, dtype="float32").reshape(2, 3)},
                              ["loss.tmp_0", "product.tmp_0@GRAD", a.name + "@GRAD"])
            return h.name, values.name, loss.name, fetched
    finally:
        paddle.disable_static()
