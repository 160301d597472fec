"""fluid.layers.io: data, the input variable of a program, and py_reader, the feeding queue of Paddle 1.x."""
from ...framework import unique_name
from ...static.program import default_main_program
from ...static.variable import data as _data

__all__ = ["create_py_reader_by_data", "data", "double_buffer", "py_reader", "read_file"]


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


def create_py_reader_by_data(capacity, feed_list, name=None, use_double_buffer=True):
    """A reader whose batches runs take for these variables, between its start() and reset()."""
    from ..reader import PyReader
    reader = PyReader(feed_list, capacity, use_double_buffer, iterable=False)
    reader.name = name or unique_name.generate("create_py_reader")
    reader.decorate_paddle_reader = reader.set_sample_list_generator
    reader.decorate_tensor_provider = reader.set_batch_generator
    return reader


def py_reader(capacity, shapes, dtypes, lod_levels=None, name=None, use_double_buffer=True):
    """As create_py_reader_by_data, with variables of its own, which read_file gives."""
    name = name or unique_name.generate("create_py_reader")
    levels = lod_levels or [0] * len(shapes)
    made = [_data(f"{name}_{i}", [-1 if n is None else n for n in shape], dtype, level)
            for i, (shape, dtype, level) in enumerate(zip(shapes, dtypes, levels))]
    return create_py_reader_by_data(capacity, made, name, use_double_buffer)


def double_buffer(reader, place=None, name=None):
    """The reader: batches are in the memory that runs read."""
    return reader


def read_file(reader):
    """The variables that a reader feeds: one, or a list."""
    found = list(reader._feeds)
    return found[0] if len(found) == 1 else found
