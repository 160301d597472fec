"""fluid.contrib.layers: recurrent layers that are made of smaller operators, layers of ranking and of text matching."""
from . import nn, rnn_impl
from .nn import (fused_elemwise_activation, fused_embedding_seq_pool, match_matrix_tensor, multiclass_nms2, partial_concat,
                 partial_sum, tdm_child, tdm_sampler, tree_conv, var_conv_2d)
from .rnn_impl import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm", "fused_elemwise_activation",
           "fused_embedding_seq_pool", "match_matrix_tensor", "multiclass_nms2", "partial_concat", "partial_sum", "tdm_child", "tdm_sampler", "tree_conv", "var_conv_2d"]
