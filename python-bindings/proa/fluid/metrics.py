"""fluid.metrics: metrics accumulated over batches of NumPy arrays (Accuracy, Auc, ChunkEvaluator, …)."""
import numpy

__all__ = ["Accuracy", "Auc", "ChunkEvaluator", "CompositeMetric", "EditDistance", "MetricBase", "Precision", "Recall"]


def _array(value, what):
    if not isinstance(value, (numpy.ndarray, numpy.generic)):
        raise ValueError(f"The '{what}' must be a numpy ndarray.")
    return value


class MetricBase:
    """Base: reset() begins anew, update() takes a batch, eval() gives the value."""

    def __init__(self, name):
        self._name = type(self).__name__ if name is None else str(name)

    def __str__(self):
        return self._name

    def reset(self):
        """Numbers and arrays of the state become zero."""
        for attribute, value in self.__dict__.items():
            if attribute.startswith("_"):
                continue
            if isinstance(value, (int, float, numpy.ndarray, numpy.generic)):
                setattr(self, attribute, value * 0)

    def get_config(self):
        """The public state."""
        return {"name": self._name, **{k: v for k, v in self.__dict__.items() if not k.startswith("_")}}

    def update(self, preds, labels):
        raise NotImplementedError(f"Should not use it directly, please extend it: {type(self).__name__}.update")

    def eval(self):
        raise NotImplementedError(f"Should not use it directly, please extend it: {type(self).__name__}.eval")


class CompositeMetric(MetricBase):
    """Several metrics of the same predictions."""

    def __init__(self, name=None):
        super().__init__(name)
        self._metrics = []

    def add_metric(self, metric):
        """One more."""
        if not isinstance(metric, MetricBase):
            raise ValueError("SubMetric should be inherit from MetricBase.")
        self._metrics.append(metric)

    def update(self, preds, labels):
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self):
        return [metric.eval() for metric in self._metrics]


class _Rate(MetricBase):
    def __init__(self, name=None):
        super().__init__(name)
        self.tp = self.other = 0

    def update(self, preds, labels):
        preds, labels = _array(preds, "preds"), _array(labels, "labels")
        found = numpy.rint(preds).astype("int32").reshape(-1)
        truth = labels.reshape(-1)
        self.tp += int(((found == 1) & (truth == 1)).sum())
        self.other += int(self._missed(found, truth).sum())

    def eval(self):
        return float(self.tp) / (self.tp + self.other) if self.tp + self.other else 0.0


class Precision(_Rate):
    """True positives over all positives that were found."""

    @staticmethod
    def _missed(found, truth):
        return (found == 1) & (truth != 1)

    fp = property(lambda self: self.other)


class Recall(_Rate):
    """True positives over all that there are."""

    @staticmethod
    def _missed(found, truth):
        return (found != 1) & (truth == 1)

    fn = property(lambda self: self.other)


class Accuracy(MetricBase):
    """The weighted mean of accuracies."""

    def __init__(self, name=None):
        super().__init__(name)
        self.value = self.weight = 0.0

    def update(self, value, weight):
        if not isinstance(value, (int, float, numpy.ndarray, numpy.generic)):
            raise ValueError("The 'value' must be a number(int, float) or a numpy ndarray.")
        if weight < 0:
            raise ValueError("The 'weight' can not be negative")
        self.value += value * weight
        self.weight += weight

    def eval(self):
        if self.weight == 0:
            raise ValueError("There is no data in Accuracy Metrics. Please check layers.accuracy output has added to Accuracy.")
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """(precision, recall, F1) of chunks."""

    def __init__(self, name=None):
        super().__init__(name)
        self.num_infer_chunks = self.num_label_chunks = self.num_correct_chunks = 0

    def update(self, num_infer_chunks, num_label_chunks, num_correct_chunks):
        self.num_infer_chunks += int(numpy.asarray(num_infer_chunks).reshape(-1)[0])
        self.num_label_chunks += int(numpy.asarray(num_label_chunks).reshape(-1)[0])
        self.num_correct_chunks += int(numpy.asarray(num_correct_chunks).reshape(-1)[0])

    def eval(self):
        right = float(self.num_correct_chunks)
        precision = right / self.num_infer_chunks if self.num_infer_chunks else 0
        recall = right / self.num_label_chunks if self.num_label_chunks else 0
        return precision, recall, 2 * precision * recall / (precision + recall) if right else 0


class EditDistance(MetricBase):
    """(mean distance, share of wrong sequences)."""

    def __init__(self, name):
        super().__init__(name)
        self.total_distance, self.seq_num, self.instance_error = 0.0, 0, 0

    def update(self, distances, seq_num):
        distances = _array(distances, "distances")
        self.total_distance += float(numpy.sum(distances))
        self.seq_num += int(seq_num)
        self.instance_error += int(seq_num) - int(numpy.sum(distances == 0))

    def eval(self):
        if self.seq_num == 0:
            raise ValueError("There is no data in EditDistance Metric. Please check layers.edit_distance output has been added "
                             "to EditDistance.")
        return self.total_distance / self.seq_num, self.instance_error / float(self.seq_num)


class Auc(MetricBase):
    """The area under the ROC curve, by thresholds."""

    def __init__(self, name, curve="ROC", num_thresholds=4095):
        super().__init__(name)
        self._count = num_thresholds
        self._stat_pos, self._stat_neg = ([0] * (num_thresholds + 1) for _ in "ab")

    def update(self, preds, labels):
        preds, labels = _array(preds, "predictions"), _array(labels, "labels").reshape(-1)
        bins = (preds[:, 1] * self._count).astype("int64")
        if bins.size and (bins.min() < 0 or bins.max() > self._count):
            raise ValueError("Auc: predictions must be in [0, 1]")
        for counts, found in ((self._stat_pos, bins[labels != 0]), (self._stat_neg, bins[labels == 0])):
            counts[:] = (numpy.array(counts) + numpy.bincount(found, minlength=len(counts))).tolist()

    def eval(self):
        positive, negative = (numpy.cumsum(v[::-1]) for v in (self._stat_pos, self._stat_neg))
        x, y = numpy.concatenate([[0], negative]), numpy.concatenate([[0], positive])
        area = float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2.0).sum())
        total = float(positive[-1]) * float(negative[-1])
        return area / total if total else 0.0
