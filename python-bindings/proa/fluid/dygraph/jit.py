"""fluid.dygraph.jit: functions as programs."""
from ...jit import (ProgramTranslator, TracedLayer, TranslatedLayer, load, save, set_code_level, set_verbosity,  # noqa: F401
                    to_static as declarative)

dygraph_to_static_func = declarative

__all__ = ["TracedLayer", "declarative", "dygraph_to_static_func", "load", "save", "set_code_level", "set_verbosity"]
