"""Quantizers of ImperativePTQ: compute thresholds from calibration samples."""
import abc

from ..program.thresholds import cal_kl_threshold, percentile_threshold
from . import utils

__all__ = ["AbsmaxQuantizer", "BaseHistQuantizer", "BaseQuantizer", "HistQuantizer", "KLQuantizer",
           "PerChannelAbsmaxQuantizer", "SUPPORT_ACT_QUANTIZERS", "SUPPORT_WT_QUANTIZERS"]


class BaseQuantizer(metaclass=abc.ABCMeta):
    """Sees tuples of tensors; cal_thresholds leaves a threshold for each in `thresholds`."""

    def __init__(self, quant_bits=8):
        if not isinstance(quant_bits, int) or not 0 < quant_bits <= 16:
            raise AssertionError(f"quant_bits must be an integer from 1 to 16, got {quant_bits!r}")
        self.quant_bits = quant_bits
        self.abs_max_vals, self.thresholds = [], []

    @abc.abstractmethod
    def sample_data(self, layer, tensors):
        """Takes tensors into account."""

    @abc.abstractmethod
    def cal_thresholds(self):
        """Finds the thresholds."""

    def _raise_to(self, values):
        old = self.abs_max_vals or values
        self.abs_max_vals = [[max(p) for p in zip(o, v)] if isinstance(v, list) else max(o, v) for o, v in zip(old, values)]


class AbsmaxQuantizer(BaseQuantizer):
    """The largest magnitude."""

    def sample_data(self, layer, tensors):
        self._raise_to([float(t.detach().abs().max()) for t in tensors])

    def cal_thresholds(self):
        self.thresholds = self.abs_max_vals


class PerChannelAbsmaxQuantizer(BaseQuantizer):
    """The largest magnitude of each output channel of a weight."""

    def sample_data(self, layer, tensors):
        axis = 1 if isinstance(layer, tuple(utils.spec_channel_axis_layers)) else 0
        self._raise_to([t.detach().abs().max([d for d in range(len(t.shape)) if d != axis]).tolist() for t in tensors])

    def cal_thresholds(self):
        self.thresholds = self.abs_max_vals


class BaseHistQuantizer(BaseQuantizer, metaclass=abc.ABCMeta):
    """A histogram of magnitudes for each tensor. Where a batch exceeds it, its bins are widened."""

    def __init__(self, quant_bits=8, bins=1024, upsample_bins=64):
        super().__init__(quant_bits)
        self.bins, self.upsample_bins, self.hists = bins, upsample_bins, []

    def sample_data(self, layer, tensors):
        if not self.abs_max_vals:
            self.abs_max_vals, self.hists = [0.0] * len(tensors), [None] * len(tensors)
        for i, t in enumerate(tensors):
            self.abs_max_vals[i], self.hists[i] = self._with(t, self.abs_max_vals[i], self.hists[i])

    def _with(self, tensor, most, hist):
        import numpy as np
        x = np.abs(tensor.detach().numpy())
        now = float(x.max()) if x.size else 0.0
        if now == 0.0:
            return most, hist
        if hist is None:
            most, hist = now, np.zeros(self.bins, np.float32)
        elif now > most:
            fine = most / (self.bins * self.upsample_bins)
            each = int(np.ceil(now / (self.bins * fine)))
            most = self.bins * fine * each
            spread = np.zeros(self.bins * each, np.float64)
            spread[:self.bins * self.upsample_bins] = np.repeat(hist / self.upsample_bins, self.upsample_bins)
            hist = spread.reshape(self.bins, each).sum(1).astype(np.float32)
        return most, hist + np.histogram(x, self.bins, (0.0, most))[0].astype(np.float32)

    def cal_thresholds(self):
        self.thresholds = [most if hist is None else self._threshold(most, hist)
                           for most, hist in zip(self.abs_max_vals, self.hists)]

    @abc.abstractmethod
    def _threshold(self, most, hist):
        """The threshold of one histogram."""


class HistQuantizer(BaseHistQuantizer):
    """The magnitude below which a share of all values is."""

    def __init__(self, quant_bits=8, bins=1024, upsample_bins=64, hist_percent=0.99999):
        super().__init__(quant_bits, bins, upsample_bins)
        self.hist_percent = hist_percent

    def _threshold(self, most, hist):
        width = most / len(hist)
        return float(percentile_threshold(hist, width, self.hist_percent)) - width


class KLQuantizer(BaseHistQuantizer):
    """The magnitude at which quantized values diverge least."""

    def _threshold(self, most, hist):
        return float(cal_kl_threshold(hist, most / len(hist), self.quant_bits))


SUPPORT_ACT_QUANTIZERS = [AbsmaxQuantizer, HistQuantizer, KLQuantizer]
SUPPORT_WT_QUANTIZERS = [AbsmaxQuantizer, PerChannelAbsmaxQuantizer]
