"""fluid.contrib.layers: recurrent layers that are made of smaller operators."""
from . import rnn_impl
from .rnn_impl import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm"]
