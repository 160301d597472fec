"""Streams, events and places of devices on a build that has none: the errors, and what takes None."""
import paddle
from paddle import device

from parity import case, raised

D = "paddle.device."


@case(D + "Stream", D + "Event", D + "current_stream", D + "set_stream", D + "stream_guard", grad=False)
def streams():
    names = (None, "cpu", "gpu", "gpu:0", "gpu:x", "xpu:0", "ipu", "npu:0", "custom_cpu", paddle.CPUPlace(), 3)
    refused = [[raised(lambda n=n: make(n)) for n in names] for make in (device.Stream, device.Event, device.current_stream)]
    with device.stream_guard(None) as entered:
        pass
    with device.stream_guard():
        pass
    return (refused, entered, raised(lambda: device.Stream(stream_base=3)), raised(lambda: device.set_stream(None)),
            raised(lambda: device.set_stream(1)), raised(lambda: device.stream_guard(1).__enter__()))


@case(D + "cuda.Stream", D + "cuda.Event", D + "cuda.current_stream", D + "cuda.stream_guard", D + "xpu.synchronize", grad=False)
def streams_of_hardware():
    cuda = device.cuda
    return [raised(f) for f in (cuda.Stream, cuda.Event, lambda: cuda.Stream(1), lambda: cuda.Event(True, True), cuda.current_stream,
                                lambda: cuda.current_stream(0), lambda: cuda.current_stream("x"), lambda: cuda.stream_guard(None).__enter__(),
                                lambda: cuda.stream_guard(1).__enter__(), device.xpu.synchronize, lambda: device.xpu.synchronize(0))]
