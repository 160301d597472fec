"""fluid.transpiler: data parallelism of programs (collective); nothing is left to do for memory."""

__all__ = ["collective", "memory_optimize", "release_memory"]


def __getattr__(name):
    if name != "collective":
        raise AttributeError(f"module 'paddle.fluid.transpiler' has no attribute {name!r}")
    import importlib
    return importlib.import_module(".collective", __name__)


def memory_optimize(input_program, skip_opt_set=None, print_log=False, level=0, skip_grads=True):
    """Nothing to do: plans share memory by themselves."""


def release_memory(input_program, skip_opt_set=None):
    """Nothing to do: memory is given back as soon as nothing holds it."""
