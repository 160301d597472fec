"""WAV files of 16-bit samples (PCM), by Python's own wave module."""
import contextlib
import wave

import numpy as np

from ...tensor import to_tensor

_FULL_SCALE = 1 << 15


class AudioInfo:
    """The result of info: sample_rate (samples a second), num_samples (a channel), num_channels, bits_per_sample, encoding."""

    def __init__(self, sample_rate, num_samples, num_channels, bits_per_sample, encoding):
        self.sample_rate, self.num_samples, self.num_channels = sample_rate, num_samples, num_channels
        self.bits_per_sample, self.encoding = bits_per_sample, encoding


@contextlib.contextmanager
def _opened(what, filepath):
    """A file's reader; it closes the file behind it, be it a path or a file object."""
    file = filepath if hasattr(filepath, "read") else open(filepath, "rb")
    with contextlib.closing(file):
        try:
            reader = wave.open(file)
        except (wave.Error, EOFError) as error:
            raise NotImplementedError(f"{what}: only WAV files of 16-bit samples (PCM) are read, this is another: {error}") from None
        with reader:
            yield reader


def info(filepath):
    """An AudioInfo of a WAV file, a path or a file object."""
    with _opened("info", filepath) as file:
        return AudioInfo(file.getframerate(), file.getnframes(), file.getnchannels(), 8 * file.getsampwidth(), "PCM_S")


def load(filepath, frame_offset=0, num_frames=-1, normalize=True, channels_first=True):
    """(samples, sample rate) of a WAV file, a path or a file object; samples are float32, [channels, time], or [time, channels] where
    channels_first is False.

    num_frames: so many of each channel from frame_offset on (-1: all of the file). normalize: from -1 to 1, else as the
    file's integers.
    """
    with _opened("load", filepath) as file:
        if file.getsampwidth() != 2:
            raise NotImplementedError(f"load: only samples of 16 bits are read, this file has {8 * file.getsampwidth()}")
        rate, channels = file.getframerate(), file.getnchannels()
        data = file.readframes(file.getnframes())  # fewer than the header says if the file was cut off
    frames = len(data) // (2 * channels)
    samples = np.frombuffer(data, "<i2", frames * channels).reshape(frames, channels).astype("float32")
    if num_frames != -1:
        samples = samples[frame_offset:frame_offset + num_frames]
    if normalize:
        samples /= _FULL_SCALE
    return to_tensor(samples.T.copy() if channels_first else samples), rate


def save(filepath, src, sample_rate, channels_first=True, encoding=None, bits_per_sample=16):
    """Writes a tensor of samples, [channels, time] or, where channels_first is False, [time, channels], as a WAV file of 16 bits.

    src: float32 from -1 to 1, or int16 as they are. encoding: None or "PCM_16".
    """
    if src.ndim != 2:
        raise AssertionError(f"Expected 2D tensor: save takes [channels, time], got {list(src.shape)}")
    if bits_per_sample not in (None, 16):
        raise ValueError(f"Invalid bits_per_sample, only support 16 bit: save got {bits_per_sample}")
    samples = src.numpy().T if channels_first else src.numpy()
    if samples.dtype.kind == "f":
        samples = np.clip(samples * _FULL_SCALE, -_FULL_SCALE, _FULL_SCALE - 1)
    with wave.open(filepath, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(np.ascontiguousarray(samples.astype("<i2")).tobytes())
