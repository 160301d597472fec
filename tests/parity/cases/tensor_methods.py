"""Tensor methods that are no operations: hooks, copies, pickling, protocols; and create_parameter."""
import copy
import pickle

import numpy as np
import paddle
from parity import case, ints, raised, rand


@case("paddle.Tensor.register_hook", grad=False)
def hooks():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    seen = []
    double = x.register_hook(lambda g: g * 2)
    look = x.register_hook(lambda g: seen.append(g.numpy()))
    (x * x).sum().backward()
    first = x.grad.numpy()
    x.clear_grad()
    removed = double.remove(), look.remove(), look.remove()
    (x * x).sum().backward()
    h = x * 3.0
    h.register_hook(lambda g: g + 1.0)
    x.clear_grad()
    h.sum().backward()
    return first, seen, removed, x.grad.numpy(), \
        raised(lambda: paddle.ones([2]).register_hook(print), RuntimeError, ValueError)


@case("paddle.Tensor", "paddle.Tensor.stop_gradient", grad=False)
def copies():
    x = rand(2, 3)
    x.name = "mine"
    y = copy.deepcopy(x)
    z = copy.deepcopy({"a": [x, x]})["a"]
    return y, y is x, y.name.startswith("mine"), z[0] is z[1], z[0]


@case("paddle.Tensor", grad=False)
def protocols():
    x = rand(2, 3, grad=False)
    a, b = x
    it = iter(ints(3))
    return np.asarray(x), np.array(x, dtype="float64"), x.__array__(), a, b, next(it), len(x), \
        raised(lambda: list(rand(grad=False)), TypeError, AssertionError), \
        raised(lambda: len(rand(grad=False)), TypeError, AssertionError), \
        x.element_size(), x.dim(), x.ndimension(), x.is_tensor(), hash(x) == hash(x), bool(x[0, 0] == x[0, 0])


@case("paddle.Tensor.cpu", "paddle.Tensor.gradient", "paddle.Tensor.value", grad=False)
def moves():
    x = rand(2, 2)
    none = x.gradient()
    (x * 3.0).sum().backward()
    wide, same, whole = [rand(2, grad=False) for _ in range(3)]  # Paddle's to() changes the tensor itself, too
    return none, x.gradient(), x.cpu(), str(x.cpu().place), x.cpu().stop_gradient, wide.to("float64"), same.to("cpu"), \
        whole.to("cpu", dtype="int32"), rand(2, grad=False).to(ints(2)).dtype == paddle.int64


@case("paddle.Tensor", grad=False)
def pickled():
    x = rand(2, 3, grad=False)
    return pickle.loads(pickle.dumps({"x": x.numpy()}))["x"]


@case("paddle.create_parameter", grad=False)
def parameters():
    fixed = paddle.nn.initializer.Constant(2.5)
    w = paddle.create_parameter([2, 3], "float32", default_initializer=fixed)
    b = paddle.create_parameter(shape=[3], dtype="float64", is_bias=True)
    named = paddle.create_parameter([2], "float32", name="my_w", attr=None)
    given = paddle.create_parameter([2], "float32", attr=paddle.ParamAttr(name="p", initializer=fixed, trainable=False))
    (w * 2.0).sum().backward()
    return w, b, w.grad, w.stop_gradient, w.persistable, w.trainable, named.name, named.shape, given, given.name, \
        given.stop_gradient, raised(lambda: paddle.create_parameter(2, "float32"), TypeError)


@case("paddle.utils.dlpack.to_dlpack", "paddle.utils.dlpack.from_dlpack", grad=False)
def dlpack():
    from paddle.utils.dlpack import from_dlpack, to_dlpack
    x = ints(2, 3)
    capsule = to_dlpack(x)
    y = from_dlpack(capsule)
    return x, y, type(capsule).__name__, from_dlpack(to_dlpack(rand(2, 3, grad=False)[:, 1:].clone())), \
        from_dlpack(to_dlpack(rand(grad=False))), raised(lambda: from_dlpack(3), TypeError), \
        raised(lambda: to_dlpack([1]), TypeError)


# every in-place name of 2.6.2: Proa has some more
HERE = {"paddle": paddle, "paddle.Tensor": paddle.Tensor, "paddle.nn.functional": paddle.nn.functional}
TWINS = {
    "paddle": """
abs_ acos_ acosh_ addmm_ asin_ asinh_ atan_ atanh_ bitwise_and_ bitwise_not_ bitwise_or_ bitwise_xor_ cast_ cauchy_
cos_ cosh_ cumprod_ cumsum_ digamma_ divide_ equal_ erf_ expm1_ floor_divide_ floor_mod_ frac_ gcd_ geometric_
greater_equal_ greater_than_ hypot_ i0_ index_add_ index_fill_ index_put_ lcm_ ldexp_ less_equal_ less_than_
lgamma_ log10_ log1p_ log2_ log_ logical_and_ logical_not_ logical_or_ logical_xor_ logit_ masked_fill_ mod_
multigammaln_ multiply_ nan_to_num_ neg_ normal_ not_equal_ polygamma_ pow_ remainder_ renorm_ reshape_ scatter_
sin_ sinh_ square_ squeeze_ t_ tan_ tanh_ transpose_ tril_ triu_ trunc_ unsqueeze_ where_""",
    "paddle.Tensor": """
abs_ acos_ acosh_ add_ addmm_ asin_ asinh_ atan_ atanh_ bitwise_and_ bitwise_not_ bitwise_or_ bitwise_xor_ cast_
cauchy_ ceil_ clip_ copy_ cos_ cosh_ cumprod_ cumsum_ detach_ digamma_ divide_ equal_ erfinv_ exp_ exponential_
fill_ fill_diagonal_ fill_diagonal_tensor_ flatten_ floor_ floor_divide_ floor_mod_ frac_ gcd_ geometric_
greater_equal_ greater_than_ hypot_ i0_ index_add_ index_fill_ index_put_ lcm_ ldexp_ lerp_ less_equal_ less_than_
lgamma_ log10_ log1p_ log2_ log_ logical_and_ logical_not_ logical_or_ logical_xor_ logit_ masked_fill_ mod_
multigammaln_ multiply_ nan_to_num_ neg_ normal_ not_equal_ polygamma_ pow_ put_along_axis_ reciprocal_
reconstruct_from_ remainder_ renorm_ reshape_ round_ rsqrt_ scale_ scatter_ sigmoid_ sin_ sinh_ sqrt_ squeeze_
subtract_ t_ tan_ tanh_ transpose_ tril_ triu_ trunc_ uniform_ unsqueeze_ where_ zero_""",
    "paddle.nn.functional": """
elu_ hardtanh_ leaky_relu_ relu_ softmax_ tanh_ thresholded_relu_"""}


@case("paddle.Tensor", grad=False)
def in_place_twins_are_there():
    return [(place, name, hasattr(HERE[place], name)) for place in TWINS for name in TWINS[place].split()]


@case("paddle.nn.functional.leaky_relu_", "paddle.nn.functional.hardtanh_", "paddle.nn.functional.thresholded_relu_",
      "paddle.Tensor.lerp_", "paddle.Tensor.detach_")
def in_place_twins():
    F = paddle.nn.functional
    seen = [F.leaky_relu_(rand(3, 4) * 1.0, 0.2), F.hardtanh_(rand(3, 4) * 1.0, -0.5, 0.75),
            F.thresholded_relu_(rand(3, 4) * 1.0, 0.3), (rand(3) * 1.0).lerp_(rand(3), 0.3),
            (rand(3) * 1.0).lerp_(rand(3), paddle.to_tensor(0.25)),
            (rand(3) * 1.0).pow_(2.0), (rand(3) * 1.0).tan_()]
    with paddle.no_grad():
        x = rand(3)
        seen += [x.lerp_(paddle.zeros([3]), 0.3), F.leaky_relu_(paddle.to_tensor([-1.0, 2.0]))]
    y = rand(3) * 2.0
    kept = y.detach_()
    return seen, kept is y, y.stop_gradient, y


@case("paddle.Tensor.tanh_", "paddle.Tensor.add_", "paddle.Tensor.reshape_", "paddle.Tensor.zero_")
def leaves_in_place():
    """A leaf that wants a gradient is not changed in place."""
    def refused(change):
        x = paddle.ones([2, 3])
        x.stop_gradient = False
        return raised(lambda: change(x))
    return [refused(lambda x: x.tanh_()), refused(lambda x: x.add_(paddle.ones([2, 3]))), refused(lambda x: x.reshape_([3, 2])),
            refused(lambda x: x.zero_()), refused(lambda x: x.__setitem__(0, 1.0))]


@case("paddle.Tensor.astype", "paddle.cast", "paddle.zeros", "paddle.full", "paddle.arange", "paddle.static.data")
def dtypes_by_names_of_c():
    x = paddle.ones([2])
    seen = [x.astype(name).dtype for name in ("double", "single", "half", "long", "int", "float", "short")]
    seen += [x.astype(name).dtype for name in ("bool_ bool8 b1 ? u1 B i1 b i2 h i4 i int_ i8 l q f2 e u2 H f4 f f8 d c8 F "
                                               "c16 D <f4 =i8 |u1".split())]
    seen += [paddle.zeros([1], "f8").dtype, paddle.full([1], 2, "<i4").dtype, paddle.cast(x, "i8").dtype]
    seen += [paddle.cast(x, "double").dtype, paddle.zeros([1], "double").dtype, paddle.full([1], 2, "long").dtype,
             paddle.arange(0, 3, 1, "double").dtype, paddle.static.InputSpec([1], "double").dtype]
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            seen += [paddle.static.data(name, [1], name).dtype for name in ("double", "float", "int", "half")]
    finally:
        paddle.disable_static()
    return [str(one).rpartition(".")[2] for one in seen]


@case("paddle.Tensor.tolist", "paddle.Tensor.item")
def numbers_of_all_dtypes():
    out = []
    for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"):
        x = paddle.to_tensor([[0.0, 1.0, 2.5], [100.25, 7.0, 3.0]]).astype(dtype)
        out += [x.tolist(), x.t().tolist(), x[:, 1:].tolist(), x[1, 0].item(), type(x[1, 0].item()).__name__]
    return [repr(one) for one in out]
