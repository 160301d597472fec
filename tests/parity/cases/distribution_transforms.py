"""paddle.distribution's transforms and the distributions that they make."""
import numpy as np
import paddle
import paddle.distribution as D

from parity import case, rand, raised

P = "paddle.distribution."


def both_ways(t, x, det=True):
    """A transform of x, its inverse and the logarithms of their determinants."""
    y = t.forward(x)
    out = [y, t.inverse(y.detach())]
    return out + [t.forward_log_det_jacobian(x), t.inverse_log_det_jacobian(y.detach())] if det else out


def shapes(t, shape):
    return list(t.forward_shape(shape)), list(t.inverse_shape(t.forward_shape(shape)))


@case(P + "AffineTransform", P + "AffineTransform.loc", P + "AffineTransform.scale", P + "ExpTransform",
      P + "SigmoidTransform", P + "TanhTransform", P + "PowerTransform", P + "PowerTransform.power", tol=1e-6)
def of_numbers():
    x, low, scale = rand(2, 3, low=-1.0, high=1.0), rand(3), rand(1, low=0.5, high=2.0)
    affine = D.AffineTransform(low, scale)
    power = D.PowerTransform(paddle.to_tensor(2.0))
    positive = rand(2, 3, low=0.5, high=2.0)
    return ([both_ways(t, x) for t in (affine, D.ExpTransform(), D.SigmoidTransform(), D.TanhTransform())],
            both_ways(power, positive), affine.loc, affine.scale, power.power, shapes(affine, (2, 1)), shapes(power, (2,)),
            D.ExpTransform()(x), shapes(D.TanhTransform(), (3,)))


@case(P + "AbsTransform", P + "SoftmaxTransform", P + "StickBreakingTransform", P + "ReshapeTransform",
      P + "ReshapeTransform.in_event_shape", P + "ReshapeTransform.out_event_shape", tol=1e-6)
def of_events():
    x = rand(2, 3)
    softmax, stick, reshape = D.SoftmaxTransform(), D.StickBreakingTransform(), D.ReshapeTransform((3,), (3, 1))
    return (D.AbsTransform().forward(x), D.AbsTransform().inverse(x), D.AbsTransform().inverse_log_det_jacobian(x),
            both_ways(softmax, x, False), both_ways(stick, x), both_ways(reshape, x), shapes(stick, (2, 3)),
            shapes(reshape, (2, 3)), shapes(softmax, (2, 3)), list(reshape.in_event_shape), list(reshape.out_event_shape),
            raised(lambda: softmax.forward_log_det_jacobian(x)), raised(lambda: D.ReshapeTransform((2,), (3,))),
            raised(lambda: reshape.forward_shape((2, 4))), raised(lambda: softmax.forward(paddle.to_tensor(1.0))))


@case(P + "ChainTransform", P + "IndependentTransform", P + "StackTransform", P + "StackTransform.axis",
      P + "StackTransform.transforms", P + "Transform", P + "Transform.forward", P + "Transform.inverse",
      P + "Transform.forward_log_det_jacobian", P + "Transform.inverse_log_det_jacobian", P + "Transform.forward_shape",
      P + "Transform.inverse_shape", tol=1e-5)  # atanh near 1 magnifies roundings
def of_transforms():
    x = rand(2, 3, low=-1.0, high=1.0)
    affine = D.AffineTransform(paddle.to_tensor(1.0), paddle.to_tensor(2.0))
    chain = D.ChainTransform([affine, D.TanhTransform()])
    events = D.ChainTransform([affine, D.StickBreakingTransform()])
    stack = D.StackTransform([D.ExpTransform(), D.SigmoidTransform(), D.TanhTransform()], 1)
    independent = D.IndependentTransform(D.ExpTransform(), 1)
    return (both_ways(chain, x), both_ways(events, x), both_ways(stack, x), both_ways(independent, x), stack.axis,
            len(stack.transforms), list(chain.forward_shape((2, 3))), shapes(independent, (2, 3)),
            isinstance(affine(D.ExpTransform()), D.ChainTransform), isinstance(affine, D.Transform),
            raised(lambda: D.ChainTransform([1])), raised(lambda: stack.forward(x.t())),
            raised(lambda: D.IndependentTransform(affine, 0)), raised(lambda: D.Transform().forward(x)),
            raised(lambda: affine.forward(1.0)), raised(lambda: affine.forward_shape(3)))


@case(P + "TransformedDistribution", P + "TransformedDistribution.log_prob", P + "TransformedDistribution.sample",
      P + "TransformedDistribution.rsample")
def transformed():
    base = D.Normal(rand(3), rand(3, low=0.5, high=2.0))
    value = rand(2, 3, low=0.1, high=0.9)
    affine = D.AffineTransform(paddle.to_tensor(0.5), paddle.to_tensor(2.0))
    exp, chained = D.TransformedDistribution(base, [D.ExpTransform()]), D.TransformedDistribution(base, [affine, D.SigmoidTransform()])
    called, plain = affine(base), D.TransformedDistribution(base, [])
    return (exp.log_prob(value), chained.log_prob(value), called.log_prob(value), exp.prob(value), plain.log_prob(value),
            exp.sample([4]).shape, exp.rsample((2,)).shape, [list(d.batch_shape) for d in (exp, chained, called, plain)],
            [list(d.event_shape) for d in (exp, chained, called, plain)],
            raised(lambda: D.TransformedDistribution(1, [])), raised(lambda: D.TransformedDistribution(base, [1])))


@case(P + "TransformedDistribution", grad=False)
def transformed_moments():
    base = D.Normal(np.zeros(2, "float32"), np.ones(2, "float32"))
    made = D.TransformedDistribution(base, [D.AffineTransform(paddle.to_tensor(1.0), paddle.to_tensor(3.0))])
    drawn = made.sample([4000]).numpy()
    return bool(abs(drawn.mean() - 1) < 0.2), bool(abs(drawn.std() - 3) < 0.2)
