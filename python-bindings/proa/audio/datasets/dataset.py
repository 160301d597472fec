"""Base of data sets of labelled sounds: the feature that an item is made of."""
import os

from ...dataset.common import DATA_HOME
from ...io import Dataset
from ...utils.download import get_path_from_url
from ..backends.wave_backend import load
from ..features import MFCC, LogMelSpectrogram, MelSpectrogram, Spectrogram

FEATURES = {"raw": None, "melspectrogram": MelSpectrogram, "mfcc": MFCC, "logmelspectrogram": LogMelSpectrogram,
            "spectrogram": Spectrogram}


def unpacked(archive, *paths):
    """DATA_HOME's paths, of which the first that is missing is looked for in the archive, a dict of url and md5, that lies there."""
    paths = [os.path.join(DATA_HOME, path) for path in paths]
    if not all(map(os.path.exists, paths)):
        get_path_from_url(archive["url"], DATA_HOME, archive["md5"], decompress=True)
    return paths


class AudioClassificationDataset(Dataset):
    """(feature, label) of each WAV file: the samples [T] for feat_type "raw", else what the layer of that name, made with the
    keyword arguments that are left, makes of them."""

    def __init__(self, files, labels, feat_type="raw", sample_rate=None, **kwargs):
        super().__init__()
        if feat_type not in FEATURES:
            raise RuntimeError(f"Unknown feat_type: {feat_type}, it must be one in {list(FEATURES)}")
        self.files, self.labels, self.feat_type, self.sample_rate, self.feat_config = files, labels, feat_type, sample_rate, kwargs
        self._layers = {}

    def _layer(self, rate):
        """The feature's layer for so many samples a second; all but plain spectrograms depend on it."""
        key = None if self.feat_type == "spectrogram" else rate
        if key not in self._layers:
            given = self.feat_config if key is None else {"sr": rate, **self.feat_config}
            self._layers[key] = FEATURES[self.feat_type](**given)
        return self._layers[key]

    def __getitem__(self, idx):
        samples, self.sample_rate = load(self.files[idx])
        samples = samples.squeeze(0)
        if self.feat_type != "raw":
            samples = self._layer(self.sample_rate)(samples.unsqueeze(0)).squeeze(0)
        return samples, self.labels[idx]

    def __len__(self):
        return len(self.files)
