"""show_config: version, build options and number of threads, as text."""
from .. import _core


def threads_line(info):
    """Number of threads that this thread's kernels use, the reason, and their waits since the process started."""
    return (f"threads: {info['threads']} ({info['reason']}), {info['workers']} workers started; slept: workers "
            f"{info['worker_sleeps']} times, callers {info['caller_sleeps']}; parts taken over: {info['stolen']}; "
            f"cores are {'contended' if info['contended'] else 'free'}")


def show_config():
    """The version, CPU level, devices and libraries of this build, and its threads, one a line; also printed."""
    import sys
    head, _, libraries = _core.build_info().partition(", libraries: ")
    libraries, _, without = libraries.partition("; without: ")
    lines = [*head.split(", "), f"libraries: {libraries}", f"built without: {without or 'nothing'}",
             threads_line(_core.threads_info()), f"device: {_core.get_device()}", f"Python: {sys.version.split()[0]}"]
    try:
        import numpy
        lines.append(f"NumPy: {numpy.__version__}")
    except ImportError:
        lines.append("NumPy: not installed")
    text = "\n".join(lines)
    print(text)
    return text
