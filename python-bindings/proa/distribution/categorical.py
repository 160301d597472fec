"""The categorical distribution (one of n categories) and the multinomial distribution (counts of several draws)."""
from .. import _core
from .._asks import asks
from .._errors import need_attribute, of_kind
from ..nn.functional import one_hot, softmax
from .distribution import Distribution, drawn_shape, is_tensor, name_of, need_elements, need_value, tensors, uniform


def _pick(probabilities, shape):
    """Category numbers, shape + batch: where a uniform draw falls among the cumulated probabilities."""
    batch = list(probabilities.shape[:-1])
    edges = probabilities.cumsum(-1)
    drawn = uniform(list(shape) + batch + [1], str(edges.dtype).rpartition(".")[2])
    beyond = (drawn * edges[..., -1:] >= edges).astype("int64").sum(-1)
    return beyond.clip(max=probabilities.shape[-1] - 1)


class Categorical(Distribution):
    """One of n categories. As in Paddle, samples, entropy and divergence take softmax(logits) for their probabilities,
    probs and log_prob take logits / sum(logits)."""

    def __init__(self, logits, name=None):
        self.name = name or "Categorical"
        if isinstance(logits, int):
            raise TypeError(f"Categorical: logits must be a float, a list, an array or a Tensor, got {type(logits).__name__}")
        self.logits, self.dtype, _ = tensors("Categorical", logits)
        need_elements("Categorical", "logits", self.logits)
        self._prob = self.logits / self.logits.sum(-1, keepdim=True)
        super().__init__(self.logits.shape[:-1])

    def sample(self, shape):
        return _pick(softmax(self.logits, -1), drawn_shape("Categorical.sample", shape))

    def _log_softmax(self):
        shifted = self.logits - self.logits.max(-1, keepdim=True)
        return shifted - shifted.exp().sum(-1, keepdim=True).log()

    def kl_divergence(self, other):
        own = self._log_softmax()
        return (own.exp() * (own - other._log_softmax())).sum(-1, keepdim=True)

    def entropy(self):
        own = self._log_softmax()
        return -(own.exp() * own).sum(-1)

    @asks("value.shape eager:value:Tensor!InvalidArgument")
    def probs(self, value):
        """The probability of each category number of value, whole numbers of any dtype."""
        need_elements("Categorical.probs", "value", value)
        if name_of(value.dtype) not in ("int32", "int64", "complex64", "complex128"):
            value = value.astype("int64")
        dims = len(self._prob.shape)
        if dims == 1:
            return _core.gather(self._prob, value.reshape([-1]), 0).reshape(value.shape)
        if len(value.shape) == 1:
            value = value.reshape([1] * (dims - 1) + [-1])
        return self._prob.take_along_axis(value, -1)

    @asks("value.shape eager:value:Tensor!InvalidArgument")
    def log_prob(self, value):
        return self.probs(value).log()


class Multinomial(Distribution):
    """Counts of each category in total_count draws with these probabilities."""

    def __init__(self, total_count, probs):
        if not isinstance(total_count, int) or total_count < 1:
            raise ValueError(f"Multinomial: total_count must be an int above 0, got {total_count!r}")
        if not is_tensor(probs) or len(probs.shape) < 1:
            need_attribute("Multinomial", "dim", probs=probs)
            raise ValueError("Multinomial: probs must be a Tensor of at least one dim")
        need_elements("Multinomial", "probs", probs)
        self.probs = probs / probs.sum(-1, keepdim=True)
        self.total_count = total_count
        super().__init__(probs.shape[:-1], probs.shape[-1:])

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def prob(self, value):
        return self.log_prob(value).exp()

    def log_prob(self, value):
        need_value("Multinomial.log_prob", value)
        if value.dtype == _core.bool:
            raise of_kind("Multinomial.log_prob: value must hold counts, got bool")
        value = value.astype(self.probs.dtype) if value.dtype != self.probs.dtype else value
        log_probs = self.probs.log()
        # 0 · log 0 counts as 0
        terms = _core.where((value == 0) & (log_probs == float("-inf")), log_probs * 0, value * log_probs)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + terms.sum(-1)

    def sample(self, shape=()):
        if is_tensor(shape):
            raise TypeError("Multinomial.sample: shape must be a list or tuple of ints, got a Tensor")
        drawn = _pick(self.probs, [self.total_count] + drawn_shape("Multinomial.sample", shape))
        return one_hot(drawn, self.probs.shape[-1]).astype(self.probs.dtype).sum(0)

    def entropy(self):
        n = _core.to_tensor(float(self.total_count)).astype(self.probs.dtype)
        counts = _core.to_tensor([float(k) for k in range(self.total_count + 1)]).astype(self.probs.dtype)
        counts = counts.reshape([-1] + [1] * len(self.probs.shape))
        p = self.probs.unsqueeze(0)
        log_choose = (n + 1).lgamma() - (counts + 1).lgamma() - (n - counts + 1).lgamma()
        binomial = (log_choose + counts * p.log() + (n - counts) * (1 - p).log()).exp()
        own = -(self.probs * self.probs.log()).sum(-1)
        return n * own - (n + 1).lgamma() + ((binomial * (counts + 1).lgamma())[1:].sum([0, -1]))
