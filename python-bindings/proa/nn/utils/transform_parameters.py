"""parameters_to_vector and vector_to_parameters: parameters as one flat vector, and back."""
import math

from ..._asks import asks
from ... import _core


def parameters_to_vector(parameters, name=None):
    """All parameters' values, one after the other, in a new vector."""
    recording = _core.set_recording(False)
    try:
        out = _core.concat([_core.reshape(p, [-1]) for p in parameters])
    finally:
        _core.set_recording(recording)
    out.stop_gradient = False
    return out


@asks("vec:Tensor!InvalidArgument")
def vector_to_parameters(vec, parameters, name=None):
    """Sets the parameters to the values of a vector that parameters_to_vector made."""
    parameters = list(parameters)
    sizes = [math.prod(p.shape) for p in parameters]
    if sum(sizes) != math.prod(vec.shape):
        raise ValueError(f"(InvalidArgument) vector_to_parameters: vec must hold {sum(sizes)} values, got {math.prod(vec.shape)}")
    recording = _core.set_recording(False)
    try:
        for p, part in zip(parameters, _core.split(vec, sections=sizes)):
            p.set_value(_core.reshape(part, p.shape))
    finally:
        _core.set_recording(recording)
