"""fluid.compiler: programs and how they are run."""
from ..static.compiler import BuildStrategy, CompiledProgram, ExecutionStrategy, ParallelExecutor  # noqa: F401

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy", "ParallelExecutor"]
