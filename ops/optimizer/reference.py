"""NumPy references of the optimizer steps (sgd_step, adam_step, …): each returns the lists of updated parameters,
states and masters. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields,
tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None:
not compared)."""
import numpy as np


def _skipped(skip_update):
    return skip_update is not None and bool(np.asarray(skip_update).reshape(-1)[0])


def _each(params, grads, masters, states, rule, skip_update=None):
    """Runs rule(p, g, *states) -> (p, *states) for each parameter, on the master if there is one; returns the lists params,
    states… and masters."""
    if _skipped(skip_update):
        return (params, *states, list(masters))
    new = [[] for _ in states]
    out, new_masters = [], []
    for i, (param, grad) in enumerate(zip(params, grads)):
        wide = np.float64 if param.dtype == np.float64 else np.float32
        truth = masters[i] if masters else param
        values = rule(i, truth.astype(wide), grad.astype(wide), *[s[i].astype(wide) for s in states])
        out.append(values[0].astype(param.dtype))
        if masters:
            new_masters.append(values[0].astype(np.float32))
        for k, s in enumerate(states):
            new[k].append(values[k + 1].astype(s[i].dtype))
    return (out, *new, new_masters)


def sgd_step(params, grads, learning_rate, masters=(), skip_update=None):
    lr = float(learning_rate.reshape(-1)[0])
    return _each(params, grads, masters, [], lambda i, p, g: (p - lr * g,), skip_update)


def momentum_step(params, grads, learning_rate, velocities, masters=(), skip_update=None, mu=0.9, use_nesterov=False, weight_decay=0.0,
                  rescale_grad=1.0):
    lr = float(learning_rate.reshape(-1)[0])

    def rule(i, p, g, v):
        g = rescale_grad * g + weight_decay * p
        v = mu * v + g
        return (p - lr * (g + mu * v) if use_nesterov else p - lr * v), v
    return _each(params, grads, masters, [velocities], rule, skip_update)


def _adam(params, grads, lr, moments1, moments2, beta1_pows, beta2_pows, masters, skip_update, beta1, beta2, epsilon,
          keep):
    if _skipped(skip_update):
        return params, moments1, moments2, beta1_pows, beta2_pows, list(masters)

    def rule(i, p, g, m, v):
        p1, p2 = (float(x[i].reshape(-1)[0]) for x in (beta1_pows, beta2_pows))
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        root = np.sqrt(1 - p2)
        return p * keep - lr * root / (1 - p1) * (m / (np.sqrt(v) + epsilon * root)), m, v
    p, m, v, w = _each(params, grads, masters, [moments1, moments2], rule)
    return p, m, v, [x * beta1 for x in beta1_pows], [x * beta2 for x in beta2_pows], w


def adam_step(params, grads, learning_rate, moments1, moments2, beta1_pows, beta2_pows, masters=(), skip_update=None,
              beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_mode=False):
    lr = float(learning_rate.reshape(-1)[0])
    return _adam(params, grads, lr, moments1, moments2, beta1_pows, beta2_pows, masters, skip_update, beta1, beta2,
                 epsilon, 1)


def adamw_step(params, grads, learning_rate, moments1, moments2, beta1_pows, beta2_pows, masters=(), skip_update=None,
               beta1=0.9, beta2=0.999, epsilon=1e-8, lr_ratio=1.0, coeff=0.01, with_decay=True, lazy_mode=False):
    lr = float(learning_rate.reshape(-1)[0]) * lr_ratio
    return _adam(params, grads, lr, moments1, moments2, beta1_pows, beta2_pows, masters, skip_update, beta1, beta2,
                 epsilon, 1 - lr * coeff if with_decay else 1)


def adagrad_step(params, grads, learning_rate, moments, masters=(), skip_update=None, epsilon=1e-6):
    lr = float(learning_rate.reshape(-1)[0])

    def rule(i, p, g, m):
        m = m + g * g
        return p - lr * g / (np.sqrt(m) + epsilon), m
    return _each(params, grads, masters, [moments], rule, skip_update)


def rmsprop_step(params, grads, learning_rate, mean_squares, mean_grads, moments, masters=(), skip_update=None, rho=0.95, epsilon=1e-10,
                 momentum=0.0, centered=False):
    lr = float(learning_rate.reshape(-1)[0])

    def rule(i, p, g, s, m, a=None):
        s = rho * s + (1 - rho) * g * g
        a = None if a is None else rho * a + (1 - rho) * g
        m = momentum * m + lr * g / np.sqrt(s - (0 if a is None else a * a) + epsilon)
        return (p - m, s, m) if a is None else (p - m, s, m, a)
    if centered:
        p, s, m, a, w = _each(params, grads, masters, [mean_squares, moments, mean_grads], rule, skip_update)
        return p, s, a, m, w
    p, s, m, w = _each(params, grads, masters, [mean_squares, moments], rule, skip_update)
    return p, s, list(mean_grads), m, w


def adadelta_step(params, grads, learning_rate, avg_squared_grads, avg_squared_updates, masters=(), skip_update=None, rho=0.95,
                  epsilon=1e-6):
    lr = float(learning_rate.reshape(-1)[0])

    def rule(i, p, g, s, u):
        s = rho * s + (1 - rho) * g * g
        d = np.sqrt((u + epsilon) / (s + epsilon)) * g
        return p - lr * d, s, rho * u + (1 - rho) * d * d
    return _each(params, grads, masters, [avg_squared_grads, avg_squared_updates], rule, skip_update)


def adamax_step(params, grads, learning_rate, moments, inf_norms, beta1_pows, masters=(), skip_update=None, beta1=0.9, beta2=0.999,
                epsilon=1e-8):
    lr = float(learning_rate.reshape(-1)[0])

    def rule(i, p, g, m, n):
        m = beta1 * m + (1 - beta1) * g
        n = np.maximum(np.abs(g), beta2 * n + epsilon)
        return p - lr / (1 - float(beta1_pows[i].reshape(-1)[0])) * m / n, m, n
    p, m, n, w = _each(params, grads, masters, [moments, inf_norms], rule, skip_update)
    return p, m, n, [x if _skipped(skip_update) else x * beta1 for x in beta1_pows], w


def lamb_step(params, grads, learning_rate, moments1, moments2, beta1_pows, beta2_pows, masters=(), skip_update=None,
              weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6, always_adapt=False, groups=()):
    lr = float(learning_rate.reshape(-1)[0])

    def rule(i, p, g, m, v):
        p1, p2 = (float(x[i].reshape(-1)[0]) for x in (beta1_pows, beta2_pows))
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        r = m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon) + weight_decay * p
        a, b = np.linalg.norm(p.ravel()), np.linalg.norm(r.ravel())
        ratio = a / b if (weight_decay > 0 or always_adapt) and a > 0 and b > 0 else 1
        return p - lr * ratio * r, m, v
    p, m, v, w = _each(params, grads, masters, [moments1, moments2], rule)
    return p, m, v, [x * beta1 for x in beta1_pows], [x * beta2 for x in beta2_pows], w
