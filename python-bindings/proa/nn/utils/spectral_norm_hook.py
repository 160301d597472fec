"""spectral_norm: divides a layer's weight by its largest singular value, estimated by power iteration."""
from ... import _core


def _matrix(weight, dim):
    if dim:
        weight = _core.transpose(weight, [dim] + [d for d in range(len(weight.shape)) if d != dim])
    return _core.reshape(weight, [weight.shape[0], -1])


def _unit(x, epsilon):
    norm = _core.sqrt(_core.sum(_core.multiply(x, x)))
    return _core.divide(x, _core.maximum(norm, _core.full_like(norm, epsilon)))


class SpectralNorm:
    """The hook that divides the weight."""

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations must be positive, got {n_power_iterations}")
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, layer, do_power_iteration):
        weight = getattr(layer, self.name + "_orig")
        u, v = getattr(layer, self.name + "_u"), getattr(layer, self.name + "_v")
        matrix = _matrix(weight, self.dim)
        if do_power_iteration:
            recording = _core.set_recording(False)
            try:
                for _ in range(self.n_power_iterations):
                    v.set_value(_unit(_core.mv(_core.transpose(matrix, [1, 0]), u), self.eps))
                    u.set_value(_unit(_core.mv(matrix, v), self.eps))
                u, v = u.clone(), v.clone()  # the next forward changes the buffers, backward needs these
            finally:
                _core.set_recording(recording)
        return _core.divide(weight, _core.dot(u, _core.mv(matrix, v)))

    def __call__(self, layer, inputs):
        setattr(layer, self.name, self.compute_weight(layer, layer.training))


def spectral_norm(layer, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a layer's weight by its largest singular value before each forward; returns the layer.

    dim is the output's dimension: 1 for Linear and transposed convolutions, else 0, unless given.
    """
    from ..layer.common import Linear
    from ..layer.conv import Conv1DTranspose, Conv2DTranspose, Conv3DTranspose
    for hook in layer._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            raise RuntimeError(f"spectral_norm: the parameter {name!r} has it already")
    if dim is None:
        dim = 1 if isinstance(layer, (Linear, Conv1DTranspose, Conv2DTranspose, Conv3DTranspose)) else 0
    eps = float(eps)
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = layer._parameters[name]
    recording = _core.set_recording(False)
    try:
        sizes = _matrix(weight, dim).shape
        u, v = (_unit(_core.gaussian([n], mean=0.0, std=1.0, dtype=weight.dtype), eps) for n in sizes)
    finally:
        _core.set_recording(recording)
    del layer._parameters[name]
    layer.add_parameter(name + "_orig", weight)
    setattr(layer, name, _core.scale(weight, 1.0))
    layer.register_buffer(name + "_u", u)
    layer.register_buffer(name + "_v", v)
    layer.register_forward_pre_hook(hook)
    return layer
