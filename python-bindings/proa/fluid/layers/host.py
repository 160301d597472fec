"""Operators on tensor arrays and rank tables, of which Paddle 1.x builds dynamic recurrent networks. Programs with them
are interpreted operator by operator."""
from ...static.late import core_name, late_of
from ...static.program import default_main_program
from ...static.variable import Variable
from ...tensor import array as _arrays
from ...tensor.array import TensorArray
from ..data_feeder import check_type, check_variable_and_dtype
from ..layer_helper import LayerHelper

__all__ = ["array_length", "array_read", "array_to_lod_tensor", "lod_rank_table", "lod_tensor_to_array", "max_sequence_len", "merge_lod_tensor",
           "reorder_lod_tensor_by_rank", "select_input", "select_output", "shrink_memory", "split_lod_tensor"]


def _step(op_type, inputs, attrs, *outputs, like, dtype=None, shape=None, levels=None):
    """Results of one operator of the host: variables like another."""
    program = default_main_program()
    late = late_of(program)
    like = like._value if isinstance(like, TensorArray) else like
    made = [late.variable(like, shape, dtype, op_type, levels) for _ in outputs]
    given = {k: [core_name(program._core, one._value if isinstance(one, TensorArray) else one)
                 for one in (v if isinstance(v, list) else [v])] for k, v in inputs.items()}
    late.append(op_type, given, {slot: [one.name] for slot, one in zip(outputs, made)}, attrs)
    return made[0] if len(made) == 1 else tuple(made)


def _is_late(array):
    """Whether an array is a variable that lod_tensor_to_array made."""
    return isinstance(array, Variable) and array.is_symbolic


def array_read(array, i):
    """The tensor at place i of array."""
    if not _is_late(array):
        return _arrays.array_read(array, i)
    return _step("read_from_array", {"X": array, "I": i}, {}, "Out", like=array)


def array_length(array):
    """The number of array's items."""
    if not _is_late(array):
        return _arrays.array_length(array)
    return _step("lod_array_length", {"X": array}, {}, "Out", like=array, dtype=_int64(), shape=[1], levels=0)


def _table(table, who):
    check_type(table, "table", (Variable, list), who)
    for one in table if isinstance(table, list) else ():
        check_type(one, "table", Variable, who)


def lod_rank_table(x, level=0):
    """The sequences of a level of x by length, the longest first."""
    check_type(x, "x", (Variable, list), "lod_rank_table")
    for one in x if isinstance(x, list) else ():
        check_type(one, "x", Variable, "lod_rank_table")
    return _step("lod_rank_table", {"X": x}, {"level": level}, "Out", like=x[0] if isinstance(x, list) else x, shape=[1],
                 levels=0)


def max_sequence_len(rank_table):
    """The length of the longest sequence of a rank table."""
    return _step("max_sequence_len", {"RankTable": rank_table}, {}, "Out", like=rank_table, dtype=_int64(), shape=[1], levels=0)


def _int64():
    from ... import int64
    return int64


def lod_tensor_to_array(x, table):
    """An array of the steps of x's sequences, in a rank table's order."""
    check_type(x, "x", (Variable, list), "lod_tensor_to_array")
    for one in x if isinstance(x, list) else ():
        check_type(one, "x", Variable, "lod_tensor_to_array")
    _table(table, "lod_tensor_to_array")
    return _step("lod_tensor_to_array", {"X": x, "RankTable": table}, {}, "Out", like=x,
                 levels=max(x.lod_level - 1, 0) if isinstance(x, Variable) else 0)


def array_to_lod_tensor(x, table):
    """The sequences of which lod_tensor_to_array made an array."""
    check_type(x, "x", (Variable, list, TensorArray), "array_to_lod_tensor")
    for one in x if isinstance(x, list) else ():
        check_type(one, "x", Variable, "array_to_lod_tensor")
    _table(table, "array_to_lod_tensor")
    return _step("array_to_lod_tensor", {"X": x, "RankTable": table}, {}, "Out", like=x, levels=1,
                 shape=x.shape if isinstance(x, TensorArray) else None)


def shrink_memory(x, i, table):
    """The rows of x whose sequences have a step i."""
    check_type(x, "x", Variable, "shrink_memory")
    check_type(i, "i", Variable, "shrink_memory")
    check_type(table, "table", Variable, "shrink_memory")
    return _step("shrink_rnn_memory", {"X": x, "I": i, "RankTable": table}, {}, "Out", like=x)


def reorder_lod_tensor_by_rank(x, rank_table):
    """x's sequences in a rank table's order."""
    check_type(x, "x", Variable, "reorder_lod_tensor_by_rank")
    check_type(rank_table, "rank_table", Variable, "reorder_lod_tensor_by_rank")
    return _step("reorder_lod_tensor_by_rank", {"X": x, "RankTable": rank_table}, {}, "Out", like=x)


def split_lod_tensor(input, mask, level=0):
    """(where mask holds, where it does not): sequences of a level of input, or rows."""
    check_type(input, "input", (Variable, list, tuple, type(None)), "fluid.layers.split_lod_tensor")
    check_type(mask, "mask", (Variable, list), "fluid.layers.split_lod_tensor")
    shape = [-1, *input.declared_shape[1:]]
    return _step("split_lod_tensor", {"X": input, "Mask": mask}, {"level": level}, "OutTrue", "OutFalse", like=input,
                 shape=shape)


def merge_lod_tensor(in_true, in_false, x, mask, level=0):
    """Both parts that split_lod_tensor made, in the mask's order."""
    for what, one in (("x", x), ("mask", mask), ("in_true", in_true), ("in_false", in_false)):
        check_type(one, what, (Variable, list, tuple, type(None)), "fluid.layers.merge_lod_tensor")
    return _step("merge_lod_tensor", {"X": x, "Mask": mask, "InTrue": in_true, "InFalse": in_false}, {"level": level}, "Out",
                 like=in_true)


def select_output(input, outputs, mask):
    """Gives input to that one of outputs whose number mask is."""
    check_type(input, "input", Variable, "select_output")
    check_variable_and_dtype(mask, "mask", ["int32"], "select_output")
    check_type(outputs, "outputs", (list, tuple), "select_output")
    LayerHelper("select_output").append_op("select_output", {"X": [input], "Mask": [mask]}, {"Out": list(outputs)})
    return outputs


def select_input(inputs, mask):
    """That one of inputs whose number mask is."""
    check_type(inputs, "inputs", (list, tuple), "select_input")
    check_variable_and_dtype(mask, "mask", ["int32"], "select_input")
    return _step("select_input", {"X": list(inputs), "Mask": mask}, {}, "Out", like=inputs[0])
