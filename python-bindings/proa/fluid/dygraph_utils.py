"""fluid.dygraph_utils: helpers with which layers of 2.0 add bias and activation."""
from .layer_helper import one_op

__all__ = []


def _append_activation_in_dygraph(input, act=None, use_cudnn=False, use_mkldnn=False):
    """The activation of that name, of input; input without one."""
    return input if not act else one_op(act, {"X": input}, {}, "Out")


def _append_bias_in_dygraph(input, bias=None, axis=1, use_mkldnn=False):
    """input + bias, whose first dim is input's dim `axis`."""
    return input if bias is None else one_op("elementwise_add", {"X": input, "Y": bias}, {"axis": axis}, "Out")
