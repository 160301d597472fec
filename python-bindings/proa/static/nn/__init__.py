"""paddle.static.nn: layer functions that create their parameters, control flow, and sequence operators."""
from ..._asks import named as _named
from ..._elsewhere import elsewhere as _elsewhere
from ..host import py_func
from ..variable import create_parameter
from .common import (batch_norm, bilinear_tensor_product, conv2d, conv2d_transpose, conv3d, conv3d_transpose,
                     embedding, fc, group_norm, instance_norm, layer_norm, prelu, row_conv, spectral_norm)
from .control_flow import case, cond, switch_case, while_loop
from .loss import crf_decoding, nce
from .ranking import data_norm, sparse_embedding
from .sequence_lod import (sequence_concat, sequence_conv, sequence_enumerate, sequence_expand, sequence_expand_as,
                           sequence_first_step, sequence_last_step, sequence_pad, sequence_pool, sequence_reshape,
                           sequence_reverse, sequence_scatter, sequence_slice, sequence_softmax, sequence_unpad)
from .static_pylayer import static_pylayer
from .vision import deform_conv2d, multi_box_head

__all__ = ["batch_norm", "bilinear_tensor_product", "case", "cond", "conv2d", "conv2d_transpose", "conv3d",
           "conv3d_transpose", "create_parameter", "crf_decoding", "data_norm", "deform_conv2d", "embedding", "fc", "group_norm", "instance_norm", "layer_norm",
           "multi_box_head", "nce", "prelu", "py_func", "row_conv", "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand",
           "sequence_expand_as", "sequence_first_step", "sequence_last_step", "sequence_pad", "sequence_pool",
           "sequence_reshape", "sequence_reverse", "sequence_scatter", "sequence_slice", "sequence_softmax",
           "sequence_unpad", "sparse_embedding", "spectral_norm", "static_pylayer", "switch_case", "while_loop"]

__getattr__ = _elsewhere(__name__)
_named(globals(), but=("case", "cond", "create_parameter", "py_func", "static_pylayer", "switch_case", "while_loop"))
