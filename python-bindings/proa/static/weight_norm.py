"""WeightNormParamAttr in programs: a weight computed from its direction and magnitude."""
from .. import _core
from ..framework import unique_name
from ..framework.param_attr import WeightNormParamAttr
from .variable import make_variable_parameter

_SMALL = 1e-12


def _norm(v, dim):
    """L2 norm over every axis but dim (over all if dim is None), shaped to be multiplied with v."""
    axes = [i for i in range(len(v.shape)) if i != dim]
    square = _core.sum(_core.multiply(v, v), axes, keepdim=True)
    return _core.sqrt(_core.scale(square, 1.0, _SMALL ** 2))


def make_weight_norm(owner, attr, shape, dtype, make):
    """weight = g · v / |v|: v is initialized as the weight would have been, g as |v|."""
    base = attr.name or unique_name.generate(f"{owner}.w")
    dim = attr.dim
    plain = [1] * len(shape)
    if dim is not None:
        plain[dim] = shape[dim]
    direction = make_variable_parameter(base + "_v", shape, dtype, attr, make)

    def magnitude(twin):
        from .program import default_startup_program
        start = default_startup_program()._core.find(direction.name)
        _core.assign_to(_core.reshape(_norm(start, dim), plain), twin)

    size = make_variable_parameter(base + "_g", plain, dtype, attr, magnitude)
    weight = _core.multiply(direction, _core.divide(size, _norm(direction, dim)))
    WeightNormParamAttr.params_with_weight_norm.append(weight)
    return weight
