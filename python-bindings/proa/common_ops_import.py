"""paddle.common_ops_import: names that Paddle's own op functions import (LayerHelper, checks, fluid's modules), for
scripts that import them from here."""
from . import fluid  # noqa: F401
from .fluid import core  # noqa: F401
from .fluid.core import VarDesc  # noqa: F401
from .fluid.data_feeder import check_dtype, check_type, check_variable_and_dtype, convert_dtype  # noqa: F401
from .fluid.framework import (OpProtoHolder, Variable, convert_np_dtype_to_dtype_, default_main_program,  # noqa: F401
                              device_guard, in_dygraph_mode)
from .fluid.layer_helper import LayerHelper  # noqa: F401
from .framework.param_attr import ParamAttr  # noqa: F401
