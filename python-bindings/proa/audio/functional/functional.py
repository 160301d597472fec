"""Mel scales (Slaney's, as in his Auditory Toolbox, and HTK's), filter banks, decibels and the cosine transform."""
import math

import numpy as np

from ... import _core
from ...tensor import log10, maximum, to_tensor, where

# Slaney's scale is linear to 1 kHz, and logarithmic above: 27 steps are a factor of 6.4.
_LINEAR = 200.0 / 3
_CORNER_HZ, _CORNER_MEL = 1000.0, 15.0
_LOG_STEP = math.log(6.4) / 27.0


def _mel_of(freq, htk):
    """Mels of an array of frequencies."""
    if htk:
        return 2595.0 * np.log10(1.0 + freq / 700.0)
    above = _CORNER_MEL + np.log(np.maximum(freq, _CORNER_HZ) / _CORNER_HZ) / _LOG_STEP
    return np.where(freq >= _CORNER_HZ, above, freq / _LINEAR)


def _hz_of(mel, htk):
    """Frequencies of an array of mels."""
    if htk:
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    above = _CORNER_HZ * np.exp(_LOG_STEP * (np.maximum(mel, _CORNER_MEL) - _CORNER_MEL))
    return np.where(mel >= _CORNER_MEL, above, mel * _LINEAR)


def hz_to_mel(freq, htk=False):
    """Mels of frequencies in Hz, a tensor of any shape or a number; `htk`: by HTK's formula 2595 log10(1 + f/700)."""
    if not isinstance(freq, _core.Tensor):
        return float(_mel_of(np.float64(freq), htk))
    if htk:
        return 2595.0 * log10(1.0 + freq / 700.0)
    above = _CORNER_MEL + (freq.clip(min=_CORNER_HZ) / _CORNER_HZ).log() / _LOG_STEP
    return where(freq >= _CORNER_HZ, above, freq / _LINEAR)


def mel_to_hz(mel, htk=False):
    """Frequencies in Hz of mels, a tensor of any shape or a number: hz_to_mel's inverse."""
    if not isinstance(mel, _core.Tensor):
        return float(_hz_of(np.float64(mel), htk))
    if htk:
        return 700.0 * ((mel * (math.log(10.0) / 2595.0)).exp() - 1.0)
    above = _CORNER_HZ * (_LOG_STEP * (mel.clip(min=_CORNER_MEL) - _CORNER_MEL)).exp()
    return where(mel >= _CORNER_MEL, above, mel * _LINEAR)


def _mel_points(count, f_min, f_max, htk):
    """`count` frequencies from f_min to f_max whose mels are equally far apart."""
    return _hz_of(np.linspace(*_mel_of(np.array([f_min, f_max], float), htk), count), htk)


def mel_frequencies(n_mels=64, f_min=0.0, f_max=11025.0, htk=False, dtype="float32"):
    """n_mels frequencies from f_min to f_max in Hz, equally far apart in mels: a tensor [n_mels]."""
    return to_tensor(_mel_points(n_mels, f_min, f_max, htk), dtype)


def _fft_points(sr, n_fft):
    return np.linspace(0, sr / 2, 1 + n_fft // 2)


def fft_frequencies(sr, n_fft, dtype="float32"):
    """Frequencies in Hz of a real Fourier transform of n_fft samples, sr a second: a tensor [n_fft // 2 + 1]."""
    return to_tensor(_fft_points(sr, n_fft), dtype)


def compute_fbank_matrix(sr, n_fft, n_mels=64, f_min=0.0, f_max=None, htk=False, norm="slaney", dtype="float32"):
    """Triangular filters over the bins of a Fourier transform, each from one mel frequency over the next to the one behind
    it: a tensor [n_mels, n_fft // 2 + 1].

    f_max: the highest frequency in Hz (None: sr / 2). norm: "slaney" makes the filters' areas equal, a number p their
    p-norms 1, anything else leaves their peaks at 1.
    """
    edges = _mel_points(n_mels + 2, f_min, sr / 2 if f_max is None else f_max, htk)
    width = np.diff(edges)[:, None]
    distance = edges[:, None] - _fft_points(sr, n_fft)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.maximum(0, np.minimum(-distance[:-2] / width[:-1], distance[2:] / width[1:]))
    if norm == "slaney":
        weights *= 2.0 / (edges[2:] - edges[:-2])[:, None]
    elif isinstance(norm, (int, float)):
        weights /= np.maximum(np.linalg.norm(weights, norm, 1, keepdims=True), 1e-12)
    return to_tensor(weights, dtype)


def power_to_db(spect, ref_value=1.0, amin=1e-10, top_db=80.0):
    """10 log10(spect / ref_value) of a power spectrogram, with powers below `amin` as `amin` and values over `top_db` below
    the largest raised to that (None: none are)."""
    if amin <= 0 or ref_value <= 0:
        raise ValueError(f"power_to_db: amin and ref_value must be strictly positive, got {amin} and {ref_value}")
    if top_db is not None and top_db < 0:
        raise ValueError(f"power_to_db: top_db must be non-negative, got {top_db}")
    db = 10.0 * log10(spect.clip(min=amin)) - 10.0 * math.log10(max(ref_value, amin))
    return db if top_db is None else maximum(db, db.max() - top_db)


def create_dct(n_mfcc, n_mels, norm="ortho", dtype="float32"):
    """The matrix of the discrete cosine transform (type 2), a tensor [n_mels, n_mfcc]; norm: "ortho", or None for twice the
    plain cosines."""
    if norm not in (None, "ortho"):
        raise AssertionError(f"create_dct: norm must be 'ortho' or None, got {norm!r}")
    dct = np.cos(math.pi / n_mels * (np.arange(n_mels) + 0.5)[:, None] * np.arange(n_mfcc))
    if norm is None:
        dct *= 2.0
    else:
        dct *= math.sqrt(2.0 / n_mels)
        dct[:, 0] /= math.sqrt(2.0)
    return to_tensor(dct, dtype)
