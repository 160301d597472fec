"""Bad calls of one Paddle: refusals.py MODULE prints {call: "ok", or "Type|Category" of what it raises} as JSON. Operands of all pairs
of dtypes; functions in the mode in which Paddle lacks them; lists of ints as tensors; shapes of too many dims."""
import importlib
import itertools
import json
import re
import sys

paddle = importlib.import_module(sys.argv[1])
F = paddle.nn.functional

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
BINARY = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "mod", "floor_mod", "pow", "maximum", "minimum", "fmax",
          "fmin", "atan2", "heaviside", "kron", "isclose", "allclose", "equal_all", "equal", "not_equal", "less_than", "less_equal",
          "greater_than", "greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
          "nextafter", "complex", "gcd", "lcm", "hypot", "add_", "subtract_", "multiply_", "divide_", "floor_divide_", "remainder_",
          "logical_and_", "equal_", "bitwise_or_"]
OTHERS = {
    "matmul": (paddle.matmul, [3, 3], [3, 3]), "mm": (paddle.mm, [3, 3], [3, 3]), "inner": (paddle.inner, [3, 3], [3, 3]),
    "outer": (paddle.outer, [3], [3]), "bmm": (paddle.bmm, [2, 3, 3], [2, 3, 3]), "mv": (paddle.mv, [3, 3], [3]),
    "dot": (paddle.dot, [3], [3]), "dist": (paddle.dist, [3], [3]), "cross": (paddle.cross, [2, 3], [2, 3]),
    "linear": (F.linear, [2, 3], [3, 3]), "conv1d": (F.conv1d, [1, 4, 6], [4, 4, 2]), "conv2d": (F.conv2d, [1, 4, 6, 6], [4, 4, 2, 2]),
    "conv3d": (F.conv3d, [1, 4, 6, 6, 6], [4, 4, 2, 2, 2]), "conv1d_transpose": (F.conv1d_transpose, [1, 4, 6], [4, 4, 2]),
    "conv2d_transpose": (F.conv2d_transpose, [1, 4, 6, 6], [4, 4, 2, 2]),
    "layer_norm": (lambda x, y: F.layer_norm(x, 4, weight=y, bias=y), [2, 4], [4]),
    "l1_loss": (F.l1_loss, [2, 3], [2, 3]), "smooth_l1_loss": (F.smooth_l1_loss, [2, 3], [2, 3]), "kl_div": (F.kl_div, [2, 3], [2, 3]),
    "binary_cross_entropy": (F.binary_cross_entropy, [2, 3], [2, 3]),
    "with_logits": (F.binary_cross_entropy_with_logits, [2, 3], [2, 3]),
    "where": (lambda x, y: paddle.where(paddle.ones([2, 3], "bool"), x, y), [2, 3], [2, 3]),
    "index_add": (lambda x, y: paddle.index_add(x, paddle.to_tensor([0, 1]), 0, y), [2, 3], [2, 3]),
    "scatter_nd_add": (lambda x, y: paddle.scatter_nd_add(x, paddle.to_tensor([[1]]), y), [3, 3], [1, 3]),
    "put_along_axis": (lambda x, y: paddle.put_along_axis(x, paddle.to_tensor([[0, 1, 0]]), y, 0), [2, 3], [1, 3]),
}
INTS = {name: lambda v, name=name: getattr(paddle, name)(paddle.ones([1, 2]), v)
        for name in ("expand", "broadcast_to", "reshape", "squeeze", "sum", "mean", "max", "min", "prod", "count_nonzero", "nansum",
                     "nanmean", "std", "var", "roll", "crop")}
INTS.update(zeros=paddle.zeros, ones=paddle.ones, full=lambda v: paddle.full(v, 1.0),
            strides=lambda v: paddle.strided_slice(paddle.ones([3]), [0], [0], [1], v),
            starts=lambda v: paddle.strided_slice(paddle.ones([3]), [0], v, [1], [1]))
LONG = [1] * 11
SHAPES = {"reshape": lambda: paddle.reshape(paddle.ones([1]), LONG), "ones": lambda: paddle.ones(LONG), "randn": lambda: paddle.randn(LONG),
          "uniform": lambda: paddle.uniform(LONG), "as_strided": lambda: paddle.as_strided(paddle.ones([1]), LONG, LONG),
          "transpose": lambda: paddle.transpose(paddle.ones([1]), LONG), "expand": lambda: paddle.expand(paddle.ones([1]), LONG),
          "Laplace": lambda: paddle.distribution.Laplace(0.0, 1.0).sample(LONG),
          "Bernoulli": lambda: paddle.distribution.Bernoulli(0.5).sample(LONG),
          "Cauchy": lambda: paddle.distribution.Cauchy(0.0, 1.0).sample(LONG)}
IN_PROGRAMS = {
    "moveaxis": lambda x: paddle.moveaxis(x, x, [0, 1]), "destination": lambda x: paddle.moveaxis(x, [0, 1], x),
    "set_rng_state": lambda x: paddle.set_rng_state(x), "stack": lambda x: paddle.stack([1, 2]), "text": lambda x: paddle.stack("a"),
    "meshgrid": lambda x: paddle.meshgrid(x, None), "linear": lambda x: F.linear(1.5, x), "arange": lambda x: paddle.arange(end=1 + 2j),
    "reverse bools": lambda x: paddle.static.nn.sequence_reverse(x > 0),
    "as_strided": lambda x: paddle.as_strided(x, [2, 2], [1]), "cauchy_": lambda x: paddle.cauchy_(x, loc="a"),
    "geometric_": lambda x: paddle.geometric_(x, {}), "normal_": lambda x: paddle.normal_(x, mean=[]), "tolist": lambda x: paddle.tolist(x),
    "list": lambda x: paddle.tolist([x]), "unfold": lambda x: paddle.unfold(x, 9, 2, 1), "size": lambda x: paddle.unfold(x, 0, -2, 1),
    "view": lambda x: paddle.view(x, "no such"), "view_as": lambda x: paddle.view_as(x, 5), "grad": lambda x: paddle.grad(x, 7)}
EAGER = {"grad": lambda x: paddle.incubate.autograd.grad(x, 7), "forward_grad": lambda x: paddle.incubate.autograd.forward_grad(x, "a")}

ONES_IN_PLACE = ["abs_", "acos_", "atan_", "cos_", "erf_", "expm1_", "log10_", "log1p_", "log2_", "neg_", "sin_", "tan_", "trunc_"]
OF_ANYTHING = {"neg_ of a bool": lambda: paddle.neg_(True), "neg_ of a text": lambda: paddle.neg_("a"),
               "einsum of bytes": lambda: paddle.einsum(b"i"), "view of None": lambda: paddle.view(None, paddle.ones([2])),
               "view as a dict": lambda: paddle.view(paddle.ones([2]), {}), "arange to a complex": lambda: paddle.arange(end=1 + 2j),
               "is_same_shape of None": lambda: paddle.ones([2]).is_same_shape(None, 7),
               "reconstruct_from_ of None": lambda: paddle.ones([2]).reconstruct_from_(None, 7)}
WITHOUT_ARGUMENTS = ["clone", "contiguous", "data_ptr", "detach", "detach_", "element_size", "get_selected_rows", "get_strides", "get_tensor",
                     "is_contiguous", "is_dense", "is_dist", "is_selected_rows", "is_sparse", "is_sparse_coo", "is_sparse_csr", "numpy",
                     "retain_grads", "to_sparse_csr", "clear_gradient"]


def outcome(call, *args):
    try:
        call(*args)
        return "ok"
    except Exception as error:
        found = re.search(r"\((InvalidArgument|NotFound|OutOfRange|PreconditionNotMet|Unimplemented|ResourceExhausted)\)|"
                          r"\b(InvalidArgument)Error:", str(error))
        return f"{type(error).__name__}|{(found[1] or found[2]) if found else ''}"


def tensor(shape, dtype):
    return paddle.ones(shape).astype(dtype)


said = {}
for name, (x, y) in itertools.product(BINARY, itertools.product(DTYPES, DTYPES)):
    said[f"{name}({x}, {y})"] = outcome(getattr(paddle.Tensor if name.endswith("_") else paddle, name), tensor([2, 3], x),
                                        tensor([2, 3], y))
for (name, (call, a, b)), (x, y) in itertools.product(OTHERS.items(), itertools.product(DTYPES, DTYPES)):
    said[f"{name}({x}, {y})"] = outcome(call, tensor(a, x), tensor(b, y))
for (name, call), dtype in itertools.product(INTS.items(), ["int8", "float16", "float32", "float64", "bool"]):
    said[f"{name}(ints of {dtype})"] = outcome(call, tensor([1], dtype))
for name, call in SHAPES.items():
    said[f"{name}({len(LONG)} dims)"] = outcome(call)
for name, call in EAGER.items():
    said[f"eager {name}"] = outcome(call, paddle.ones([2]))
for name, dtype in itertools.product(ONES_IN_PLACE, ["int32", "int64", "float32", "complex64"]):
    said[f"in place {name}({dtype})"] = outcome(getattr(paddle, name), tensor([2], dtype))
for name, call in OF_ANYTHING.items():
    said[f"of {name}"] = outcome(call)
for name in WITHOUT_ARGUMENTS:
    said[f"surplus {name}"] = outcome(lambda: getattr(paddle.ones([2, 3]), name)(None, 7, no_such=1))
said["surplus PyLayer"] = outcome(lambda: paddle.autograd.PyLayer(None, no_such=1))
said["surplus to_static"] = outcome(lambda: paddle.jit.to_static(lambda x: x, no_such=1))
paddle.enable_static()
for name, call in IN_PROGRAMS.items():
    with paddle.static.program_guard(paddle.static.Program()):
        said[f"program {name}"] = outcome(call, paddle.static.data("x", [2, 3]))
print(json.dumps(said))
