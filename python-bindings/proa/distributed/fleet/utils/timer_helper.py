"""Named stopwatches of a training loop; they wait for the device's work before they look at the clock."""
import time

_timers = None


def _now():
    from ....device import synchronize
    synchronize()
    return time.perf_counter()


class _Timer:
    def __init__(self, name):
        self.name, self.elapsed_, self.started_, self.start_time = name, 0.0, False, 0.0

    def start(self):
        """Starts it."""
        if self.started_:
            raise AssertionError(f"timer {self.name}: it has started already; stop it first")
        self.start_time, self.started_ = _now(), True

    def stop(self):
        """Stops it, and adds the time since start."""
        if not self.started_:
            raise AssertionError(f"timer {self.name}: it has not started")
        self.elapsed_ += _now() - self.start_time
        self.started_ = False

    def reset(self):
        """Sets the time to 0, stopped."""
        self.elapsed_, self.started_ = 0.0, False

    def elapsed(self, reset=True):
        """Seconds so far; reset: counts from 0 afterwards. A timer that runs goes on running."""
        running = self.started_
        if running:
            self.stop()
        seconds = self.elapsed_
        if reset:
            self.reset()
        if running:
            self.start()
        return seconds


class Timers:
    """Timers by name: timers("forward").start()."""

    def __init__(self):
        self.timers = {}

    def __call__(self, name):
        return self.timers.setdefault(name, _Timer(name))

    def log(self, names, normalizer=1.0, reset=True):
        """Prints the milliseconds of the timers named, each divided by normalizer."""
        if normalizer <= 0:
            raise AssertionError(f"Timers.log: normalizer must be above 0, got {normalizer}")
        parts = [f"{name}: {self.timers[name].elapsed(reset) * 1000 / normalizer:.2f}" for name in names]
        print(" | ".join(["time (ms)", *parts]), flush=True)


def set_timers():
    """Makes the process's timers, once."""
    global _timers
    if _timers is not None:
        raise AssertionError("set_timers: the timers were made already")
    _timers = Timers()


def is_timer_initialized():
    """Whether set_timers was called."""
    return _timers is not None


def get_timers():
    """The timers that set_timers made."""
    if _timers is None:
        raise AssertionError("get_timers: call set_timers first")
    return _timers
