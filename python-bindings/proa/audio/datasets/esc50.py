"""ESC-50: 2,000 recordings of five seconds of 50 kinds of environmental sounds."""
import collections
import csv
import os

from .dataset import AudioClassificationDataset, unpacked


class ESC50(AudioClassificationDataset):
    """Environmental sounds with their kind. mode: "train" for all of the five folds but `split`, else that one. archive: {"url",
    "md5"} of another archive. Further arguments as AudioClassificationDataset's."""

    archive = {"url": "https://paddleaudio.bj.bcebos.com/datasets/ESC-50-master.zip", "md5": "7771e4b9d86d0945acce719c7a59305a"}
    label_list = [
        "Dog", "Rooster", "Pig", "Cow", "Frog", "Cat", "Hen", "Insects (flying)", "Sheep", "Crow",
        "Rain", "Sea waves", "Crackling fire", "Crickets", "Chirping birds", "Water drops", "Wind", "Pouring water",
        "Toilet flush", "Thunderstorm",
        "Crying baby", "Sneezing", "Clapping", "Breathing", "Coughing", "Footsteps", "Laughing", "Brushing teeth", "Snoring",
        "Drinking, sipping",
        "Door knock", "Mouse click", "Keyboard typing", "Door, wood creaks", "Can opening", "Washing machine",
        "Vacuum cleaner", "Clock alarm", "Clock tick", "Glass breaking",
        "Helicopter", "Chainsaw", "Siren", "Car horn", "Engine", "Train", "Church bells", "Airplane", "Fireworks", "Hand saw"]
    meta = os.path.join("ESC-50-master", "meta", "esc50.csv")
    meta_info = collections.namedtuple("META_INFO", "filename fold target category esc10 src_file take")
    audio_path = os.path.join("ESC-50-master", "audio")

    def __init__(self, mode="train", split=1, feat_type="raw", archive=None, **kwargs):
        if split not in range(1, 6):
            raise AssertionError(f"The selected split should be integer, and 1 <= split <= 5, but got {split}")
        self.archive = archive or self.archive
        super().__init__(*self._get_data(mode, split), feat_type, **kwargs)

    def _get_data(self, mode, split):
        folder, meta = unpacked(self.archive, self.audio_path, self.meta)
        with open(meta, newline="") as file:
            rows = [self.meta_info(*row) for row in list(csv.reader(file))[1:]]
        rows = [row for row in rows if (mode == "train") != (int(row.fold) == split)]
        return [os.path.join(folder, row.filename) for row in rows], [int(row.target) for row in rows]
