"""paddle.audio: windows, mel scales and spectrograms of sound, WAV files, and two data sets."""
from . import backends, datasets, features, functional
from .backends.wave_backend import info, load, save

__all__ = ["functional", "features", "datasets", "backends", "load", "info", "save"]
