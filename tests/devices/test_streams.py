"""paddle.device's streams and events on the example device and on gpu:0, where its plug-in is built; and without devices."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from conftest import ROOT  # finds the others
import proa as paddle
import test_devices
from proa import _core, device


@pytest.fixture(params=["example:0", "gpu:0"])
def place(request):
    """A device's place, which is the current one meanwhile."""
    path = test_devices.plugin_of(request.param)
    if path is None:
        pytest.skip(f"{request.param}: its plug-in is not built here")
    _core.load_devices(str(path))
    _core.set_device(request.param)
    yield _core.current_place()
    _core.set_device("cpu")


def test_work_of_two_streams_is_ordered(place):
    first, second = device.Stream(), device.Stream(place, 1)
    with device.stream_guard(first):
        x = paddle.full([64, 64], 2.0)
        y = x + x
        event = first.record_event()
    with device.stream_guard(second):
        second.wait_event(event)
        z = y + paddle.full([64, 64], 5.0)
        first.wait_stream(second)
    event.synchronize()
    assert event.query()
    first.synchronize()
    assert second.query()
    np.testing.assert_array_equal(z.numpy(), np.full([64, 64], 9, "float32"))
    assert event.elapsed_time(second.record_event()) == 0


def test_current_streams(place):
    before, own = device.current_stream(), device.Stream()
    assert device.current_stream(str(place)[6:-1]) is before and before != own and before == device.Stream(stream_base=before.stream_base)
    assert before.device == own.device == place
    assert device.set_stream(own) is before and device.current_stream(place) is own
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.append(device.current_stream(place)))
    thread.start()
    thread.join()
    assert elsewhere[0] is not own
    with device.stream_guard(before):
        assert device.current_stream() is before
    assert device.set_stream(before) is own
    assert len({before, own}) == 2 and "stream=" in repr(own)


def test_guard_changes_the_device(place):
    stream = device.Stream()
    _core.set_device("cpu")
    with device.stream_guard(stream):
        assert paddle.ones([1]).place == place
        event = device.Event()
        event.record()
    assert paddle.ones([1]).place.is_cpu_place()
    event.synchronize()
    assert event.query() and device.Event(place).query() and "device=" in repr(event)


def late():
    """Events of work that is done at the next wait."""
    paddle.set_device("gpu:0")
    x = paddle.ones([8]) + paddle.ones([8])
    event = device.Event()
    event.record()
    assert not event.query() and not device.current_stream().query()
    event.synchronize()
    assert event.query() and x.tolist() == [2.0] * 8


@pytest.mark.usefixtures("gpu")
def test_work_that_is_not_done():
    """The emulated GPU does its work as late as it may."""
    if os.environ.get("PROA_GPU"):
        pytest.skip("a GPU may be done")
    script = f"""import sys
sys.path[:0] = [{str(ROOT / "tests")!r}, {str(ROOT / "tests/devices")!r}]
import test_streams as t
t._core.load_devices(str(t.test_devices.plugin_of("gpu:0")))
t.late()
"""
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PROA_EMULATE_LATE": "compute"}, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_streams_of_gpus(place):
    cuda = device.cuda
    if not place.is_gpu_place():
        pytest.skip("a device of another kind")
    with pytest.warns(DeprecationWarning):
        before = cuda.current_stream()
    for stream in (cuda.Stream(), cuda.Stream(0), cuda.Stream(paddle.CUDAPlace(0), 1)):
        with pytest.warns(DeprecationWarning), cuda.stream_guard(stream):
            x = paddle.ones([2]) + paddle.ones([2])
            event = stream.record_event(cuda.Event())
        event.synchronize()
        assert stream.place == place and x.tolist() == [2, 2]
    assert device.current_stream() is before
    with pytest.warns(DeprecationWarning), cuda.stream_guard(None):
        pass


@pytest.mark.parametrize("name", ["cpu", "gpu:7", "npu:0", "gpu:x", "xpu:0", 3])
def test_no_such_device(name):
    for make in (device.Stream, device.Event, device.current_stream):
        with pytest.raises((TypeError, ValueError), match=make.__name__):
            make(name)
    with pytest.raises(RuntimeError, match="no device xpu:0"):
        device.xpu.synchronize()
    with pytest.raises(RuntimeError, match="mark: there is no device"):
        _core.device_mark("gpu:77")
