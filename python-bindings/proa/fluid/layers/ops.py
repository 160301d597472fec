"""fluid.layers.ops: the elementwise functions, under the module in which 2.0 has them."""
from .elementwise import *  # noqa: F401,F403
from .elementwise import __all__  # noqa: F401
