"""TESS, the Toronto emotional speech set: 2,800 recordings of words in seven emotions."""
import collections
import os

from .dataset import AudioClassificationDataset, unpacked


class TESS(AudioClassificationDataset):
    """Words with the emotion in which they are spoken. mode: "train" for all folds but `split` of n_folds, else that one.
    archive: {"url", "md5"} of another archive. Further arguments as AudioClassificationDataset's."""

    archive = {"url": "https://bj.bcebos.com/paddleaudio/datasets/TESS_Toronto_emotional_speech_set.zip",
               "md5": "1465311b24d1de704c4c63e4ccc470c7"}
    label_list = ["angry", "disgust", "fear", "happy", "neutral", "ps", "sad"]  # ps: pleasant surprise
    meta_info = collections.namedtuple("META_INFO", "speaker word emotion")
    audio_path = "TESS_Toronto_emotional_speech_set"

    def __init__(self, mode="train", n_folds=5, split=1, feat_type="raw", archive=None, **kwargs):
        if not isinstance(n_folds, int) or n_folds < 1:
            raise AssertionError(f"the n_folds should be integer and n_folds >= 1, but got {n_folds}")
        if split not in range(1, n_folds + 1):
            raise AssertionError(f"The selected split should be integer and should be 1 <= split <= {n_folds}, but got {split}")
        self.archive = archive or self.archive
        super().__init__(*self._get_data(mode, n_folds, split), feat_type, **kwargs)

    def _get_data(self, mode, n_folds, split):
        folder, = unpacked(self.archive, self.audio_path)
        found = sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.endswith(".wav"))
        files = [file for i, file in enumerate(found) if (mode == "train") != (i % n_folds + 1 == split)]
        return files, [self.label_list.index(self._meta(file).emotion) for file in files]

    def _meta(self, file):
        """A recording's entries, which its name holds."""
        return self.meta_info(*os.path.basename(file)[:-len(".wav")].split("_"))
