"""fluid.profiler: the functions of paddle.utils.profiler."""
from ..utils.profiler import (cuda_profiler, profiler, reset_profiler, start_profiler,
                              stop_profiler)

__all__ = ["cuda_profiler", "profiler", "reset_profiler", "start_profiler", "stop_profiler"]
