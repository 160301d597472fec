"""Tensor-parallel layers: their weights are split among the ranks of a model."""
from .... import _core
from ....nn.layer.layers import Layer
from .random import get_rng_state_tracker


def _model_group(group):
    from ..fleet import fleet
    return group if group is not None else fleet.get_hybrid_communicate_group().get_model_parallel_group()


def _share(who, n, group):
    if n % group.nranks:
        raise AssertionError(f"{who}: {n} must be divisible by the {group.nranks} ranks of the model")
    return n // group.nranks


class _Divided(Layer):
    """A layer that knows the model's group and makes weights that are its ranks' own."""

    def _begin(self, mp_group):
        self._group = _model_group(mp_group)
        self.world_size, self.is_mp = self._group.nranks, self._group.nranks > 1
        self._place = {"group": self._group.id, "rank": self._group.rank, "nranks": self._group.nranks}

    def _weight(self, shape, attr, axis, is_bias=False):
        """A parameter of which each rank has another part: its first values differ by rank."""
        tracker = get_rng_state_tracker()
        if self.is_mp and "model_parallel_rng" in tracker.states_:
            with tracker.rng_state():
                made = self.create_parameter(shape=shape, attr=attr, is_bias=is_bias)
        else:
            made = self.create_parameter(shape=shape, attr=attr, is_bias=is_bias)
        made.is_distributed = self.is_mp
        if self.is_mp:
            made.split_axis, made.split_group = axis, self._group.id
        return made


class VocabParallelEmbedding(_Divided):
    """An embedding whose rows are divided; what the ranks find is summed."""

    def __init__(self, num_embeddings, embedding_dim, weight_attr=None, mp_group=None, name=None):
        super().__init__()
        self._begin(mp_group)
        self._size = [num_embeddings, embedding_dim]
        rows = _share("VocabParallelEmbedding", num_embeddings, self._group)
        self.vocab_start_index = max(self._group.rank, 0) * rows
        self.weight = self._weight([rows, embedding_dim], weight_attr, 0)

    def forward(self, x):
        if not self.is_mp:
            return _core.embedding(x, self.weight)
        own = _core.mp_embedding(self.weight, x, start_index=self.vocab_start_index, vocab_size=self._size[0])
        return _core.mp_all_reduce(own, group=self._group.id)


class ColumnParallelLinear(_Divided):
    """A linear layer whose columns are divided; gather_output joins the results."""

    def __init__(self, in_features, out_features, weight_attr=None, has_bias=None, gather_output=True,
                 fuse_matmul_bias=False, mp_group=None, name=None):
        super().__init__()
        self._begin(mp_group)
        self.gather_output = gather_output
        columns = _share("ColumnParallelLinear", out_features, self._group)
        self.weight = self._weight([in_features, columns], weight_attr, 1)
        self.bias = self._weight([columns], None, 0, is_bias=True) if has_bias else None

    def forward(self, x):
        if self.is_mp:
            x = _core.mp_identity(x, group=self._group.id)
        out = _core.linear(x, self.weight, self.bias)
        return _core.mp_concat(out, **self._place) if self.gather_output and self.is_mp else out


class RowParallelLinear(_Divided):
    """A linear layer whose rows are divided; results are summed, then the bias is added."""

    def __init__(self, in_features, out_features, weight_attr=None, has_bias=True, input_is_parallel=False,
                 fuse_matmul_bias=False, mp_group=None, name=None):
        super().__init__()
        self._begin(mp_group)
        self.input_is_parallel = input_is_parallel
        rows = _share("RowParallelLinear", in_features, self._group)
        self.weight = self._weight([rows, out_features], weight_attr, 0)
        self.bias = self.create_parameter(shape=[out_features], attr=None, is_bias=True) if has_bias else None

    def forward(self, x):
        if not self.is_mp:
            return _core.linear(x, self.weight, self.bias)
        own = x if self.input_is_parallel else _core.mp_split(x, **self._place)
        out = _core.mp_all_reduce(_core.matmul(own, self.weight), group=self._group.id)
        return out if self.bias is None else out + self.bias


class ParallelCrossEntropy(_Divided):
    """Cross-entropy of logits whose classes are divided; a loss [N, 1] a row."""

    def __init__(self, mp_group=None, name=None, ignore_index=-100):
        super().__init__()
        self._begin(mp_group)
        self.ignore_index = ignore_index

    def forward(self, input, label):
        if label.ndim < input.ndim:
            label = label.unsqueeze(-1)
        return _core.mp_cross_entropy(input, label, ignore_index=self.ignore_index, **self._place)[1]
