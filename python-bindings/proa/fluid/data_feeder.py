"""fluid.data_feeder: rows of data as feeds of a program; checks of arguments."""
import numpy

from .. import _core
from ..framework import mode
from ..framework.dtype import dtype_name, to_dtype
from ..static.program import default_main_program
from ..static.variable import Variable
from .lod_tensor import create_lod_tensor

__all__ = ["DataFeeder"]


def convert_dtype(dtype):
    """The name of a dtype."""
    return dtype_name(to_dtype(dtype))


def check_type(input, input_name, expected_type, op_name, extra_message=""):
    """TypeError unless input is one of the types."""
    kinds = expected_type if isinstance(expected_type, tuple) else (expected_type,)
    if Variable in kinds and isinstance(input, _core.Tensor) or isinstance(input, kinds):
        return
    raise TypeError(f"The type of '{input_name}' in {op_name} must be {expected_type}, but received {type(input)}. "
                    f"{extra_message}")


def check_dtype(input_dtype, input_name, expected_dtype, op_name, extra_message=""):
    """TypeError unless the dtype is one of the names."""
    if convert_dtype(input_dtype) not in expected_dtype:
        raise TypeError(f"The data type of '{input_name}' in {op_name} must be {expected_dtype}, but received "
                        f"{convert_dtype(input_dtype)}. {extra_message}")


def check_variable_and_dtype(input, input_name, expected_dtype, op_name, extra_message=""):
    """TypeError unless input is a variable of one of the dtypes."""
    check_type(input, input_name, Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


def check_shape(shape, op_name, expected_shape_type=(list, tuple, Variable), expected_element_type=(int, Variable),
                expected_tensor_dtype=("int32", "int64")):
    """While a program is built: TypeError unless shape is a list of whole numbers, or a variable of such."""
    if mode.in_dynamic_mode():
        return
    check_type(shape, "shape", expected_shape_type, op_name)
    tensors = [("shape", shape)] if isinstance(shape, Variable) else [("element of shape", item) for item in shape]
    for name, item in tensors:
        if expected_element_type is not None and item is not shape:
            check_type(item, name, expected_element_type, op_name)
        if expected_tensor_dtype is not None and isinstance(item, Variable):
            check_dtype(item.dtype, name, expected_tensor_dtype, op_name)


class DataFeeder:
    """Turns a list of rows, each with an item a variable, into what Executor.run is fed."""

    def __init__(self, feed_list, place, program=None):
        block = (program or default_main_program()).global_block()
        self.feed_vars = [block.var(v) if isinstance(v, str) else v for v in feed_list]
        if not all(isinstance(v, _core.Tensor) for v in self.feed_vars):
            raise TypeError("Feed list should contain a list of variable")
        self.place = place

    def feed(self, iterable):
        """{name: value} of a batch of rows."""
        rows = list(iterable)
        for row in rows:
            if len(row) != len(self.feed_vars):
                raise AssertionError(f"the number of slots in a row, {len(row)}, is not that of the variables, "
                                     f"{len(self.feed_vars)}")
        return {var.name: self._column(var, [row[i] for row in rows]) for i, var in enumerate(self.feed_vars)}

    def _column(self, var, items):
        dtype = convert_dtype(var.dtype)
        levels = var.lod_level
        if levels == 0:
            array = numpy.array([numpy.asarray(one, dtype) for one in items])
            shape = list(var.shape)
            if len(shape) != array.ndim or any(a != b for a, b in zip(shape[1:], array.shape[1:]) if a > 0):
                array = array.reshape([-1 if n < 0 else n for n in [-1, *shape[1:]]])
            return array
        lengths = [[] for _ in range(levels)]
        flat = []
        _flatten(items, 0, lengths, flat)
        array = numpy.array([numpy.asarray(one, dtype) for one in flat], dtype)
        inner = [n for n in var.shape[1:] if n > 0]
        return create_lod_tensor(array.reshape([len(flat), *inner]), lengths, self.place)

    def feed_parallel(self, iterable, num_places=None):
        """A feed for each place: here there is one."""
        for one in iterable:
            yield self.feed(one)

    def decorate_reader(self, reader, multi_devices=False, num_places=None, drop_last=True):
        """A reader of batches becomes one of feeds."""
        def feeds():
            for batch in reader():
                yield [self.feed(batch)] if multi_devices else self.feed(batch)
        return feeds


def _flatten(items, level, lengths, flat):
    for one in items:
        lengths[level].append(len(one))
        if level + 1 < len(lengths):
            _flatten(one, level + 1, lengths, flat)
        else:
            flat.extend(one)
