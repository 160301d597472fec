"""dy2static: turns Python functions into functions that build programs. Some modules do that work; the others carry only the
names under which Paddle's scripts import parts of it (internals.py: names of parts that Proa lacks, errors when used)."""
from . import internals
from .convert_call_func import convert_call
from .convert_operators import *
from .errors import ConversionError, Dygraph2StaticException
from .logging_utils import TranslatorLogger, set_code_level, set_verbosity
from .utils import ast_to_source_code

internals.install(__name__, globals())
_LATER = {"program_translator", "function_spec", "ConcreteProgram", "FunctionSpec", "ProgramTranslator", "StaticFunction", "convert_to_static"}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    module = importlib.import_module(".program_translator", __name__)
    return globals().get(name) or getattr(module, name)
