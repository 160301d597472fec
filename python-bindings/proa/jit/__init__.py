"""paddle.jit: converts functions and layers to programs, saves and loads them."""
from .api import (ProgramTranslator, enable_to_static, ignore_module, not_to_static, set_code_level,
                  set_verbosity, to_static)
from .save import save
from .traced_layer import TracedLayer
from .translated_layer import TranslatedLayer, load

__all__ = ["ProgramTranslator", "TracedLayer", "TranslatedLayer", "enable_to_static", "ignore_module", "load",
           "not_to_static", "save", "set_code_level", "set_verbosity", "to_static"]
