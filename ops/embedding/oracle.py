"""Embedding in real Paddle."""
import paddle


def embedding(x, weight, padding_idx=-1, sparse=False):
    return paddle.nn.functional.embedding(x, weight, padding_idx=None if padding_idx == -1 else padding_idx, sparse=sparse)
