"""This build's features, as text."""
from .. import _core


def show_config():
    """The version, CPU level, threads, devices and libraries of this build, one a line; also printed."""
    import sys
    head, _, libraries = _core.build_info().partition(", libraries: ")
    libraries, _, without = libraries.partition("; without: ")
    lines = [*head.split(", "), f"libraries: {libraries}", f"built without: {without or 'nothing'}",
             f"device: {_core.get_device()}", f"Python: {sys.version.split()[0]}"]
    try:
        import numpy
        lines.append(f"NumPy: {numpy.__version__}")
    except ImportError:
        lines.append("NumPy: not installed")
    text = "\n".join(lines)
    print(text)
    return text
