"""paddle.jit.dy2static.program_translator: functions as programs, under the names that Paddle gives the parts."""
from ..api import ProgramTranslator
from ..concrete import Concrete as ConcreteProgram
from ..static_function import StaticFunction
from .function_spec import FunctionSpec
from .transform import convert_function

__all__ = ["ConcreteProgram", "FunctionSpec", "ProgramTranslator", "StaticFunction", "convert_to_static"]


def convert_to_static(function):
    """The converted twin of a Python function: to be called while a program is built."""
    return convert_function(function)
