"""fluid.lod_tensor: creates LoD tensors: rows of several sequences, with their offsets."""
import numpy

from ..static.scope import ScopeTensor

__all__ = ["create_lod_tensor", "create_random_int_lodtensor"]


def create_lod_tensor(data, recursive_seq_lens, place):
    """A tensor whose rows form the sequences of the given lengths, one list a level. data: an array, a tensor, or a list of
    sequences of numbers."""
    if isinstance(data, ScopeTensor):
        return create_lod_tensor(numpy.array(data), recursive_seq_lens, place)
    if isinstance(data, list):
        lengths = [len(sequence) for sequence in data]
        if [lengths] != recursive_seq_lens:
            raise AssertionError("data and recursive_seq_lens do not match")
        data = numpy.concatenate([numpy.asarray(s) for s in data]).reshape(-1, 1).astype("int64")
    if not isinstance(data, numpy.ndarray):
        raise TypeError("data should be either a LoDTensor, a Numpy array or a list")
    made = ScopeTensor()
    made.set(data, place)
    made.set_recursive_sequence_lengths(recursive_seq_lens)
    if not made.has_valid_recursive_sequence_lengths():
        raise AssertionError("the provided lod info is invalid")
    return made


def create_random_int_lodtensor(recursive_seq_lens, base_shape, place, low, high):
    """Random whole numbers in [low, high]: as many rows as the innermost lengths add up to, of shape base_shape."""
    if not isinstance(base_shape, list):
        raise AssertionError("base_shape should be a list")
    shape = [sum(recursive_seq_lens[-1]), *base_shape]
    return create_lod_tensor(numpy.random.randint(low, high + 1, shape).astype("int64"), recursive_seq_lens, place)
