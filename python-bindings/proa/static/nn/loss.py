"""Losses over many classes and chains of tags, as functions that make their parameters."""
from ..._asks import asks
from ... import _core
from ...framework import unique_name
from ...framework.parameter import make_parameter

__all__ = ["crf_decoding", "nce"]


def alias_table(custom, classes):
    """(chance to keep, other class) of each class, by which a uniform draw has the distribution `custom` (Walker, 1977)."""
    if len(custom) != classes:
        raise ValueError(f"nce: custom_dist must have {classes} numbers, got {len(custom)}")
    if min(custom) < 0 or abs(sum(map(float, custom)) - 1) > 1e-3:
        raise ValueError(f"nce: custom_dist must be probabilities whose sum is 1, got the sum {sum(map(float, custom)):g}")
    keep, other = [1.0] * classes, [-1] * classes
    left = [float(p) * classes for p in custom]
    small, large = ([i for i in range(classes) if (left[i] < 1) == is_small] for is_small in (True, False))
    while small and large:
        low, high = small.pop(), large[-1]
        keep[low], other[low] = left[low], high
        left[high] -= 1 - left[low]
        if left[high] < 1:
            small.append(large.pop())
    return keep, other


@asks("input~f4,f8 label~i8")
def nce(input, label, num_total_classes, sample_weight=None, param_attr=None, bias_attr=None, num_neg_samples=None,
        name=None, sampler="uniform", custom_dist=None, seed=0, is_sparse=False):
    """Noise-contrastive estimation (Gutmann and Hyvärinen, 2010): the mean cost [N, 1] of telling each row's labels from
    num_neg_samples (10) classes drawn by sampler: uniform, log_uniform or custom_dist. Without a seed the draws are the
    program's (Program.random_seed)."""
    if len(input.shape) != 2:
        raise ValueError(f"The rank of `input` must be 2, but received {len(input.shape)}.")
    if sampler not in ("uniform", "log_uniform", "custom_dist") or sampler == "custom_dist" and custom_dist is None:
        raise ValueError("nce: sampler must be 'uniform', 'log_uniform', or 'custom_dist' with custom_dist, got "
                         f"{sampler!r}")
    owner = name if name is not None else unique_name.generate("nce")
    classes, count = int(num_total_classes), 10 if num_neg_samples is None else int(num_neg_samples)
    weight = make_parameter(owner, param_attr, [classes, input.shape[1]], input.dtype)
    bias = make_parameter(owner, bias_attr, [classes, 1], input.dtype, is_bias=True)
    tables = None, None, None
    if sampler == "custom_dist":
        keep, other = alias_table(custom_dist, classes)
        tables = (_core.to_tensor([float(p) for p in custom_dist], dtype="float32"), _core.to_tensor(other, dtype="int32"),
                  _core.to_tensor(keep, dtype="float32"))
    cost, _, _ = _core.nce(input, label, weight, bias, sample_weight, *tables, classes, [], count,
                           ("uniform", "log_uniform", "custom_dist").index(sampler), int(seed))
    return _core.scale(cost, 1.0 / (count + 1))


def crf_decoding(input, param_attr, label=None, length=None):
    """The most probable tags of sequences: input [batch, time, tags] with length, or [rows, tags] whose rows form
    sequences. The transitions [tags + 2, tags] are the parameter that param_attr names: weights of beginning and of ending
    with a tag, then from tag to tag. With label: 1 where the tag equals it, else 0."""
    tags = input.shape[-1]
    transition = make_parameter(unique_name.generate("crf_decoding"), param_attr, [tags + 2, tags], input.dtype)
    if length is not None:
        return _core.crf_decoding(input, transition, label, length, None)
    levels = _core.variable_lod(input)
    if not levels:
        raise ValueError("crf_decoding: input carries no sequences: give length, or an input from "
                         "static.data(..., lod_level=1)")
    path = _core.crf_decoding(input, transition, label, None, levels[-1])
    _core.set_variable_lod(path, levels)
    return path
