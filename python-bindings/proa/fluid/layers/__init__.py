"""fluid.layers: operators and layers as functions, with the parameters and defaults of 2.0. They build the default program,
or run at once under dygraph.guard()."""
from ...static.nn import *  # noqa: F401,F403
from .control_flow import *  # noqa: F401,F403
from .detection import *  # noqa: F401,F403
from .distributions import *  # noqa: F401,F403
from .elementwise import *  # noqa: F401,F403
from .images import *  # noqa: F401,F403
from .io import *  # noqa: F401,F403
from .loss import *  # noqa: F401,F403
from .metric_op import *  # noqa: F401,F403
from .nn import *  # noqa: F401,F403
from .rnn import *  # noqa: F401,F403
from .shape import *  # noqa: F401,F403
from .tensor import *  # noqa: F401,F403
from . import control_flow, detection, device, io, loss, metric_op, nn, ops, tensor, utils  # noqa: F401
