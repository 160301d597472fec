"""Inputs of a program."""
from ...static.program import default_main_program
from ...static.variable import data as _data

__all__ = ["data"]


def data(name, shape, append_batch_size=True, dtype="float32", lod_level=0, type=None, stop_gradient=True):
    """A variable that a run is fed, with values of any shape. append_batch_size puts an unknown dim in front, unless the
    shape has one."""
    shape = [-1 if n is None else n for n in shape]
    if any(n < 0 for n in shape):
        append_batch_size = False
    made = _data(name, [-1, *shape] if append_batch_size else shape, dtype, lod_level)
    made.stop_gradient = stop_gradient
    default_main_program()._any_shape.add(name)
    return made
