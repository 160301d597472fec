"""Branches, loops and arrays."""
from ...static.host import Print
from ...static.nn import case, cond, switch_case, while_loop
from ...tensor.array import array_length, array_read, array_write, create_array
from ..layer_helper import LayerHelper

__all__ = ["Assert", "Print", "array_length", "array_read", "array_write", "case", "cond", "create_array", "is_empty",
           "switch_case", "while_loop"]


def is_empty(x, name=None):
    """Whether x has no element."""
    from ... import is_empty as empty
    return empty(x)


def Assert(cond, data=None, summarize=20, name=None):
    """Ends the run with an error unless cond is true."""
    helper = LayerHelper("assert", name=name)
    helper.append_op("assert", {"Cond": [cond], "Data": list(data or [])}, {}, {"summarize": summarize})
