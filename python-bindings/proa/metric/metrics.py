"""Metrics accumulated over batches: Accuracy, Precision, Recall, Auc. NumPy is imported at first use."""
import abc

from .. import _core
from ..framework.dims import differ, tensor_of


def _array(owner, name, value):
    import numpy as np
    if isinstance(value, _core.Tensor):
        return value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    raise ValueError(f"{owner}: {name} must be a Tensor or an array, got {type(value).__name__}")


class Metric(metaclass=abc.ABCMeta):
    """Base of metrics: compute(outputs, labels) as tensors, update(what it gave), accumulate() → the value."""

    def __init__(self):
        pass

    @abc.abstractmethod
    def reset(self):
        """Forgets what was gathered."""

    @abc.abstractmethod
    def update(self, *args):
        """Adds a batch."""

    @abc.abstractmethod
    def accumulate(self):
        """The value over what was gathered."""

    @abc.abstractmethod
    def name(self):
        """The metric's name or names."""

    def compute(self, *args):
        """The arguments of update; by default those of compute."""
        return args


class Accuracy(Metric):
    """The part of samples whose label is among the k highest predictions, for each k of topk."""

    def __init__(self, topk=(1,), name=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.topk = topk
        self.maxk = max(topk)
        self._init_name(name)
        self.reset()

    def _init_name(self, name):
        name = name or "acc"
        self._name = [name] if self.maxk == 1 else [f"{name}_top{k}" for k in self.topk]

    def compute(self, pred, label, *args):
        """[…, maxk] float32: 1 where the prediction of that rank is the label."""
        order = _core.argsort(pred, axis=-1, descending=True)
        order = order[..., :self.maxk]
        if len(label.shape) == 1 or len(label.shape) == 2 and label.shape[-1] == 1:
            label = label.reshape([-1, 1])
        elif label.shape[-1] != 1:
            label = _core.argmax(label, axis=-1, keepdim=True)
        return (order == label.astype(order.dtype)).astype("float32")

    def update(self, correct, *args):
        import numpy as np
        if isinstance(correct, _core.Tensor):
            correct = correct.numpy()
        samples = int(np.prod(correct.shape[:-1]))
        values = []
        for i, k in enumerate(self.topk):
            right = correct[..., :k].sum()
            values.append(float(right) / samples if samples else float("nan"))
            self.total[i] += right
            self.count[i] += samples
        return values[0] if len(self.topk) == 1 else values

    def reset(self):
        self.total = [0.0] * len(self.topk)
        self.count = [0] * len(self.topk)

    def accumulate(self):
        values = [float(t) / c if c > 0 else 0.0 for t, c in zip(self.total, self.count)]
        return values[0] if len(self.topk) == 1 else values

    def name(self):
        return self._name


def _column(owner, what, rows):
    """The entries of rows that have one each."""
    if rows.size != len(rows):
        raise ValueError(f"{owner}: {what} must be [N] or [N, 1], got shape {rows.shape}")
    return rows.reshape(-1)


class _Binary(Metric):
    """Counts over predictions rounded to 0 or 1."""

    _counts = ()

    def __init__(self, name, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._name = name
        self._start()  # not reset(), which a subclass may write for what it has not made yet

    def _start(self):
        for count in self._counts:
            setattr(self, count, 0)

    def reset(self):
        self._start()

    def _hits(self, chosen_by, preds, labels, rounded):
        """(rows that are 1 in `chosen_by`, preds or labels; those of them that are 1 in the other, too, which is read there alone)."""
        owner = type(self).__name__
        preds, labels = _array(owner, "preds", preds), _array(owner, "labels", labels)
        rows, both = labels.shape[0], {"preds": rounded(preds).astype("int32"), "labels": labels}
        chosen = _column(owner, chosen_by, both.pop(chosen_by)[:rows]) == 1
        if len(preds) < rows:
            raise IndexError(f"{owner}: preds must have a row a label, got shapes {preds.shape} and {labels.shape}")
        (what, other), = both.items()
        return int(chosen.sum()), int((_column(owner, what, other[:rows][chosen]) == 1).sum())

    def name(self):
        return self._name


class Precision(_Binary):
    """Of the samples predicted positive, the part that is."""

    _counts = ("tp", "fp")

    def __init__(self, name="precision", *args, **kwargs):
        super().__init__(name, *args, **kwargs)

    def update(self, preds, labels):
        import numpy as np
        positive, right = self._hits("preds", preds, labels, lambda p: np.floor(p + 0.5))
        self.tp += right
        self.fp += positive - right

    def accumulate(self):
        return float(self.tp) / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_Binary):
    """Of the positive samples, the part that was predicted so."""

    _counts = ("tp", "fn")

    def __init__(self, name="recall", *args, **kwargs):
        super().__init__(name, *args, **kwargs)

    def update(self, preds, labels):
        import numpy as np
        positive, right = self._hits("labels", preds, labels, np.rint)
        self.tp += right
        self.fn += positive - right

    def accumulate(self):
        return float(self.tp) / (self.tp + self.fn) if self.tp + self.fn else 0.0


class Auc(Metric):
    """Area under the ROC curve, from the predictions counted in num_thresholds + 1 bins."""

    def __init__(self, curve="ROC", num_thresholds=4095, name="auc", *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._curve = curve
        self._num_thresholds = num_thresholds
        self._name = name
        self._start()

    def update(self, preds, labels):
        """preds: [N, 2], the second column the probability of the positive class; labels: [N] or [N, 1]."""
        import numpy as np
        labels, preds = _array("Auc", "labels", labels), _array("Auc", "preds", preds)
        bins = (preds[:labels.shape[0], 1] * self._num_thresholds).astype(np.int64)
        positive = _column("Auc", "labels", labels).astype(bool)
        if bins.size and bins.max() > self._num_thresholds:
            raise AssertionError("Auc: preds must be probabilities of at most 1")
        size = self._num_thresholds + 1
        self._stat_pos += np.bincount(bins[positive] % size, minlength=size)
        self._stat_neg += np.bincount(bins[~positive] % size, minlength=size)

    @staticmethod
    def trapezoid_area(x1, x2, y1, y2):
        """The area between x1 and x2 under the line from y1 to y2."""
        return abs(x1 - x2) * (y1 + y2) / 2.0

    def accumulate(self):
        positive = negative = area = 0.0
        for p, n in zip(self._stat_pos[::-1].tolist(), self._stat_neg[::-1].tolist()):
            area += self.trapezoid_area(negative + n, negative, positive + p, positive)
            positive, negative = positive + p, negative + n
        return area / positive / negative if positive > 0.0 and negative > 0.0 else 0.0

    def reset(self):
        self._start()

    def _start(self):
        import numpy as np
        self._stat_pos = np.zeros(self._num_thresholds + 1)
        self._stat_neg = np.zeros(self._num_thresholds + 1)

    def name(self):
        return self._name


def accuracy(input, label, k=1, correct=None, total=None, name=None):
    """The part of samples whose label is among the k highest of input: a float32 Tensor.

    correct and total, if given, are int32 Tensors that get the counts.
    """
    if len(label.shape) > 1 and differ(label.shape[1], 1):
        raise ValueError(f"(InvalidArgument) accuracy: label must be [N, 1], got shape {list(label.shape)}")
    top = _core.topk(input, k)[1]
    hits = (top == label.reshape([-1, 1]).astype(top.dtype)).astype("int32")
    right = hits.sum()
    if correct is not None:
        correct.set_value(right.astype("int32").reshape(correct.shape))
    if total is not None:
        total.set_value(tensor_of(input.shape[:1], "int32").reshape(total.shape))
    return right.astype("float32") / input.shape[0]
