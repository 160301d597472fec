"""fluid.dygraph.jit: conversion of functions and layers to static programs, saving and loading."""
import functools
import warnings

from ... import _core
from ...framework import mode
from ...jit import (ProgramTranslator, TracedLayer, TranslatedLayer, load, save, set_code_level, set_verbosity,
                    to_static as declarative)



def dygraph_to_static_func(function):
    """The function, converted: called where a program is built, it adds its operators there."""
    @functools.wraps(function)
    def build(*args, **kwargs):
        if mode.in_dynamic_mode() or not ProgramTranslator().enable_to_static:
            warnings.warn("The decorator 'dygraph_to_static_func' doesn't work in dygraph mode or set ProgramTranslator.enable to "
                          "False. We will just return dygraph output.")
            return function(*args, **kwargs)
        return ProgramTranslator().get_func(function)(*args, **kwargs)
    return build


def extract_vars(inputs, err_tag="inputs"):
    """The tensors in nested lists and tuples, in order."""
    if isinstance(inputs, _core.Tensor):
        return [inputs]
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"The type of 'each element of {err_tag}' in fluid.dygraph.jit.TracedLayer.trace must be fluid.Variable, but "
                        f"received {type(inputs)}.")
    return [var for one in inputs for var in extract_vars(one, err_tag)]


__all__ = ["TracedLayer", "declarative", "dygraph_to_static_func", "load", "save", "set_code_level", "set_verbosity"]
