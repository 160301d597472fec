"""paddle.utils: helpers for scripts (unique names, DLPack, downloads, nested structures), and run_check."""
from ..framework import unique_name
from . import config, dlpack, flags
from .checks import require_version, run_check
from .deprecated import deprecated
from .lazy_import import try_import

__all__ = ["config", "deprecated", "dlpack", "flags", "require_version", "run_check", "try_import", "unique_name"]
from .structure import assert_same_structure, flatten, map_structure, pack_sequence_as


def __getattr__(name):
    if name not in ("cpp_extension", "download", "profiler", "Profiler", "ProfilerOptions", "get_profiler", "load_op_library"):
        raise AttributeError(f"module 'paddle.utils' has no attribute {name!r}")
    import importlib
    if name in ("cpp_extension", "download"):
        return importlib.import_module(f".{name}", __name__)
    if name == "load_op_library":
        return importlib.import_module(".cpp_extension.extension_utils", __name__).load_op_library
    profiler = importlib.import_module(".profiler", __name__)
    return profiler if name == "profiler" else getattr(profiler, name)
