"""Every way to save, killed, with system calls that fail, and by several processes at once: tests/robustness/kill/writers.py does so
for long; here each is tried a few times. What a file's replacement keeps, and paths that are no UTF-8."""
import importlib.util
import os
import pathlib
import random
import stat
import threading

import numpy as np
import proa as paddle
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
spec = importlib.util.spec_from_file_location("kill_writers", ROOT / "tests/robustness/kill/writers.py")
writers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(writers)


@pytest.mark.parametrize("name", ["paddle.save", "jit.save", "static.save_vars"])
def test_a_killed_save_leaves_a_whole_file_and_nothing_for_good(name, tmp_path):
    writers.kill_loop(name, tmp_path, 3, random.Random(1))


@pytest.mark.parametrize("name", ["paddle.save", "static.save"])
def test_a_failing_system_call_is_an_error_and_harmless(name, tmp_path):
    assert writers.fault_loop(name, tmp_path, 1) >= 5


def test_several_processes_leave_one_whole_file(tmp_path):
    writers.race("paddle.save", tmp_path, 2, 15)


def test_several_threads_leave_one_whole_file(tmp_path):
    path, failed = tmp_path / "t.pdparams", []

    def run(v):
        try:
            for _ in range(15):
                paddle.save({f"w{i}": paddle.full([300, 300], v) for i in range(3)}, path)
                found = paddle.load(path)
                assert len({float(x) for w in found.values() for x in (w.min(), w.max())}) == 1
        except Exception as e:      # the thread's end
            failed.append(e)

    threads = [threading.Thread(target=run, args=(v,)) for v in (1.0, 2.0, 3.0)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed
    assert os.listdir(tmp_path) == ["t.pdparams"]


def saves(folder):
    """(files, a call that writes them)"""
    net, at = paddle.nn.Linear(2, 2), str(folder / "m")
    inputs = [paddle.static.InputSpec([None, 2], "float32", "x")]
    return [(["m"], lambda: paddle.save(net.state_dict(), at)),
            (["m.pdmodel", "m.pdiparams", "m.pdiparams.info"], lambda: paddle.jit.save(net, at, inputs)),
            (["m"], lambda: paddle.static.save_to_file(at, b"bytes"))]


@pytest.mark.parametrize("which", range(3))
def test_permissions_and_symbolic_links_stay(tmp_path, which):
    files, save = saves(tmp_path)[which]
    was = os.umask(0o027)
    try:
        save()
    finally:
        os.umask(was)
    (tmp_path / "elsewhere").mkdir()
    for file in files:
        path, real = tmp_path / file, tmp_path / "elsewhere" / file
        assert stat.S_IMODE(path.stat().st_mode) == 0o640      # a new file's follow the umask
        path.chmod(0o600)
        path.rename(real)
        path.symlink_to(os.path.join("elsewhere", file))
    inode = {file: (tmp_path / file).stat().st_ino for file in files}
    save()
    for file in files:
        path = tmp_path / file
        assert path.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_ino != inode[file]               # it was replaced, not written over


def test_errors_are_the_system_s(tmp_path):
    with pytest.raises(IsADirectoryError):
        paddle.save({"a": paddle.ones([1])}, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        paddle._core.FileWriter(tmp_path / "file" / "below")
    with pytest.raises(FileNotFoundError) as caught:
        paddle._core.FileWriter(str(tmp_path / "none" / "below"))
    assert caught.value.filename == str(tmp_path / "none" / "below")
    writer = paddle._core.FileWriter(tmp_path / "new")
    writer.write(b"half")
    del writer
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="committed or aborted"):
        with paddle._core.FileWriter(tmp_path / "new") as writer:
            writer.commit()
            writer.write(b"late")


def test_paths_need_not_be_utf_8(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/m\xff")
    net = paddle.nn.Linear(2, 2)
    paddle.jit.save(net, path, [paddle.static.InputSpec([None, 2], "float32", "x")])
    x = paddle.ones([1, 2])
    assert np.array_equal(paddle.jit.load(path)(x).numpy(), net(x).numpy())
    paddle.save(net.state_dict(), path + ".pdparams")
    assert np.array_equal(paddle.load(path + ".pdparams")["weight"].numpy(), net.weight.numpy())
    with pytest.raises(Exception, match=r"\\xff"):
        paddle._core.load_program(path + "none")
