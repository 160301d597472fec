"""fluid.compiler: CompiledProgram and its strategies, re-exported from paddle.static."""
from ..static.compiler import BuildStrategy, CompiledProgram, ExecutionStrategy, ParallelExecutor

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy", "ParallelExecutor"]
