"""fluid.dygraph: eager execution, with layers and functions that take the arguments of Paddle 2.0."""
from ...jit import TracedLayer
from ...nn import LayerDict, LayerList, ParameterList, Sequential
from ...nn import Layer
from .amp import AmpScaler, amp_guard
from .base import *
from .base import in_dynamic_mode, no_grad
from .checkpoint import load_dygraph, save_dygraph
from .jit import ProgramTranslator, declarative, dygraph_to_static_func
from .learning_rate_scheduler import *
from .nn import *
from .parallel import *
from . import base, jit, layers, learning_rate_scheduler, nn, parallel
from ...framework.mode import disable_static as enable_dygraph, enable_static as disable_dygraph


def __getattr__(name):
    if name in ("amp", "checkpoint", "container", "dygraph_to_static", "io"):
        import importlib
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'paddle.fluid.dygraph' has no attribute {name!r}")
