"""fluid.dygraph.dygraph_to_static: paddle.jit.dy2static and its modules, under the path of 2.0."""
import importlib
import sys

from ....jit import dy2static
from ....jit.dy2static import *
from ....jit.dy2static import (DygraphToStaticAst, NodeVarType, StaticAnalysisVisitor, convert_call, convert_operators,
                               program_translator)
from ....jit.dy2static.program_translator import *

for _name in ("convert_call_func", "convert_operators", "error", "function_spec", "logging_utils", "origin_info",
              "program_translator", "utils"):
    importlib.import_module(f"{dy2static.__name__}.{_name}")
for _full, _module in list(sys.modules.items()):
    _prefix, _, _name = _full.rpartition(".")
    if _prefix == dy2static.__name__ and _name != "runtime":
        sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module
