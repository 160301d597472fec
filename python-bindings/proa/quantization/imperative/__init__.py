"""Quantization of layers in place: ImperativeQuantAware and ImperativePTQ."""
from .ptq import ImperativePTQ
from .ptq_config import PTQConfig, default_ptq_config
from .ptq_quantizer import (SUPPORT_ACT_QUANTIZERS, SUPPORT_WT_QUANTIZERS, AbsmaxQuantizer, BaseQuantizer, HistQuantizer,
                            KLQuantizer, PerChannelAbsmaxQuantizer)
from .ptq_registry import PTQRegistry
from .qat import ImperativeQuantAware

__all__ = ["AbsmaxQuantizer", "BaseQuantizer", "HistQuantizer", "ImperativePTQ", "ImperativeQuantAware", "KLQuantizer",
           "PTQConfig", "PTQRegistry", "PerChannelAbsmaxQuantizer", "SUPPORT_ACT_QUANTIZERS", "SUPPORT_WT_QUANTIZERS",
           "default_ptq_config"]
