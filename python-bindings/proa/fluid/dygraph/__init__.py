"""fluid.dygraph: layers and what else runs at once, with the parameters of 2.0."""
from ...jit import TracedLayer  # noqa: F401
from ...nn import LayerDict, LayerList, ParameterList, Sequential  # noqa: F401
from ...nn import Layer  # noqa: F401
from .amp import AmpScaler, amp_guard  # noqa: F401
from .base import *  # noqa: F401,F403
from .base import in_dynamic_mode, no_grad  # noqa: F401
from .checkpoint import load_dygraph, save_dygraph  # noqa: F401
from .jit import ProgramTranslator, declarative, dygraph_to_static_func  # noqa: F401
from .learning_rate_scheduler import *  # noqa: F401,F403
from .nn import *  # noqa: F401,F403
from .parallel import *  # noqa: F401,F403
from . import base, jit, layers, learning_rate_scheduler, nn, parallel  # noqa: F401
from ...framework.mode import disable_static as enable_dygraph, enable_static as disable_dygraph  # noqa: F401
