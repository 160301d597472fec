"""paddle.device: where tensors are made, and what this build was compiled with."""
from .. import _core
from . import cuda  # noqa: F401

__all__ = ["set_device", "get_device", "get_cudnn_version", "get_all_device_type", "get_available_device",
           "is_compiled_with_cuda", "is_compiled_with_xpu", "is_compiled_with_rocm", "is_compiled_with_npu",
           "is_compiled_with_ipu", "is_compiled_with_cinn", "is_compiled_with_distribute",
           "is_compiled_with_custom_device", "synchronize"]


def set_device(device):
    """New tensors are made on `device`: 'cpu', 'gpu' or 'gpu:0'. Returns the place.

    ValueError if this build or machine has no such device.
    """
    if isinstance(device, _core.Place):
        device = "cpu" if device.is_cpu_place() else f"gpu:{device.get_device_id()}"
    if not isinstance(device, str):
        raise TypeError(f"set_device: device must be a str such as 'cpu' or 'gpu:0', got {type(device).__name__}")
    name = device.lower()
    if name == "gpu":
        name = "gpu:0"
    try:
        _core.set_device(name)
    except (RuntimeError, ValueError) as e:
        raise ValueError(str(e)) from None
    return _core.CPUPlace() if name == "cpu" else _core.CUDAPlace(int(name.partition(":")[2]))


def get_device():
    """The device that new tensors are made on: 'cpu' or 'gpu:<index>'."""
    return _core.get_device()


def get_cudnn_version():
    """cuDNN's version as one number; None: this build is without it."""
    return None


def get_all_device_type():
    """The kinds of devices that this build knows."""
    return ["cpu"]


def get_available_device():
    """The devices of this machine that this build can use."""
    return ["cpu"]


def is_compiled_with_cuda():
    """Whether NVIDIA's GPUs can be used."""
    return False


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
    """Whether several processes can work together (Gloo was found when Proa was built)."""
    return "Gloo" in _core.build_info().partition("; without: ")[0]


def is_compiled_with_custom_device(device_type):
    """False: there are no plug-in devices."""
    return False


def synchronize(device=None):
    """Waits for the device's work; on the CPU every operation is done when its call returns."""
    if device is not None and str(device) != "cpu" and not (
            isinstance(device, _core.Place) and device.is_cpu_place()):
        raise ValueError(f"synchronize: there is no device {device!r} here, only cpu")
