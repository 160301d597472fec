"""fluid.transpiler.ps_dispatcher: which endpoint each variable belongs to."""
import zlib

__all__ = ["HashName", "PSDispatcher", "RoundRobin"]


class PSDispatcher:
    """Base: dispatch() gives an endpoint for each variable."""

    def __init__(self, pserver_endpoints):
        self._eps, self._step = list(pserver_endpoints), 0

    @property
    def eps(self):
        return self._eps

    def reset(self):
        """The next variable gets the first endpoint."""
        self._step = 0

    def dispatch(self, varlist):
        raise NotImplementedError(f"{type(self).__name__}.dispatch: a subclass says which endpoint a variable belongs to")


class HashName(PSDispatcher):
    """By a hash of the variable's name (CRC-32: the same in every process)."""

    def dispatch(self, varlist):
        """An endpoint for each variable."""
        names = [var.name() if callable(var.name) else var.name for var in varlist]
        return [self._eps[zlib.crc32(name.encode()) % len(self._eps)] for name in names]


class RoundRobin(PSDispatcher):
    """One after the other."""

    def dispatch(self, varlist):
        """An endpoint for each variable."""
        found = []
        for _ in varlist:
            found.append(self._eps[self._step])
            self._step = (self._step + 1) % len(self._eps)
        return found
