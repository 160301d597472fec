"""cpu_places, cuda_places, xpu_places, and device_guard for programs."""
import contextlib
import os

from .. import _core

__all__ = ["cpu_places", "cuda_places", "device_guard", "xpu_places"]


def set_device(place):
    """New tensors are made on a place from now on."""
    try:
        _core.set_device(place)
    except RuntimeError as e:
        raise ValueError(str(e)) from None


def cpu_places(device_count=None):
    """device_count CPU places; without it, as many as the environment's CPU_NUM says (1 if it does not)."""
    count = int(os.environ.get("CPU_NUM", 1)) if device_count is None else int(device_count)
    return [_core.CPUPlace() for _ in range(count)]


def cuda_places(device_ids=None):
    """The places of GPUs; an AssertionError where there is none."""
    from ..device import cuda
    if not cuda.device_count():
        raise AssertionError("cuda_places: there is no CUDA device; use cpu_places")
    ids = range(cuda.device_count()) if device_ids is None else device_ids
    return [_core.CUDAPlace(int(i)) for i in ids]


def xpu_places(device_ids=None):
    """The places of XPUs, which no build of Proa has: an AssertionError."""
    raise AssertionError("xpu_places: Proa knows no XPU; use cpu_places")


@contextlib.contextmanager
def device_guard(device=None):
    """Operators that are added inside, and those of their gradients, have the attribute op_device = device ("gpu:1", "cpu"; None:
    none). Fleet's pipelines are cut by it; a run has one device for all of its operators."""
    name, _, index = (device or "").partition(":")
    if name not in ("", "cpu", "gpu", "xpu", "npu"):
        raise ValueError(f"device_guard: device must be 'cpu', 'gpu' or None, got {device!r}")
    if name == "cpu" and index:
        raise ValueError(f"device_guard: a CPU has no index, got {device!r}")
    before = _core.set_op_device(device)
    try:
        yield
    finally:
        _core.set_op_device(before)
