"""Shared parts of the benchmark families: a table row, its timing, and a process's memory. Standard library only."""
import dataclasses
import statistics
import time
import typing


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of a table. make(fw) prepares it over an adapter of frameworks.py and returns the call to time. flops, bytes: the
    floating-point operations and the memory traffic that the call needs at least. limit: the figure of limits.c that bounds
    the traffic, or the name of the unit's row that does the same without a framework. per: items that one call makes."""
    name: str
    make: typing.Callable
    flops: float = 0
    bytes: float = 0
    limit: str = "copy"
    per: int = 1


@dataclasses.dataclass(frozen=True)
class Unit:
    """Rows that one process measures. skip: names of the frameworks that cannot run them."""
    name: str
    rows: tuple
    seconds: float = 0.05  # for each row
    skip: tuple = ()


def measure(call, seconds):
    """(seconds of the first call, median seconds of later ones). A second call warms up (a long one is a sample itself); then
    samples of a millisecond or more are taken until `seconds` have passed, three at least (two of long calls)."""
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
