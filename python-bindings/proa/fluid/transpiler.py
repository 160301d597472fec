"""fluid.transpiler: what is left of it on one machine."""

__all__ = ["memory_optimize", "release_memory"]


def memory_optimize(input_program, skip_opt_set=None, print_log=False, level=0, skip_grads=True):
    """Nothing to do: plans share memory by themselves."""


def release_memory(input_program, skip_opt_set=None):
    """Nothing to do: memory is given back as soon as nothing holds it."""
