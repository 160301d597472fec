"""paddle.audio: windows, mel scales, spectrograms and WAV files."""
import os
import tempfile

import numpy as np
import paddle
from paddle.audio import features, functional as A

from parity import case, raised

WAVE = (np.sin(np.arange(2 * 900).reshape(2, 900) * 0.31) * np.linspace(0.2, 0.9, 900)).astype("float32")
F = "paddle.audio.functional."


@case(F + "get_window", tol=1e-6)
def windows():
    names = ["hamming", "hann", "triang", "bohman", "blackman", "cosine", "tukey", "taylor", ("gaussian", 7.0),
             ("exponential", None, 2.0), ("general_gaussian", 1.5, 4), ("tukey", 0.3), ("taylor", 5, 40)]
    return [A.get_window(w, n, fft, dtype=dtype) for w in names for n in (8, 13) for fft, dtype in ((True, "float32"), (False, "float64"))]


@case(F + "get_window")
def windows_refused():
    return [raised(lambda w=w: A.get_window(w, 8), ValueError) for w in ("gaussian", "exponential", "none", 3)]


@case(F + "hz_to_mel", F + "mel_to_hz", tol=1e-5)
def mels():
    hz = paddle.to_tensor([30.0, 440.0, 999.0, 1001.0, 8000.0])
    mel = paddle.to_tensor([0.5, 10.0, 14.9, 15.1, 40.0])
    numbers = [A.hz_to_mel(x, htk) for x in (3.0, 700.0, 4000.0) for htk in (False, True)]
    numbers += [A.mel_to_hz(x, htk) for x in (3.0, 30.0) for htk in (False, True)]
    return [A.hz_to_mel(hz), A.hz_to_mel(hz, True), A.mel_to_hz(mel), A.mel_to_hz(mel, True), paddle.to_tensor(numbers)]


@case(F + "mel_frequencies", F + "fft_frequencies", F + "create_dct", tol=1e-5)
def points():
    return [A.mel_frequencies(12, 20.0, 8000.0), A.mel_frequencies(9, htk=True, dtype="float64"), A.fft_frequencies(16000, 64),
            A.create_dct(7, 12), A.create_dct(5, 9, None, "float64"), raised(lambda: A.create_dct(5, 9, "slaney"), AssertionError)]


@case(F + "compute_fbank_matrix", tol=1e-5)
def banks():
    return [A.compute_fbank_matrix(16000, 128, 10, dtype="float64"),
            A.compute_fbank_matrix(8000, 64, 6, 100.0, 3000.0, True, dtype="float64"),
            A.compute_fbank_matrix(8000, 64, 6, norm=2.0, dtype="float64")]


@case(F + "power_to_db", tol=1e-5)
def decibels():
    x = paddle.to_tensor(np.abs(WAVE[:, :20]) ** 2 + 1e-3)
    x.stop_gradient = False
    y = A.power_to_db(x, 0.5)
    y.sum().backward()
    return [y, x.grad, A.power_to_db(x, 2.0, 0.1, None), A.power_to_db(x, top_db=3.0),
            raised(lambda: A.power_to_db(x, amin=0.0), Exception), raised(lambda: A.power_to_db(x, top_db=-1.0), Exception)]


@case("paddle.audio.features.Spectrogram", "paddle.audio.features.MelSpectrogram", "paddle.audio.features.LogMelSpectrogram",
      "paddle.audio.features.MFCC", tol=2e-4)
def spectrograms():
    x = paddle.to_tensor(WAVE)
    made = [features.Spectrogram(64, 20), features.Spectrogram(64, None, 48, "hamming", 2.0, False),
            features.MelSpectrogram(8000, 128, 40, n_mels=12), features.MFCC(8000, 9, 128, n_mels=12),
            features.LogMelSpectrogram(8000, 128, 40, n_mels=12, f_max=3000.0, htk=True, norm=1.0, top_db=60.0)]
    return [[layer(x) for layer in made], [sorted(layer.state_dict()) for layer in made],
            raised(lambda: features.MFCC(n_mfcc=41, n_mels=40), AssertionError),
            raised(lambda: features.Spectrogram(power=0.0), AssertionError)]


@case("paddle.audio.features.MelSpectrogram", tol=2e-4)
def spectrogram_gradient():
    x = paddle.to_tensor(WAVE, stop_gradient=False)
    features.MelSpectrogram(8000, 128, 40, n_mels=12)(x).sum().backward()
    return x.grad


@case("paddle.audio.load", "paddle.audio.save", "paddle.audio.info", "paddle.audio.backends.get_current_backend",
      "paddle.audio.backends.list_available_backends", "paddle.audio.backends.set_backend")
def files():
    path = os.path.join(tempfile.mkdtemp(), "a.wav")
    x = paddle.to_tensor(WAVE)
    paddle.audio.save(path, x, 8000)
    about = paddle.audio.info(path)
    back, rate = paddle.audio.load(path)
    with open(path, "rb") as file:
        whole = file.read()
        file.seek(0)
        again, _ = paddle.audio.load(file, 10, 40, normalize=False, channels_first=False)
    paddle.audio.save(path, (x.t() * 100).astype("int16"), 8000, channels_first=False)
    with open(path + ".txt", "w") as file:
        file.write("no sound")
    return [np.frombuffer(whole, "uint8"), back, rate, again, paddle.audio.load(path)[0], paddle.audio.backends.get_current_backend(),
            [getattr(about, n) for n in ("sample_rate", "num_samples", "num_channels", "bits_per_sample", "encoding")],
            "wave_backend" in paddle.audio.backends.list_available_backends(),
            raised(lambda: paddle.audio.backends.set_backend("none"), NotImplementedError),
            raised(lambda: paddle.audio.load(path + ".txt"), NotImplementedError),
            raised(lambda: paddle.audio.save(path, x[0], 8000), AssertionError),
            raised(lambda: paddle.audio.save(path, x, 8000, bits_per_sample=24), ValueError)]
