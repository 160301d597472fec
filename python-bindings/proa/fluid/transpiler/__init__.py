"""fluid.transpiler: rewrites programs for data parallelism; memory_optimize and release_memory do nothing."""

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig", "HashName", "RoundRobin", "collective", "distribute_transpiler",
           "memory_optimize", "ps_dispatcher", "release_memory"]

_MODULES = ("collective", "distribute_transpiler", "ps_dispatcher")


def __getattr__(name):
    import importlib
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in __all__:
        raise AttributeError(f"module 'paddle.fluid.transpiler' has no attribute {name!r}")
    return getattr(importlib.import_module(".distribute_transpiler", __name__), name)


def memory_optimize(input_program, skip_opt_set=None, print_log=False, level=0, skip_grads=True):
    """Nothing to do: plans share memory by themselves."""


def release_memory(input_program, skip_opt_set=None):
    """Nothing to do: memory is given back as soon as nothing holds it."""
