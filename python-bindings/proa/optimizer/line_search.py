"""A step length along a direction that satisfies the strong Wolfe conditions, by bracketing and cubic interpolation
(Nocedal and Wright, Numerical Optimization, 3.5). Numbers are Python's; uses nothing of Proa."""
import math


def cubic_minimum(x1, f1, g1, x2, f2, g2, bounds=None):
    """The minimum between bounds of the cubic through two values and slopes; their middle where it has none."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2) if x1 != x2 else math.nan
    square = d1 * d1 - g1 * g2
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    if x1 > x2:
        x1, g1, x2, g2 = x2, g2, x1, g1
    bottom = g2 - g1 + 2 * d2
    at = x2 - (x2 - x1) * ((g2 + d2 - d1) / bottom) if bottom else math.nan
    return min(max(at, low), high) if at == at else (low + high) / 2


class Point:
    """A step length with the loss there, the gradient, and the slope along the direction."""

    def __init__(self, step, loss, gradient, slope):
        self.step, self.loss, self.gradient, self.slope = step, loss, gradient, slope


def _cubic(a, b, bounds=None):
    return cubic_minimum(a.step, a.loss, a.slope, b.step, b.loss, b.slope, bounds)


def _bracket(evaluate, start, step, c1, c2, most):
    """Two points with an acceptable one between them, or one that is acceptable; and the evaluations made."""
    before, now, tries = start, evaluate(step), 0
    while tries < most:
        if now.loss > start.loss + c1 * now.step * start.slope or (tries > 1 and now.loss >= before.loss):
            return [before, now], tries
        if abs(now.slope) <= -c2 * start.slope:
            return [now], tries
        if now.slope >= 0:
            return [before, now], tries
        bounds = (now.step + 0.01 * (now.step - before.step), now.step * 10)
        before, now = now, evaluate(_cubic(before, now, bounds))
        tries += 1
    return [start, now], tries


def _inside(low, high, stuck):
    """The next step to try between two points: the cubic's minimum, but not twice within a tenth of an end."""
    left, right = sorted((low.step, high.step))
    at, near = _cubic(low, high), 0.1 * (right - left)
    if min(right - at, at - left) >= near:
        return at, False
    if stuck or at >= right or at <= left:
        return (right - near if abs(at - right) < abs(at - left) else left + near), False
    return at, True


def strong_wolfe(evaluate, start, step, size, c1=1e-4, c2=0.9, tolerance=1e-9, most=25):
    """The Point that is taken, and how many evaluations that took. evaluate(step) gives a Point; start is the one at
    zero, size the largest element of the direction."""
    points, tries = _bracket(evaluate, start, step, c1, c2, most)
    calls = tries + 1
    if len(points) == 1 or tries >= most:
        return min(points, key=lambda p: p.loss), calls
    low, high = points if points[0].loss <= points[1].loss else points[::-1]
    stuck = False
    while tries < most and abs(high.step - low.step) * size >= tolerance:
        at, stuck = _inside(low, high, stuck)
        now = evaluate(at)
        tries, calls = tries + 1, calls + 1
        if now.loss > start.loss + c1 * at * start.slope or now.loss >= low.loss:
            high = now
            if high.loss < low.loss:
                low, high = high, low
            continue
        done = abs(now.slope) <= -c2 * start.slope
        if not done and now.slope * (high.step - low.step) >= 0:
            high = low
        low = now
        if done:
            break
    return low, calls
