"""paddle.quantization: simulated int8 quantization, by training (QAT) or from calibration samples (PTQ)."""
from . import observers, quanters
from .base_observer import BaseObserver
from .base_quanter import BaseQuanter
from .config import QuantConfig
from .factory import quanter
from .imperative import (SUPPORT_ACT_QUANTIZERS, SUPPORT_WT_QUANTIZERS, AbsmaxQuantizer, BaseQuantizer, HistQuantizer,
                         ImperativePTQ, ImperativeQuantAware, KLQuantizer, PerChannelAbsmaxQuantizer, PTQConfig, PTQRegistry,
                         default_ptq_config)
from .ptq import PTQ
from .qat import QAT

__all__ = ["QuantConfig", "BaseQuanter", "BaseObserver", "quanter", "QAT", "PTQ"]
