"""Losses over many classes and chains of tags, as functions that make their parameters."""
import math

from ..._asks import asks
from ... import _core
from ...framework import unique_name
from ...framework.parameter import make_parameter
from ...nn import functional as F

__all__ = ["crf_decoding", "nce"]


def _samples(sampler, custom, batch, count, classes):
    """(ids [batch, count], their probabilities as a function of ids)."""
    shape = [batch, count]
    if sampler == "uniform":
        ids = _core.randint(0, classes, shape, "int64")
        return ids, lambda at: _core.full_like(at, 1.0 / classes, "float32")
    noise = _core.uniform(shape, "float32", 0.0, 1.0)
    if sampler == "log_uniform":
        span = math.log(classes + 1)
        ids = _core.cast(_core.subtract(_core.exp(_core.scale(noise, span)), _core.full([], 1.0, "float32")), "int64")
        ids = _core.minimum(ids, _core.full_like(ids, classes - 1))

        def chance(at):
            at = _core.cast(at, "float32")
            return _core.scale(_core.log(_core.divide(_core.scale(at, 1.0, 2.0), _core.scale(at, 1.0, 1.0))), 1 / span)
        return ids, chance
    if len(custom) != classes:
        raise ValueError(f"nce: custom_dist must have {classes} numbers, got {len(custom)}")
    total, ends = 0.0, []
    for p in custom:
        total += float(p)
        ends.append(total)
    if min(custom) < 0 or abs(total - 1) > 1e-3:
        raise ValueError(f"nce: custom_dist must be probabilities whose sum is 1, got the sum {total:g}")
    passed = _core.greater_equal(_core.unsqueeze(noise, [2]), _core.to_tensor(ends[:-1], dtype="float32"))
    ids = _core.sum(_core.cast(passed, "int64"), [2])
    table = _core.to_tensor([[float(p)] for p in custom], dtype="float32")
    return ids, lambda at: _core.squeeze(_core.embedding(at, table), [2])


@asks("input~f4,f8 label~i8")
def nce(input, label, num_total_classes, sample_weight=None, param_attr=None, bias_attr=None, num_neg_samples=None,
        name=None, sampler="uniform", custom_dist=None, seed=0, is_sparse=False):
    """Noise-contrastive estimation (Gutmann and Hyvärinen, 2010): the mean cost [N, 1] of telling each row's labels from
    num_neg_samples (10) classes drawn by sampler: uniform, log_uniform or custom_dist. The draws are the program's
    (Program.random_seed); seed is accepted."""
    if len(input.shape) != 2:
        raise ValueError(f"The rank of `input` must be 2, but received {len(input.shape)}.")
    if sampler not in ("uniform", "log_uniform", "custom_dist") or sampler == "custom_dist" and custom_dist is None:
        raise ValueError("nce: sampler must be 'uniform', 'log_uniform', or 'custom_dist' with custom_dist, got "
                         f"{sampler!r}")
    owner = name if name is not None else unique_name.generate("nce")
    classes, count = int(num_total_classes), 10 if num_neg_samples is None else int(num_neg_samples)
    weight = make_parameter(owner, param_attr, [classes, input.shape[1]], input.dtype)
    bias = make_parameter(owner, bias_attr, [classes, 1], input.dtype, is_bias=True)
    noise, chance = _samples(sampler, custom_dist, input.shape[0], count, classes)
    ids = _core.concat([label, noise], 1)
    logits = _core.sum(_core.multiply(_core.embedding(ids, weight), _core.unsqueeze(input, [1])), [2])
    if bias is not None:
        logits = _core.add(logits, _core.squeeze(_core.embedding(ids, bias), [2]))
    expected = _core.cast(_core.scale(chance(ids), float(count)), input.dtype)
    model = F.sigmoid(logits)
    both = _core.add(model, expected)
    true = label.shape[1]
    found = _core.log(_core.divide(model[:, :true], both[:, :true]))
    missed = _core.log(_core.divide(expected[:, true:], both[:, true:]))
    cost = _core.add(_core.sum(found, [1], keepdim=True), _core.sum(missed, [1], keepdim=True))
    cost = _core.scale(cost, -1.0 / (count + 1))
    return cost if sample_weight is None else _core.multiply(cost, _core.reshape(sample_weight, [-1, 1]))


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
