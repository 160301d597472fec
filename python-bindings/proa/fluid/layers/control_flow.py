"""Functions of fluid.layers for branches, loops and tensor arrays."""
from ...static.host import Print
from ...static.nn import case, cond, switch_case, while_loop
from ...tensor.array import array_write, create_array, tensor_array_to_tensor
from ..layer_helper import LayerHelper
from .blocks import ConditionalBlock, DynamicRNN, IfElse, StaticRNN, Switch, While
from .elementwise import equal, greater_equal, greater_than, increment, less_equal, less_than, not_equal
from .host import (array_length, array_read, array_to_lod_tensor, lod_rank_table, lod_tensor_to_array, max_sequence_len, merge_lod_tensor,
                   reorder_lod_tensor_by_rank, select_input, select_output, shrink_memory, split_lod_tensor)

__all__ = ["Assert", "DynamicRNN", "IfElse", "Print", "StaticRNN", "Switch", "While", "array_length", "array_read",
           "array_write", "case", "cond", "create_array", "is_empty", "reorder_lod_tensor_by_rank", "switch_case",
           "while_loop"]


def is_empty(x, name=None):
    """Whether x has no element."""
    from ... import is_empty as empty
    return empty(x)


def Assert(cond, data=None, summarize=20, name=None):
    """Ends the run with an error unless cond is true."""
    helper = LayerHelper("assert", name=name)
    helper.append_op("assert", {"Cond": [cond], "Data": list(data or [])}, {}, {"summarize": summarize})
