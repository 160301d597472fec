"""fluid.layers.ops: the elementwise functions, under the module in which 2.0 has them."""
from .elementwise import *
from .elementwise import __all__
