"""fluid.compiler: programs and how they are run."""
from ..static.compiler import BuildStrategy, CompiledProgram, ExecutionStrategy, ParallelExecutor

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy", "ParallelExecutor"]
