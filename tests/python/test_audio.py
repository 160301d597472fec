"""paddle.audio beside what parity cases hold to Paddle: files that are damaged, and data sets in archives that lie there."""
import hashlib
import wave
import zipfile

import numpy as np
import pytest

import proa as paddle
from proa.audio.datasets import ESC50, TESS, dataset


def sound(path, samples=400, width=2):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(np.arange(samples * width, dtype="uint8").tobytes())
    return path


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder of data sets."""
    monkeypatch.setattr(dataset, "DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def packed(folder, home, name):
    """An archive of a folder, where a data set looks for it."""
    with zipfile.ZipFile(home / name, "w") as archive:
        for file in folder.rglob("*.*"):
            archive.write(file, file.relative_to(folder))
    return {"url": f"http://nowhere/{name}", "md5": hashlib.md5((home / name).read_bytes()).hexdigest()}


def test_esc50(home, tmp_path):
    lines = ["filename,fold,target,category,esc10,src_file,take"]
    for i in range(5):
        sound(tmp_path / f"esc/ESC-50-master/audio/{i}.wav")
        lines.append(f"{i}.wav,{i % 5 + 1},{i * 3},x,False,0,A")
    (tmp_path / "esc/ESC-50-master/meta").mkdir()
    (tmp_path / "esc/ESC-50-master/meta/esc50.csv").write_text("\n".join(lines))
    archive = packed(tmp_path / "esc", home, "ESC-50-master.zip")
    train, rest = ESC50("train", 2, archive=archive), ESC50("dev", 2, "mfcc", archive=archive, n_fft=64, n_mels=8, n_mfcc=4)
    assert [train[i][1] for i in range(len(train))] == [0, 6, 9, 12] and train[0][0].shape == [400]
    assert rest[0][1] == 3 and rest[0][0].shape == [4, 26] and rest.sample_rate == 8000
    with pytest.raises(AssertionError, match="split"):
        ESC50(split=6, archive=archive)
    with pytest.raises(RuntimeError, match="feat_type"):
        ESC50(feat_type="none", archive=archive)


def test_tess(home, tmp_path):
    for i, emotion in enumerate(["angry", "sad", "ps"]):
        sound(tmp_path / f"tess/TESS_Toronto_emotional_speech_set/OAF/OAF_{i}_{emotion}.wav")
    archive = packed(tmp_path / "tess", home, "TESS_Toronto_emotional_speech_set.zip")
    assert [label for _, label in TESS("train", 3, 3, archive=archive)] == [0, 6]
    assert [label for _, label in TESS("dev", 3, 3, "spectrogram", archive=archive, n_fft=64)] == [5]
    with pytest.raises(AssertionError, match="n_folds"):
        TESS(n_folds=0, archive=archive)


def test_archives_that_are_not_there(home):
    with pytest.raises(RuntimeError, match="ESC-50-master.zip"):
        ESC50()


def test_files_of_other_kinds(tmp_path):
    with pytest.raises(NotImplementedError, match="this file has 8"):
        paddle.audio.load(str(sound(tmp_path / "bytes.wav", width=1)))
    short = tmp_path / "short.wav"
    for size in range(0, 44, 5):
        short.write_bytes(sound(tmp_path / "a.wav").read_bytes()[:size])
        with pytest.raises(NotImplementedError, match="only WAV files"):
            paddle.audio.load(str(short))
    short.write_bytes((tmp_path / "a.wav").read_bytes()[:44 + 101])
    assert paddle.audio.load(str(short))[0].shape == [1, 50]


def test_loud_samples_are_clipped(tmp_path):
    path = str(tmp_path / "loud.wav")
    paddle.audio.save(path, paddle.to_tensor([[1.5, -1.5, 0.5]]), 8000)
    np.testing.assert_allclose(paddle.audio.load(path)[0].numpy(), [[32767 / 32768, -1.0, 0.5]])
