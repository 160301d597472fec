"""paddle.jit: functions and layers as programs."""
