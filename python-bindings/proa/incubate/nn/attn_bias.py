"""paddle.incubate.nn.attn_bias: masks of attention that are known by their form, as triangles and blocks of packed sequences."""
import abc
import dataclasses

import numpy as np

from ... import _core

__all__ = ["AttentionBias", "BlockDiagonalCausalMask", "BlockDiagonalCausalWithOffsetPaddedKeysMask", "BlockDiagonalMask",
           "LowerTriangularMask", "LowerTriangularMaskWithTensorBias", "PaddedSeqLenInfo", "SeqLenInfo"]


class AttentionBias(abc.ABC):
    """A mask. materialize(shape, dtype) is the tensor that is added to scores."""

    @abc.abstractmethod
    def materialize(self, shape, dtype="float32"):
        """The mask as a tensor of shape [..., queries, keys]."""


def _triangle(rows, columns, offset=0):
    """−inf where row i meets a column behind i + offset."""
    return np.triu(np.full((rows, columns), -np.inf, "float32"), 1 + offset)


def _tensor(mask, shape, dtype):
    return _core.expand(_core.cast(_core.to_tensor(mask), dtype), list(shape))


class LowerTriangularMask(AttentionBias):
    """Query i sees the keys up to i."""

    def materialize(self, shape, dtype="float32"):
        return _tensor(_triangle(*shape[-2:]), shape, dtype)

    def add_bias(self, bias):
        return LowerTriangularMaskWithTensorBias(bias)


class LowerTriangularMaskWithTensorBias(LowerTriangularMask):
    """The same, with a tensor that is added to scores."""

    def __init__(self, bias):
        self._bias = bias

    def materialize(self, shape, dtype="float32"):
        return super().materialize(shape, dtype) + self._bias


@dataclasses.dataclass
class SeqLenInfo:
    """Starts of packed sequences and the end of the last: seqstart, and seqstart_py as a list."""

    seqstart: _core.Tensor
    max_seqlen: int
    seqstart_py: list

    def intervals(self):
        """(begin, end) of each sequence."""
        return zip(self.seqstart_py[:-1], self.seqstart_py[1:])

    @classmethod
    def from_seqlens(cls, seqlens):
        starts = [0, *np.cumsum(np.asarray(seqlens, "int64")).tolist()]
        return cls(_core.to_tensor(starts, "int32"), max(seqlens, default=-1), starts)

    def split(self, x, batch_sizes=None):
        """x [1, tokens, …] as tensors [batch, length, …]: batch_sizes says how many sequences, of one length, each has."""
        if x.shape[0] != 1 or x.shape[1] != self.seqstart_py[-1]:
            raise AssertionError(f"split: expected [1, {self.seqstart_py[-1]}, ...], got {list(x.shape)}")
        sizes = [1] * (len(self.seqstart_py) - 1) if batch_sizes is None else list(batch_sizes)
        ends = [self.seqstart_py[n] for n in np.cumsum([0, *sizes])]
        return [_core.reshape(x[:, a:b], [size, -1, *x.shape[2:]]) for size, a, b in zip(sizes, ends, ends[1:])]


@dataclasses.dataclass
class PaddedSeqLenInfo(SeqLenInfo):
    """Sequences of the lengths seqlen_py, each in `padding` slots."""

    seqlen: _core.Tensor
    seqlen_py: list

    def intervals(self):
        return ((start, start + n) for start, n in zip(self.seqstart_py, self.seqlen_py))

    @classmethod
    def from_seqlens(cls, seqlens):
        raise NotImplementedError("PaddedSeqLenInfo.from_seqlens: use from_seqlens_padded, which takes the padding")

    @classmethod
    def from_seqlens_padded(cls, seqlens, padding):
        if max(seqlens, default=0) > padding:
            raise AssertionError(f"from_seqlens_padded: lengths must be at most the padding {padding}, got {list(seqlens)}")
        starts = [i * padding for i in range(len(seqlens) + 1)]
        return cls(_core.to_tensor(starts, "int32"), max(seqlens, default=-1), starts, _core.to_tensor(list(seqlens), "int32"),
                   list(seqlens))

    def split(self, x, batch_sizes=None):
        raise NotImplementedError("PaddedSeqLenInfo.split: padded sequences are not packed")


class _Blocks(AttentionBias):
    """Query tokens of a packed sequence see the keys of the same one. offsets(): of the triangle in each block, None: there is none."""

    def offsets(self):
        return [None] * (len(self.q_seqinfo.seqstart_py) - 1)

    def blocks(self):
        """((begin, end) of queries, (begin, end) of keys, offset) of each sequence."""
        return zip(self.q_seqinfo.intervals(), self.k_seqinfo.intervals(), self.offsets())

    def materialize(self, shape, dtype="float32"):
        whole = (self.q_seqinfo.seqstart_py[-1], self.k_seqinfo.seqstart_py[-1])
        if tuple(shape[-2:]) != whole:
            raise AssertionError(f"materialize: the blocks are {whole[0]} queries by {whole[1]} keys, got shape {list(shape)}")
        mask = np.full(whole, -np.inf, "float32")
        for (q0, q1), (k0, k1), offset in self.blocks():
            mask[q0:q1, k0:k1] = 0.0 if offset is None else _triangle(q1 - q0, k1 - k0, offset)
        return _tensor(mask, shape, dtype)


@dataclasses.dataclass
class BlockDiagonalMask(_Blocks):
    """Packed sequences, each over its own keys."""

    q_seqinfo: SeqLenInfo
    k_seqinfo: SeqLenInfo
    _batch_sizes: list | None = None

    @classmethod
    def from_seqlens(cls, q_seqlen, kv_seqlen=None):
        if kv_seqlen is not None and len(q_seqlen) != len(kv_seqlen):
            raise AssertionError(f"from_seqlens: expected as many keys' lengths as queries', got {len(kv_seqlen)} and {len(q_seqlen)}")
        queries = SeqLenInfo.from_seqlens(q_seqlen)
        same = kv_seqlen is None or list(q_seqlen) == list(kv_seqlen)
        return cls(queries, queries if same else SeqLenInfo.from_seqlens(kv_seqlen))

    @classmethod
    def from_tensor_list(cls, tensors):
        """(mask, the tensors packed as one [1, tokens, …]) of tensors [batch, length, …]."""
        mask = cls.from_seqlens(_lengths(tensors))
        mask._batch_sizes = [t.shape[0] for t in tensors]
        return mask, _packed(tensors)

    @classmethod
    def from_tensor_lists_qkv(cls, tensors_q, tensors_k, tensors_v=None):
        """(mask, queries, keys, values or None), each packed."""
        if [t.shape[0] for t in tensors_q] != [t.shape[0] for t in tensors_k]:
            raise AssertionError("from_tensor_lists_qkv: queries and keys must have the same batch sizes")
        mask = cls.from_seqlens(_lengths(tensors_q), _lengths(tensors_k))
        mask._batch_sizes = [t.shape[0] for t in tensors_q]
        return mask, _packed(tensors_q), _packed(tensors_k), None if tensors_v is None else _packed(tensors_v)

    def split_queries(self, tensor):
        return self.q_seqinfo.split(tensor, self._batch_sizes)

    def split_kv(self, tensor):
        return self.k_seqinfo.split(tensor, self._batch_sizes)

    def split(self, tensor):
        if self.q_seqinfo is not self.k_seqinfo:
            raise AssertionError("split: queries and keys differ in length, use split_queries or split_kv")
        return self.split_queries(tensor)

    def make_causal(self):
        return BlockDiagonalCausalMask(self.q_seqinfo, self.k_seqinfo, self._batch_sizes)


def _lengths(tensors):
    return [t.shape[1] for t in tensors for _ in range(t.shape[0])]


def _packed(tensors):
    return _core.concat([_core.reshape(t, [1, -1, *t.shape[2:]]) for t in tensors], 1)


@dataclasses.dataclass
class BlockDiagonalCausalMask(BlockDiagonalMask):
    """Packed sequences whose query i sees the keys up to i."""

    def offsets(self):
        return [0] * (len(self.q_seqinfo.seqstart_py) - 1)


@dataclasses.dataclass
class BlockDiagonalCausalWithOffsetPaddedKeysMask(_Blocks):
    """Packed queries over padded keys: query i of sequence b sees the keys up to i + causal_diagonal[b]."""

    q_seqinfo: SeqLenInfo
    k_seqinfo: PaddedSeqLenInfo
    causal_diagonal: _core.Tensor | None = None

    def offsets(self):
        count = len(self.q_seqinfo.seqstart_py) - 1
        return [0] * count if self.causal_diagonal is None else [int(n) for n in self.causal_diagonal.reshape([-1]).tolist()]

    @classmethod
    def from_seqlens(cls, q_seqlen, kv_padding, kv_seqlen, causal_diagonal=None):
        if len(q_seqlen) != len(kv_seqlen):
            raise AssertionError(f"from_seqlens: expected as many keys' lengths as queries', got {len(kv_seqlen)} and {len(q_seqlen)}")
        return cls(SeqLenInfo.from_seqlens(q_seqlen), PaddedSeqLenInfo.from_seqlens_padded(kv_seqlen, kv_padding), causal_diagonal)
