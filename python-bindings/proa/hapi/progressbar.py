"""ProgressBar: the progress lines of fit, evaluate and predict, in Paddle's format."""
import os
import sys
import time


def _number(value):
    return f" {value:.4f}" if abs(value) > 0.001 else f" {value:.4e}"


def _values(values, arrays):
    import numpy as np
    text = ""
    for name, value in values:
        text += f" - {name}:"
        for v in value if isinstance(value, list) else [value]:
            if isinstance(v, (float, np.float32, np.float64)):
                text += _number(v)
            elif arrays and isinstance(v, np.ndarray) and v.size == 1 and v.dtype in (np.float32, np.float64):
                text += _number(v.item())
            else:
                text += f" {v}"
    return text


class ProgressBar:
    """update(step, values) prints where a loop is. verbose 1: a bar that is redrawn; 2 and 3: a line each."""

    def __init__(self, num=None, width=30, verbose=1, start=True, file=None, name="step"):
        if isinstance(num, int) and num <= 0:
            raise TypeError(f"ProgressBar: num must be None or positive, got {num}")
        self._num, self._verbose, self.name = num, verbose, name
        self.file = file or sys.stdout
        self._width = min(width, self._get_max_width())
        self._total_width = 0
        if start:
            self._start = time.time()
        self._dynamic_display = self.file.isatty() if hasattr(self.file, "isatty") else False
        if "ipykernel" in sys.modules or "posix" in sys.modules or "PYCHARM_HOSTED" in os.environ:
            self._dynamic_display = True

    def _get_max_width(self):
        from shutil import get_terminal_size
        columns = get_terminal_size()[0] or 80
        return min(int(columns * 0.6), columns - 50)

    def start(self):
        self.file.flush()
        self._start = time.time()

    def _pace(self, step):
        each = (time.time() - self._start) / step if step else 0
        if each >= 1 or each == 0:
            return each, f" - {each:.0f}s/{self.name}"
        if each >= 0.001:
            return each, f" - {each * 1e3:.0f}ms/{self.name}"
        return each, f" - {each * 1e6:.0f}us/{self.name}"

    def _count(self, step):
        if not self._num:
            return f"{self.name} {step:3d}"
        return f"{self.name} {step:{len(str(self._num))}d}/{self._num}"

    def _bar(self, step):
        if self._num is None:
            return self._count(step)
        filled = int(self._width * (step / self._num))
        bar = "=" * (filled - 1) + (">" if step < self._num else "=") if filled > 0 else ""
        return f"{self._count(step)} [{bar}{'.' * (self._width - filled)}]"

    def update(self, current_num, values={}):
        each, pace = self._pace(current_num)
        values = list(values)
        out = self.file
        if self._verbose == 1:
            before = self._total_width
            out.write("\b" * before + "\r" if self._dynamic_display else "\n")
            bar = self._bar(current_num)
            info = _values(values, False)
            if self._num is not None and current_num < self._num:
                left = each * (self._num - current_num)
                if left > 3600:
                    eta = f"{int(left // 3600)}:{int(left % 3600 // 60):02d}:{int(left % 60):02d}"
                elif left > 60:
                    eta = f"{int(left // 60)}:{int(left % 60):02d}"
                else:
                    eta = f"{int(left)}s"
                info += f" - ETA: {eta}"
            info += pace
            self._total_width = len(bar) + len(info)
            info += " " * max(0, before - self._total_width)
            if self._num is None or current_num >= self._num:
                info += "\n"
            out.write(bar + info)
        elif self._verbose in (2, 3):
            out.write(self._count(current_num) + _values(values, True) + pace + "\n")
        out.flush()
