"""paddle.static.amp.bf16: bfloat16 mixed precision for programs; it needs no loss scaling."""
import contextlib

from .lists import AutoMixedPrecisionLists

__all__ = ["AutoMixedPrecisionListsBF16", "bf16_guard", "cast_model_to_bf16", "cast_parameters_to_bf16",
           "convert_float_to_uint16", "decorate_bf16", "rewrite_program_bf16"]


class AutoMixedPrecisionListsBF16(AutoMixedPrecisionLists):
    """Ops that shall run in bfloat16 although they would not (custom_bf16_list), and the other way round."""

    def __init__(self, custom_bf16_list=None, custom_fp32_list=None, custom_fp32_varnames=None):
        super().__init__(custom_bf16_list, custom_fp32_list, custom_fp32_varnames, "bfloat16")


@contextlib.contextmanager
def bf16_guard():
    """Inside, ops are marked: with use_bf16_guard they alone are converted."""
    from . import fp16_guard
    with fp16_guard():
        yield


def rewrite_program_bf16(main_prog, amp_lists=None):
    """Puts casts to bfloat16 into a program that has no gradients yet."""
    from . import recast
    recast(main_prog, "bfloat16", "O1", amp_lists)


def cast_model_to_bf16(program, startup_prog=None, amp_lists=None, use_bf16_guard=True):
    """As rewrite_program_bf16, of all ops but the listed ones (of those in bf16_guard, if use_bf16_guard)."""
    from . import recast
    recast(program, "bfloat16", "O2", amp_lists, use_bf16_guard)
    return set()


def cast_parameters_to_bf16(place, program, scope=None, to_bf16_var_names=None):
    """Nothing to do: parameters are cast where they are used."""


def convert_float_to_uint16(in_list):
    """The bits of bfloat16 numbers, as uint16; cut, not rounded."""
    import numpy as np
    return (np.asarray(in_list, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def decorate_bf16(optimizer, amp_lists=None, use_pure_bf16=False, use_bf16_guard=None):
    """An optimizer whose minimize trains in bfloat16."""
    from . import decorate
    return decorate(optimizer, amp_lists, use_pure_fp16=use_pure_bf16, use_fp16_guard=use_bf16_guard, use_bf16=True)
