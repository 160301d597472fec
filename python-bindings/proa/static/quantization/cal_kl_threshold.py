"""cal_kl_threshold, where Paddle has it."""
from ...quantization.program.thresholds import cal_kl_threshold

__all__ = ["cal_kl_threshold"]
