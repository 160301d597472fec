"""Thresholds from samples: Kullback-Leibler divergence, percentiles, averages and searches over scales."""
__all__ = ["Search", "cal_kl_threshold", "percentile_threshold", "power_of_two_threshold"]


def _spread(values, reference, starts):
    """The bins of Q: groups of values, which begin at `starts`, spread over those of their bins that are not empty in P."""
    import numpy as np
    seen = reference != 0
    mass, filled = np.add.reduceat(values, starts), np.add.reduceat(seen, starts, dtype=np.int64)
    lengths = np.diff([*starts, len(values)])
    return np.repeat(mass / np.maximum(filled, 1), lengths) * seen


def cal_kl_threshold(hist, bin_width, bits):
    """The threshold at which quantized values of a histogram of magnitudes differ least from the values, by the divergence
    of Kullback and Leibler (Migacz, 2017). Candidates are the upper half of the bins."""
    import numpy as np
    hist = np.asarray(hist, np.float64)
    count, n = len(hist), 2 ** (bits - 1) - 1
    total, best, at = hist.sum(), None, 0
    start = int((count - 1) * 0.5)
    for i in range(start, count):
        if hist[i - 1] == 0:
            continue
        p = hist[:i].copy()
        p[-1] += hist[i:].sum()
        q = _spread(hist[:i], p, np.arange(n) * (i // n))
        seen = p != 0
        with np.errstate(divide="ignore", invalid="ignore"):
            divergence = (p[seen] * (np.log(q.sum() * p[seen]) - np.log(total * q[seen]))).sum() / total
        if best is None or divergence < best:
            best, at = divergence, i
    if at == 0:
        at = start
        while at > 0 and hist[at] == 0:
            at -= 1
    return (at + 0.5) * bin_width


def percentile_threshold(hist, bin_width, share):
    """The middle of the first bin up to which a histogram holds that share of its mass."""
    import numpy as np
    reached = np.cumsum(hist) / float(np.sum(hist)) >= share
    return (int(np.argmax(reached)) + 0.5) * bin_width if reached.any() else -0.5 * bin_width


def power_of_two_threshold(x, bits):
    """The largest magnitude over 1, 2, 4 or 8, whichever restores a tensor of positive numbers best."""
    import numpy as np
    n = 2 ** (bits - 1) - 1
    step = float(np.abs(x).max()) / n / 8
    losses = [((x - np.clip(np.round(x / (step * f)), 0, n) * step * f) ** 2).mean() for f in (1, 2, 4, 8)]
    return n * step * 2 ** int(np.argmin(losses))


class Search:
    """The scale between 0.3 and 1 of a batch's largest magnitude whose quantization loses least; the best of all batches.
    Losses: `mse`, the mean squared error, and `emd`, by which mean and deviation move."""

    def __init__(self, loss, bits, symmetric):
        self._loss, self._n, self._symmetric = loss, 2 ** (bits - 1) - 1, symmetric
        self._best, self.threshold = float("inf"), None

    def see(self, x):
        """Takes a batch into account."""
        import numpy as np
        x = x.reshape(-1)
        most = float(np.abs(x).max()) or 1e-8
        part = 0.3
        while part <= 1.0:
            scale = part * most
            part += 0.02
            loss = self._lost(x, self._restored(x, scale))
            if loss <= self._best:
                self._best, self.threshold = loss, scale

    def _restored(self, x, scale):
        import numpy as np
        n = self._n
        if self._symmetric:
            return np.clip(np.round(x / scale * n), -n - 1, n) / n * scale
        return np.round(np.clip(x, 0.0, scale) / scale * n) / n * scale

    def _lost(self, x, restored):
        import numpy as np
        if self._loss == "mse":
            return float(((x - restored) ** 2).mean())
        return float(abs(np.mean(x) - np.mean(restored)) + abs(np.std(x) - np.std(restored)))
