"""Windows by name, as scipy.signal.windows defines them, in NumPy's float64: name(length, *parameters)."""
import numpy as np

from ...tensor import to_tensor


def _from_middle(n):
    return np.arange(n) - (n - 1) / 2


def _cosines(n, *weights):
    phase = np.linspace(-np.pi, np.pi, n)
    return sum(weight * np.cos(k * phase) for k, weight in enumerate(weights))


def _exponential(n, center=None, tau=1.0):
    return np.exp(-np.abs(np.arange(n) - ((n - 1) / 2 if center is None else center)) / tau)


def _triang(n):
    rise = np.arange(1, (n + 1) // 2 + 1)
    rise = (2 * rise - 1) / n if n % 2 == 0 else 2 * rise / (n + 1)
    return np.concatenate([rise, rise[::-1][n % 2:]])


def _bohman(n):
    x = np.abs(np.linspace(-1, 1, n))
    w = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    w[[0, -1]] = 0
    return w


def _tukey(n, alpha=0.5):
    if alpha <= 0:
        return np.ones(n)
    if alpha >= 1:
        return _cosines(n, 0.5, 0.5)
    edge = np.minimum(np.arange(n), np.arange(n)[::-1]) / (alpha * (n - 1) / 2)
    return 0.5 * (1 - np.cos(np.pi * np.minimum(edge, 1)))


def _taylor(n, nbar=4, sll=30, norm=True):
    """Side lobes of `sll` decibels below the peak, `nbar` of them about equally high."""
    a2 = (np.arccosh(10 ** (sll / 20)) / np.pi) ** 2
    order = np.arange(1, nbar)
    widened = nbar ** 2 / (a2 + (nbar - 0.5) ** 2)
    weights = []
    for m in order:
        above = np.prod(1 - m ** 2 / widened / (a2 + (order - 0.5) ** 2))
        weights.append((-1) ** (m + 1) * above / (2 * np.prod(1 - m ** 2 / order[order != m] ** 2.0)))

    def at(x):
        return 1 + 2 * np.cos(2 * np.pi * np.multiply.outer((x - n / 2 + 0.5) / n, order)) @ np.array(weights)
    w = at(np.arange(n))
    return w / at((n - 1) / 2) if norm else w


_WINDOWS = {
    "hamming": lambda n: _cosines(n, 0.54, 0.46), "hann": lambda n: _cosines(n, 0.5, 0.5),
    "blackman": lambda n: _cosines(n, 0.42, 0.5, 0.08), "cosine": lambda n: np.sin(np.pi / n * (np.arange(n) + 0.5)),
    "gaussian": lambda n, std: np.exp(-_from_middle(n) ** 2 / (2 * std * std)),
    "general_gaussian": lambda n, p, sig: np.exp(-0.5 * np.abs(_from_middle(n) / sig) ** (2 * p)),
    "exponential": _exponential, "triang": _triang, "bohman": _bohman, "tukey": _tukey, "taylor": _taylor,
}


def get_window(window, win_length, fftbins=True, dtype="float64"):
    """A window of win_length samples: a tensor [win_length].

    window: "hamming", "hann", "blackman", "cosine", "triang", "bohman", "tukey", "taylor", or a tuple of a name and its
    parameters, such as ("gaussian", std), ("general_gaussian", p, sig), ("exponential", center, tau), ("tukey", alpha),
    ("taylor", nbar, decibels). fftbins: periodic, for Fourier transforms; False: symmetric, for filters.
    """
    if not isinstance(window, (str, tuple)):
        raise ValueError(f"{type(window)} as window type is not supported: get_window takes a name, or a tuple of it and parameters")
    name, *parameters = (window,) if isinstance(window, str) else window
    if window in ("gaussian", "exponential", "general_gaussian"):
        raise ValueError(f"get_window: the '{name}' window needs one or more parameters: pass a tuple")
    if name not in _WINDOWS:
        raise ValueError(f"Unknown window type: get_window has {', '.join(_WINDOWS)}, got {name!r}")
    if int(win_length) != win_length or win_length < 0:
        raise ValueError(f"Window length M must be a non-negative integer: get_window got win_length {win_length}")
    if name == "exponential" and not fftbins and parameters and parameters[0] is not None:
        raise ValueError("get_window: a symmetric exponential window has its center in the middle: pass None")
    n = int(win_length)
    values = np.ones(n) if n <= 1 else _WINDOWS[name](n + fftbins, *parameters)[:n]
    return to_tensor(values, dtype)
