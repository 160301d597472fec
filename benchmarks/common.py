"""Shared parts of the benchmark families: a table row, its timing, and a process's memory. Standard library only."""
import dataclasses
import statistics
import time
import typing


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of a table. make(fw) prepares it and gives what is timed. flops, bytes: what it must at least compute
    and move, in and out of memory; limit: which of the machine's figures (limits.c) its bytes are held against, or the
    row of the same unit, done without any framework, that it is held against; per: how many items one call makes, where
    that is more than one."""
    name: str
    make: typing.Callable
    flops: float = 0
    bytes: float = 0
    limit: str = "copy"
    per: int = 1


@dataclasses.dataclass(frozen=True)
class Unit:
    """Rows that one process measures. skip: frameworks that cannot run it."""
    name: str
    rows: tuple
    seconds: float = 0.05  # for each row
    skip: tuple = ()


def measure(call, seconds):
    """(what the first call takes, the median of what later ones take), in seconds. After one more call to warm up, unless
    calls are long, samples of at least a millisecond, as many as `seconds` hold, and no fewer than three (two of long
    calls)."""
    began = time.perf_counter()
    call()
    first = time.perf_counter() - began
    began = time.perf_counter()
    call()
    once = time.perf_counter() - began
    long = once > seconds / 2
    inner, samples, end = max(1, int(0.001 / max(once, 1e-9))), [once] if long else [], time.perf_counter() + seconds
    while len(samples) < (2 if long else 3) or time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(inner):
            call()
        samples.append((time.perf_counter() - began) / inner)
    return first, statistics.median(samples)


def memory(field="VmHWM"):
    """Bytes that this process occupies: at its highest (VmHWM) or now (VmRSS); 0 where /proc does not say."""
    try:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))
    except (OSError, StopIteration):
        return 0
