"""Spectrograms as layers: waveforms [N, T] in, features [N, rows, frames] out. Frames are n_fft samples long and begin every
hop_length samples (None: a quarter of n_fft); `window` of win_length samples (None: n_fft) weighs them, as get_window names it;
`center` pads both ends by pad_mode, so that the middle of frame t is sample t · hop_length."""
from ... import nn
from ...signal import stft
from ...tensor import abs, matmul, pow
from ..functional import compute_fbank_matrix, create_dct, get_window, power_to_db


class Spectrogram(nn.Layer):
    """Magnitudes of the short-time Fourier transform to a power: [N, n_fft // 2 + 1, frames]."""

    def __init__(self, n_fft=512, hop_length=512, win_length=None, window="hann", power=1.0, center=True, pad_mode="reflect",
                 dtype="float32"):
        super().__init__()
        if power <= 0:
            raise AssertionError(f"Power of spectrogram must be > 0, got {power}")
        self.power = power
        self._framing = {"n_fft": n_fft, "hop_length": hop_length, "win_length": n_fft if win_length is None else win_length,
                         "center": center, "pad_mode": pad_mode}
        self.register_buffer("fft_window", get_window(window, self._framing["win_length"], True, dtype))

    def forward(self, x):
        return pow(abs(stft(x, window=self.fft_window, **self._framing)), self.power)


class MelSpectrogram(nn.Layer):
    """A spectrogram in n_mels triangular filters from f_min to f_max Hz (None: sr // 2), as compute_fbank_matrix makes them for sr
    samples a second: [N, n_mels, frames]."""

    def __init__(self, sr=22050, n_fft=2048, hop_length=512, win_length=None, window="hann", power=2.0, center=True,
                 pad_mode="reflect", n_mels=64, f_min=50.0, f_max=None, htk=False, norm="slaney", dtype="float32"):
        super().__init__()
        self._spectrogram = Spectrogram(n_fft, hop_length, win_length, window, power, center, pad_mode, dtype)
        self.n_mels, self.f_min, self.f_max, self.htk, self.norm = n_mels, f_min, f_max, htk, norm
        self.register_buffer("fbank_matrix", compute_fbank_matrix(sr, n_fft, n_mels, f_min, sr // 2 if f_max is None else f_max,
                                                                  htk, norm, dtype))

    def forward(self, x):
        return matmul(self.fbank_matrix, self._spectrogram(x))


class LogMelSpectrogram(nn.Layer):
    """A mel spectrogram in decibels, as power_to_db makes them with ref_value, amin and top_db."""

    def __init__(self, sr=22050, n_fft=512, hop_length=None, win_length=None, window="hann", power=2.0, center=True,
                 pad_mode="reflect", n_mels=64, f_min=50.0, f_max=None, htk=False, norm="slaney", ref_value=1.0, amin=1e-10,
                 top_db=None, dtype="float32"):
        super().__init__()
        self._melspectrogram = MelSpectrogram(sr, n_fft, hop_length, win_length, window, power, center, pad_mode, n_mels, f_min,
                                              f_max, htk, norm, dtype)
        self.ref_value, self.amin, self.top_db = ref_value, amin, top_db

    def forward(self, x):
        return power_to_db(self._melspectrogram(x), self.ref_value, self.amin, self.top_db)


class MFCC(nn.Layer):
    """n_mfcc cepstral coefficients: the cosine transform of a mel spectrogram in decibels: [N, n_mfcc, frames]."""

    def __init__(self, sr=22050, n_mfcc=40, n_fft=512, hop_length=None, win_length=None, window="hann", power=2.0, center=True,
                 pad_mode="reflect", n_mels=64, f_min=50.0, f_max=None, htk=False, norm="slaney", ref_value=1.0, amin=1e-10,
                 top_db=None, dtype="float32"):
        super().__init__()
        if n_mfcc > n_mels:
            raise AssertionError(f"n_mfcc cannot be larger than n_mels: {n_mfcc} vs {n_mels}")
        self._log_melspectrogram = LogMelSpectrogram(sr, n_fft, hop_length, win_length, window, power, center, pad_mode, n_mels,
                                                     f_min, f_max, htk, norm, ref_value, amin, top_db, dtype)
        self.register_buffer("dct_matrix", create_dct(n_mfcc, n_mels, dtype=dtype))

    def forward(self, x):
        return matmul(self.dct_matrix, self._log_melspectrogram(x), transpose_x=True)
