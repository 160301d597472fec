"""fluid.layers: operators and layers as functions, with the parameters and defaults of 2.0. They build the default program,
or run at once under dygraph.guard()."""
from ...static.nn import *
from .control_flow import *
from .detection import *
from .distributions import *
from .elementwise import *
from .images import *
from .io import *
from .learning_rate_scheduler import *
from .loss import *
from .metric_op import *
from .nn import *
from .rnn import *
from .shape import *
from .tensor import *
from . import control_flow, detection, device, io, learning_rate_scheduler, loss, metric_op, nn, ops, tensor, utils
