"""paddle.distribution.kl_divergence: calls the function registered for the two classes, or else the first one's own
method."""
from .distribution import Distribution, Independent
from .uniform import Uniform

_rules = {}


def register_kl(cls_p, cls_q):
    """Decorator: the function computes KL(p ‖ q) for these classes and those derived from them."""
    for cls in (cls_p, cls_q):
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise TypeError("register_kl: expected two classes derived from Distribution")

    def mark(f):
        _rules[cls_p, cls_q] = f
        return f
    return mark


def _rule(p, q):
    """The rule nearest to the classes of p and q."""
    best, nearest = None, None
    for (a, b), rule in _rules.items():
        if isinstance(p, a) and isinstance(q, b):
            far = type(p).__mro__.index(a), type(q).__mro__.index(b)
            if best is None or far < best:
                best, nearest = far, rule
    return nearest


def kl_divergence(p, q):
    """KL(p ‖ q). NotImplementedError where no rule is known."""
    rule = _rule(p, q)
    if rule is not None:
        return rule(p, q)
    if type(p) is type(q) and type(p).kl_divergence is not Distribution.kl_divergence:
        return p.kl_divergence(q)
    raise NotImplementedError(f"kl_divergence: no rule for {type(p).__name__} and {type(q).__name__}; "
                              "register one with register_kl")


@register_kl(Uniform, Uniform)
def _uniforms(p, q):
    return ((q.high - q.low) / (p.high - p.low)).log()


@register_kl(Independent, Independent)
def _independents(p, q):
    if p._reinterpreted_batch_rank != q._reinterpreted_batch_rank:
        raise NotImplementedError("kl_divergence: the two Independent take different numbers of dims")
    return p._summed(kl_divergence(p._base, q._base))
