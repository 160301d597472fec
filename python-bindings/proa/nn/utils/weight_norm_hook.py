"""weight_norm: stores a weight as magnitude g and direction v, and recomputes it before each forward."""
from ... import _core

_EPSILON = 1e-12


def _norm_except(v, dim):
    """The norm of v over every dimension but dim (dim -1: over all)."""
    squares = _core.multiply(v, v)
    if dim == -1:
        return _core.sqrt(_core.scale(_core.sum(squares), 1.0, bias=_EPSILON))
    axes = [i for i in range(len(v.shape)) if i != dim]
    total = _core.sum(squares, axes) if axes else squares
    return _core.sqrt(_core.scale(total, 1.0, bias=_EPSILON))


def _weight(v, g, dim):
    norm = _norm_except(v, dim)
    if dim == -1:
        return _core.multiply(_core.divide(v, norm), g)
    spread = [-1 if i == dim else 1 for i in range(len(v.shape))]
    return _core.multiply(v, _core.reshape(_core.divide(g, norm), spread))


class WeightNorm:
    """The hook that puts the weight together."""

    def __init__(self, name, dim):
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, layer):
        return _weight(getattr(layer, self.name + "_v"), getattr(layer, self.name + "_g"), self.dim)

    def __call__(self, layer, inputs):
        setattr(layer, self.name, self.compute_weight(layer))


def _unrecorded(fn, *args):
    recording = _core.set_recording(False)
    try:
        return fn(*args)
    finally:
        _core.set_recording(recording)


def weight_norm(layer, name="weight", dim=0):
    """Replaces a layer's parameter by its norm along dim (name_g) and its direction (name_v); returns the layer.

    >>> import proa as paddle
    >>> conv = paddle.nn.utils.weight_norm(paddle.nn.Conv2D(3, 5, 3))
    >>> conv.weight_g.shape
    [5]
    """
    for hook in layer._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(f"weight_norm: the parameter {name!r} has it already")
    weight = layer._parameters[name]
    rank = len(weight.shape)
    if dim is None:
        dim = -1
    if not -rank <= dim < rank:
        raise AssertionError(f"weight_norm: dim must be in [{-rank}, {rank}), got {dim}")
    if dim != -1:
        dim %= rank
    hook = WeightNorm(name, dim)
    norm = _unrecorded(_norm_except, weight, dim)
    del layer._parameters[name]
    v = layer.create_parameter(weight.shape, dtype=weight.dtype)
    layer.add_parameter(name + "_v", v)
    g = layer.create_parameter(norm.shape, dtype=norm.dtype)
    layer.add_parameter(name + "_g", g)
    v.set_value(weight)
    g.set_value(norm)
    setattr(layer, name, hook.compute_weight(layer))
    layer.register_forward_pre_hook(hook)
    return layer


def remove_weight_norm(layer, name="weight"):
    """Makes the weight one parameter again; returns the layer."""
    for key, hook in list(layer._forward_pre_hooks.items()):
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = _unrecorded(hook.compute_weight, layer)
            delattr(layer, name)
            del layer._parameters[name + "_g"], layer._parameters[name + "_v"]
            param = layer.create_parameter(weight.shape, dtype=weight.dtype)
            layer.add_parameter(name, param)
            param.set_value(weight)
            del layer._forward_pre_hooks[key]
            return layer
    raise ValueError(f"remove_weight_norm: {name!r} of {type(layer).__name__} has no weight_norm")
