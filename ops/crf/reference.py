"""NumPy references of a linear-chain CRF: crf_decoding, linear_chain_crf and its gradient. They enumerate all tag
sequences. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as
NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None: not
compared)."""
import itertools

import numpy as np


def _score(x, w, path):
    steps = sum(x[k, t] for k, t in enumerate(path))
    return w[0, path[0]] + w[1, path[-1]] + steps + sum(w[2 + a, b] for a, b in zip(path, path[1:]))


def _best(x, w):
    if not len(x):
        return np.zeros(0, np.int64)
    return np.array(max(itertools.product(range(x.shape[1]), repeat=len(x)), key=lambda path: _score(x, w, path)))


def crf_decoding(emission, transition, label=None, length=None, offsets=None):
    if length is not None:
        path = np.zeros(emission.shape[:2], np.int64)
        for i, n in enumerate(length.ravel()):
            path[i, :n] = _best(emission[i, :n], transition)
    else:
        path = np.concatenate([_best(emission[a:b], transition) for a, b in zip(offsets, offsets[1:])])[:, None]
    return path if label is None else (path == label.reshape(path.shape)).astype(np.int64)


def viterbi_decode(potentials, transition, length, include_bos_eos_tag=True):
    ends = (transition[-1], transition[-2]) if include_bos_eos_tag else (np.zeros(len(transition)), ) * 2
    path, scores = np.zeros((len(potentials), length.max()), np.int64), []
    for i, n in enumerate(length):
        x, end = potentials[i, :max(n, 1)], ends[1] if n else np.zeros(len(transition))
        w = np.concatenate([[ends[0], end], transition])
        best = _best(x, w)
        scores.append(_score(x, w, best))
        path[i, :n] = best[:n]
    return np.array(scores), path


def _chains(emission, length, offsets):
    """For each sequence, its slice of the rows of emission (padded sequences flattened)."""
    if length is None:
        return [slice(a, b) for a, b in zip(offsets, offsets[1:])]
    return [slice(i * emission.shape[1], i * emission.shape[1] + int(n)) for i, n in enumerate(length.ravel())]


def linear_chain_crf(emission, transition, label, length=None, offsets=None):
    tags = emission.shape[-1]
    x, tag, w = emission.reshape(-1, tags).astype(np.float64), label.ravel(), transition.astype(np.float64)
    alpha, exps, costs = np.zeros_like(x), np.zeros_like(x), []
    for part in _chains(emission, length, offsets):
        row, path = x[part], tag[part]
        paths = [p for p in itertools.product(range(tags), repeat=len(row)) if p]
        total = np.log(sum(np.exp(_score(row, w, p)) for p in paths)) if paths else 0.0
        costs.append(total - (_score(row, w, path) if paths else 0.0))
        exps[part] = np.exp(row - row.max(1, keepdims=True, initial=-np.inf))
        for k in range(len(row)):
            before = np.exp(w[0]) if k == 0 else alpha[part][k - 1] @ np.exp(w[2:])
            alpha[part][k] = before * exps[part][k] / (before * exps[part][k]).sum()
    return (alpha.reshape(emission.shape), exps.reshape(emission.shape), np.exp(w), np.array(costs)[:, None])


def linear_chain_crf_grad(alpha, emission_exps, transition_exps, label, length=None, offsets=None, d_log_likelihood=None):
    """The gradient from the probabilities of all tag sequences."""
    tags = alpha.shape[-1]
    xe, tag = emission_exps.reshape(-1, tags).astype(np.float64), label.ravel()
    we, dx, dw = transition_exps.astype(np.float64), np.zeros((len(tag), tags)), np.zeros(transition_exps.shape)
    with np.errstate(divide="ignore"):
        x, w = np.log(xe), np.log(we)
    for part, d in zip(_chains(alpha, length, offsets), d_log_likelihood.ravel()):
        paths = [p for p in itertools.product(range(tags), repeat=part.stop - part.start) if p]
        chance = np.exp([_score(x[part], w, p) for p in paths])
        for p, share in [*zip(paths, chance / chance.sum()), (tuple(tag[part]), -1.0)] if paths else ():
            dw[0, p[0]] += d * share
            dw[1, p[-1]] += d * share
            for k, t in enumerate(p):
                dx[part][k, t] += d * share
            for a, b in zip(p, p[1:]):
                dw[2 + a, b] += d * share
    return dx.reshape(alpha.shape), dw
