"""paddle.metric."""
import numpy as np
import paddle
from paddle.metric import Accuracy, Auc, Metric, Precision, Recall, accuracy

from parity import array, case, ints, raised


def floats(value):      # Paddle's are NumPy's float64
    return [float(v) for v in value] if isinstance(value, list) else float(value)


@case("paddle.metric.Accuracy", "paddle.metric.Accuracy.compute", "paddle.metric.Accuracy.update",
      "paddle.metric.Accuracy.accumulate", "paddle.metric.Accuracy.reset", "paddle.metric.Accuracy.name")
def accuracy_class():
    result = []
    for topk, shape in (((1,), [8]), ((1, 3), [8, 1]), ((2,), [8, 5])):
        m = Accuracy(topk=topk)
        for _ in range(2):
            pred = paddle.to_tensor(array(8, 5).astype("float32"))
            label = ints(8, high=5).reshape([8, 1]) if shape != [8, 5] else \
                paddle.to_tensor(np.eye(5, dtype="float32")[np.arange(8) % 5])
            correct = m.compute(pred, label.reshape(shape))
            result += [correct, floats(m.update(correct)), floats(m.update(correct.numpy()))]
        result += [floats(m.accumulate()), m.name()]
        m.reset()
        result.append(floats(m.accumulate()))
    return result + [Accuracy(name="top").name(), Accuracy((1, 2), name="top").name()]


def _binary(kind):
    m, result = kind(), []
    for _ in range(2):
        p, y = array(20, low=0, high=1).astype("float32"), (array(20) > 0).astype("int64")
        m.update(p, y)
        m.update(paddle.to_tensor(p), paddle.to_tensor(y))
        m.update(p.reshape(20, 1), y.reshape(20, 1))
        result.append(m.accumulate())
    m.reset()
    return result + [m.accumulate(), m.name(), raised(lambda: m.update([1.0], [1]), ValueError)]


@case("paddle.metric.Precision", "paddle.metric.Precision.update", "paddle.metric.Precision.accumulate",
      "paddle.metric.Precision.reset", "paddle.metric.Precision.name")
def precision():
    return _binary(Precision)


@case("paddle.metric.Recall", "paddle.metric.Recall.update", "paddle.metric.Recall.accumulate",
      "paddle.metric.Recall.reset", "paddle.metric.Recall.name")
def recall():
    return _binary(Recall)


@case("paddle.metric.Auc", "paddle.metric.Auc.update", "paddle.metric.Auc.accumulate", "paddle.metric.Auc.reset",
      "paddle.metric.Auc.name", "paddle.metric.Auc.trapezoid_area")
def auc():
    result = []
    for bins in (4095, 20):
        m = Auc(num_thresholds=bins)
        for _ in range(2):
            p = array(50, 1, low=0, high=1).astype("float32")
            y = (array(50, 1) + p > 0.5).astype("int64")
            m.update(np.concatenate([1 - p, p], 1), y)
            m.update(paddle.to_tensor(np.concatenate([1 - p, p], 1)), paddle.to_tensor(y))
            result.append(float(m.accumulate()))
        m.reset()
        result += [float(m.accumulate()), m.name()]
    return result + [Auc.trapezoid_area(1.0, 3.0, 2.0, 4.0)]


@case("paddle.metric.Metric", "paddle.metric.Metric.compute", "paddle.metric.Metric.update",
      "paddle.metric.Metric.accumulate", "paddle.metric.Metric.reset", "paddle.metric.Metric.name")
def own_metric():
    class Sum(Metric):
        def __init__(self):
            super().__init__()
            self.reset()

        def reset(self):
            self.total = 0.0

        def update(self, *args):
            self.total += float(args[0].sum())

        def accumulate(self):
            return self.total

        def name(self):
            return "sum"

    m = Sum()
    m.update(*m.compute(np.ones(3), 1))
    return [m.accumulate(), m.name(), raised(Metric, TypeError)]


@case("paddle.metric.accuracy")
def accuracy_function():
    pred = paddle.to_tensor(array(8, 5).astype("float32"))
    label = ints(8, 1, high=5)
    return [accuracy(pred, label), accuracy(input=pred, label=label, k=3), accuracy(pred, label.astype("int32"), 2)]
