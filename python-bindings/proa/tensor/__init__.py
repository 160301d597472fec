"""paddle.tensor: the functions of the paddle namespace that work on tensors, and the Tensor methods made of them."""
from .. import _core
from .._asks import named as _named

globals().update(_core.api("paddle"))

from . import (array, attribute, construct as _construct, creation, einsum as _einsum, linalg, logic, manipulation, math,
               methods, random, search, stat, to_string)



def _elsewhere(module):
    """A module's __getattr__: functions that Paddle has in it, and this package in another module or as an op alone."""
    def find(name):
        found = None if name.startswith("_") else globals().get(name)
        if not callable(found):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return found
    return find


for _module in (array, attribute, creation, linalg, logic, manipulation, math, random, search, stat):
    _module.__getattr__ = _elsewhere(_module)

_METHODS = """
abs_ acos_ acosh_ add_n addmm_ allclose asin_ asinh_ as_complex as_real as_strided atan_ atanh_ atleast_1d atleast_2d
atleast_3d bincount bitwise_and_ bitwise_not_ bitwise_or_ bitwise_xor_ broadcast_shape broadcast_tensors bucketize
cast_ cauchy_ cdist cholesky cholesky_solve chunk clip clip_ combinations concat cond corrcoef cos_ cosh_
count_nonzero cov create_parameter create_tensor cross cummax cummin cumprod cumprod_ cumsum cumsum_
cumulative_trapezoid deg2rad diag diag_embed diagflat diagonal diagonal_scatter diff digamma_ dist eig eigvals
eigvalsh equal_ equal_all erf_ expm1_ exponential_ fill_ fill_diagonal_ fill_diagonal_tensor fill_diagonal_tensor_
flatten_ floor_mod floor_mod_ frac frac_ frexp gcd gcd_ geometric_ greater_equal_ greater_than_ histogram
householder_product hypot hypot_ i0 i0_ i0e i1 i1e increment index_fill index_fill_ index_put index_put_ inner inverse
is_complex is_empty is_floating_point is_integer is_tensor isclose kron lcm lcm_ ldexp ldexp_ lerp lerp_ less_equal_
less_than_ lgamma_ log10_ log1p_ log2_ log_ logaddexp logcumsumexp logical_and_ logical_not_ logical_or_ logical_xor_
logit logit_ lstsq lu lu_unpack masked_fill masked_fill_ matmul matrix_power median mm mod mod_ mode moveaxis
multi_dot multigammaln multigammaln_ multinomial multiplex nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum
neg_ nextafter nonzero norm normal_ not_equal_ outer pca_lowrank pinv polar polygamma polygamma_ pow pow_
put_along_axis put_along_axis_ qr quantile rad2deg rank remainder remainder_ renorm renorm_ repeat_interleave reshape
reshape_ reverse rot90 scale scale_ scatter_nd select_scatter sgn shard_index sigmoid_ sin_ sinh_ slice solve sort
split square_ squeeze squeeze_ std strided_slice t t_ take take_along_axis tan_ tensordot top_p_sampling topk trace transpose_
trapezoid triangular_solve tril_ triu_ trunc_ unbind unflatten unfold uniform_ unique unique_consecutive unsqueeze_
unstack vander var view view_as vsplit where where_ zero_
""".split()

for _module in (array, creation, attribute, logic, manipulation, math, linalg, stat, search, random, _einsum, to_string):
    for _name in _module.__all__:
        globals()[_name] = getattr(_module, _name)
_named(globals())
for _name in _METHODS:
    if _name in globals():
        setattr(_core.Tensor, _name, globals()[_name])
for _name, _fn in methods.METHODS.items():
    if _name not in _core.Tensor.__dict__:
        setattr(_core.Tensor, _name, _fn)
for _name in "add_ subtract_ multiply_ divide_".split():
    if _name not in globals() and hasattr(_core, _name):
        globals()[_name] = getattr(_core, _name)

# what `from proa.tensor import *` puts into the paddle namespace
__all__ = [n for n in globals() if not n.startswith("_") and n not in (
    *array.__all__, "array", "attribute", "creation", "linalg", "logic", "manipulation", "math", "methods", "random", "search", "stat",
    "to_string")]
del _module, _name, _fn
