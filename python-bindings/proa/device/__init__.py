"""paddle.device: sets the device of new tensors, and says which devices this build and machine have."""
from .. import _core
from .._core import IPUPlace, XPUPlace
from . import cuda, xpu
from .streams import Event, Stream, current_stream, set_stream, stream_guard

__all__ = ["set_device", "get_device", "get_cudnn_version", "get_all_device_type", "get_available_device",
           "get_all_custom_device_type", "get_available_custom_device",
           "is_compiled_with_cuda", "is_compiled_with_xpu", "is_compiled_with_rocm", "is_compiled_with_npu",
           "is_compiled_with_ipu", "is_compiled_with_cinn", "is_compiled_with_distribute",
           "is_compiled_with_custom_device", "synchronize", "Event", "Stream", "current_stream", "set_stream", "stream_guard",
           "IPUPlace", "XPUPlace"]


def set_device(device):
    """New tensors are made on `device`: 'cpu', 'gpu' or 'gpu:0'. Returns the place.

    ValueError if this build or machine has no such device.
    """
    if not isinstance(device, (str, _core.Place)):
        raise TypeError(f"set_device: device must be a str such as 'cpu' or 'gpu:0', got {type(device).__name__}")
    try:
        _core.set_device(device.lower() if isinstance(device, str) else device)
    except (RuntimeError, ValueError) as e:
        raise ValueError(str(e)) from None
    return _core.current_place()


def get_device():
    """The device that new tensors are made on: 'cpu' or 'gpu:<index>'."""
    return _core.get_device()


def get_cudnn_version():
    """cuDNN's version as one number; None: there is no GPU to ask."""
    return _core.device_property("gpu:0", "cudnn_version") if cuda.device_count() else None


def _kinds():
    return list(dict.fromkeys(name.partition(":")[0] for name in _core.device_names()))


def get_all_device_type():
    """The kinds of devices that can be used."""
    return _kinds()


def get_available_device():
    """The devices that can be used."""
    return _core.device_names()


def get_all_custom_device_type():
    """The kinds of devices that plug-ins have brought, GPUs apart."""
    return [kind for kind in _kinds() if kind not in ("cpu", "gpu")]


def get_available_custom_device():
    """The devices that plug-ins have brought, GPUs apart."""
    return [name for name in _core.device_names() if name.partition(":")[0] not in ("cpu", "gpu")]


def is_compiled_with_cuda():
    """Whether NVIDIA's GPUs can be used: the plug-in for them is there, and so is a driver."""
    return cuda.device_count() > 0


def is_compiled_with_xpu():
    """False: Proa has no XPU kernels."""
    return False


def is_compiled_with_rocm():
    """False: Proa has no ROCm kernels."""
    return False


def is_compiled_with_npu():
    """False: Proa has no NPU kernels."""
    return False


def is_compiled_with_ipu():
    """False: Proa has no IPU kernels."""
    return False


def is_compiled_with_cinn():
    """False: Proa does not contain the CINN compiler."""
    return False


def is_compiled_with_distribute():
    """Whether several processes can work together: on one host always, and between hosts with Gloo."""
    return True


def is_compiled_with_custom_device(device_type):
    """Whether a plug-in has brought devices of that kind."""
    return device_type in get_all_custom_device_type()


def synchronize(device=None):
    """Waits for the device's work; on the CPU every operation is done when its call returns."""
    if device is None:
        return _core.synchronize()
    before = _core.get_device()
    set_device(device)
    try:
        _core.synchronize()
    finally:
        _core.set_device(before)
