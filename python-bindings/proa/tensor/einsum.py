"""paddle.einsum: Einstein summation as transposes and batched matrix products."""
import functools

from .. import _core
from .._errors import need_attribute
from ..framework.dims import alike, differ, reshaped, stretches
from .manipulation import broadcast_dims

__all__ = ["einsum"]


@functools.lru_cache(maxsize=256)
def _parse(equation, ranks):
    """(the labels of each operand's axes, those of the result), which nobody may change: calls share them."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise AssertionError(f"einsum: {equation!r} names {len(terms)} operands, got {len(ranks)}")
    dots, labels = 0, []
    for term, rank in zip(terms, ranks):
        if any(not c.isalpha() and c != "." for c in term) or term.replace("...", "").count("."):
            raise AssertionError(f"einsum: cannot read {term!r} in {equation!r}")
        named = term.replace("...", "")
        spare = rank - len(named)
        if spare < 0 or (spare and "..." not in term):
            raise AssertionError(f"einsum: {term!r} does not fit a Tensor of {rank} axes")
        dots = max(dots, spare)
        head, _, tail = term.partition("...") if "..." in term else (term, "", "")
        labels.append(list(head) + [-k for k in range(spare, 0, -1)] + list(tail))  # -1 is the last ellipsis axis
    ellipsis = [-k for k in range(dots, 0, -1)]
    if arrow:
        head, has, tail = right.partition("...")
        out = list(head) + (ellipsis if has else []) + list(tail)
    else:
        every = "".join(terms).replace(".", "")
        out = ellipsis + sorted(c for c in set(every) if every.count(c) == 1)
    known = {c for term in labels for c in term}
    if len(set(out)) != len(out) or not set(out) <= known:
        raise AssertionError(f"einsum: the output {right!r} of {equation!r} must name axes of the inputs, each once")
    return labels, out


def _diagonals(t, labels):
    """t with axes that share a label made one."""
    while len(set(labels)) < len(labels):
        c = next(c for c in labels if labels.count(c) > 1)
        i = labels.index(c)
        j = labels.index(c, i + 1)
        n = t.shape[i]
        if differ(t.shape[j], n):
            raise AssertionError(f"einsum: axes {c!r} differ in length: {n} and {t.shape[j]}")
        rest = [k for k in range(len(labels)) if k not in (i, j)]
        t = _core.transpose(t, rest + [i, j])
        shape = t.shape[:-2]
        t = _core.index_select(_core.reshape(t, shape + [n * n]), _core.arange(0, n * n, n + 1, "int64"), len(shape))
        labels = [labels[k] for k in rest] + [c]
    return t, labels


def _summed(t, labels, keep):
    away = [i for i, c in enumerate(labels) if c not in keep]
    return (_core.sum(t, away), [c for c in labels if c in keep]) if away else (t, labels)


def _size(shape):
    out = 1
    for n in shape:
        out *= n
    return out


def _aligned(t, labels, order):
    return t if labels == order else _core.transpose(t, [labels.index(c) for c in order])


def _pair(a, la, b, lb, keep):
    """The product of two operands, summed over the labels that no one else needs."""
    a, la = _summed(a, la, set(lb) | keep)
    b, lb = _summed(b, lb, set(la) | keep)
    na, nb = dict(zip(la, a.shape)), dict(zip(lb, b.shape))
    shared = [c for c in la if c in nb]
    for c in [c for c in shared if c not in keep]:
        if stretches(na[c], nb[c]):
            b = _core.sum(b, [lb.index(c)], None, True)
        elif stretches(nb[c], na[c]):
            a = _core.sum(a, [la.index(c)], None, True)
    na, nb = dict(zip(la, a.shape)), dict(zip(lb, b.shape))
    batch = [c for c in shared if c in keep]
    inner = [c for c in shared if c not in keep]
    only_a, only_b = [c for c in la if c not in nb], [c for c in lb if c not in na]
    a, b = _aligned(a, la, batch + only_a + inner), _aligned(b, lb, batch + inner + only_b)
    sizes = broadcast_dims([na[c] for c in batch], [nb[c] for c in batch])
    k = _size([na[c] for c in inner])
    matrices = len(only_a) == len(inner) == len(only_b) == 1
    if not matrices:
        a = reshaped(a, [na[c] for c in batch] + [_size([na[c] for c in only_a]), k])
        b = reshaped(b, [nb[c] for c in batch] + [k, _size([nb[c] for c in only_b])])
    out = _core.multiply(a, b) if alike(k, 1) else _core.matmul(a, b)
    if not matrices:
        out = reshaped(out, sizes + [na[c] for c in only_a] + [nb[c] for c in only_b])
    return out, batch + only_a + only_b


def einsum(equation, *operands):
    """Sums of products of the operands' elements, as equation says: "ij,jk->ik" is a matrix product.

    >>> x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> paddle.einsum('ij->ji', x).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    >>> paddle.einsum('ij,jk->ik', x, x).tolist()
    [[7.0, 10.0], [15.0, 22.0]]
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not isinstance(equation, str):
        need_attribute("einsum", "replace", "a string", equation=equation)
        raise TypeError(f"einsum: equation must be a str, got {type(equation).__name__}")
    if not operands:
        raise AssertionError("einsum: needs at least one operand")
    labels, out = _parse(equation, tuple([len(t.shape) for t in operands]))
    parts = [_diagonals(t, term) for t, term in zip(operands, labels)]
    t, term = parts[0]
    for i, (other, other_term) in enumerate(parts[1:], 1):
        keep = set(out) | {c for _, later in parts[i + 1:] for c in later}
        t, term = _pair(t, term, other, other_term, keep)
    t, term = _summed(t, term, set(out))
    whole = t is operands[0] and not t.is_symbolic  # as in Paddle, what it makes of one operand is a copy
    t = _aligned(t, term, out)
    return _core.assign(t) if whole and not (term == out and t.is_contiguous()) else t
