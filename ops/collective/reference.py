"""NumPy references of the collectives (all_reduce, all_gather, …) and of tensor-parallel layers (mp_embedding, …) in
a group of one rank; tests/ranks runs several ranks. One function per op, named as the op: tests/ops/test_ops.py
calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns,
in the op table's order (None: not compared)."""
import numpy as np


def all_reduce(x, op="SUM", group=0):
    return x


def reduce_to(x, dst=0, op="SUM", group=0):
    return x


def broadcast(x, src=0, group=0):
    return x


def all_gather(x, group=0, nranks=0):
    return x


def reduce_scatter(x, op="SUM", group=0, nranks=0):
    return x


def scatter_from(x, src=0, group=0, nranks=0):
    return x


def all_to_all(x, group=0):
    return x


def global_scatter(x, local_count, global_count, group=0):
    return x


def global_gather(x, local_count, global_count, group=0):
    return x


def barrier(x, group=0):
    return x


def gen_ring_id(endpoint, other_endpoints, rank=0, group=0):
    every = other_endpoints.split(",")
    every.insert(rank, endpoint)
    return np.frombuffer(",".join(every).encode(), np.uint8)


def init_ring(id=None, nranks=0, rank=0, group=0, endpoints=""):
    return np.zeros(0, np.uint8)


def mp_all_reduce(x, group=0):
    return x


def mp_identity(x, group=0):
    return x


def mp_concat(x, group=0, rank=-1, nranks=0):
    return x


def mp_split(x, group=0, rank=-1, nranks=0):
    return x


def _inside(weight, x, start_index):
    x = np.asarray(x, np.int64) - start_index
    return x, (x >= 0) & (x < len(weight))


def mp_embedding(weight, x, start_index=0, vocab_size=-1):
    x, inside = _inside(weight, x, start_index)
    return np.where(inside[..., None], weight[np.where(inside, x, 0)], 0).astype(weight.dtype)


def mp_embedding_grad(weight, x, d_out, start_index=0, vocab_size=-1):
    x, inside = _inside(weight, x, start_index)
    d = np.zeros(weight.shape, weight.dtype)
    np.add.at(d, x[inside], d_out[inside])
    return d


def mp_cross_entropy(logits, label, ignore_index=-100, group=0, rank=-1, nranks=0):
    label = np.asarray(label, np.int64).reshape(logits.shape[:-1] + (1,))
    e = np.exp(logits - logits.max(-1, keepdims=True)) if logits.size else logits
    softmax = e / e.sum(-1, keepdims=True)
    picked = np.take_along_axis(softmax, np.where(label == ignore_index, 0, label), -1)
    return softmax, np.where(label == ignore_index, 0, -np.log(picked))


def mp_cross_entropy_grad(softmax, label, d_loss, ignore_index=-100, group=0, rank=-1, nranks=0):
    label = np.asarray(label, np.int64).reshape(softmax.shape[:-1] + (1,))
    one_hot = np.arange(softmax.shape[-1]) == label
    return (softmax - one_hot) * np.where(label == ignore_index, 0, d_loss)
