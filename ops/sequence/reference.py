"""NumPy references of ctc_loss and hsigmoid_loss, which list all paths where there are few, of their gradients, and
of gather_tree and sequence_mask. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's
fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's
order (None: not compared)."""
import itertools

import numpy as np


def _log_softmax(x):
    x = x.astype(np.float64)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def ctc_loss(logits, label, logits_length, label_length, blank=0, norm_by_times=False):
    loss = np.zeros((logits.shape[1], 1), logits.dtype)
    gradient = np.zeros_like(logits)
    for n in range(logits.shape[1]):
        T, want = int(logits_length[n]), [int(v) for v in label[n, :label_length[n]]]
        if len(want) + sum(a == b for a, b in zip(want, want[1:])) > T:
            continue
        lp = _log_softmax(logits[:T, n])
        total, share = 0.0, np.zeros_like(lp)
        for path in itertools.product(range(logits.shape[2]), repeat=T):
            if [c for c, _ in itertools.groupby(path) if c != blank] == want:
                p = np.exp(lp[np.arange(T), path].sum())
                total += p
                share[np.arange(T), path] += p
        loss[n] = -np.log(total)
        gradient[:T, n] = np.exp(lp) - share / total
    return loss, gradient


def ctc_loss_grad(logits, logits_length, gradient, d_loss, blank=0, norm_by_times=False):
    by = d_loss.reshape(1, -1, 1)
    return gradient * (by / logits_length.reshape(1, -1, 1) if norm_by_times else by)


def _ways(label, table, code, num_classes):
    for i, c in enumerate(label.ravel()):
        if table is not None:
            n = next((j for j, v in enumerate(table[i]) if v < 0), table.shape[1])
            yield i, list(zip(table[i][:n], code[i][:n]))
        else:
            leaf = int(c) + num_classes
            yield i, [((leaf >> (j + 1)) - 1, leaf >> j & 1) for j in range(leaf.bit_length() - 1)]


def _depth(table, num_classes):
    return (num_classes - 1).bit_length() if table is None else table.shape[1]


def hsigmoid_loss(x, label, w, bias=None, path_table=None, path_code=None, num_classes=2):
    z = np.zeros((x.shape[0], _depth(path_table, num_classes)))
    out = np.zeros((x.shape[0], 1))
    for i, way in _ways(label, path_table, path_code, num_classes):
        for j, (node, turn) in enumerate(way):
            z[i, j] = np.clip(w[node] @ x[i] + (0 if bias is None else bias.ravel()[node]), -40, 40)
            out[i] -= z[i, j] * turn
    pre = np.log1p(np.exp(z))
    return (out + pre.sum(1, keepdims=True)).astype(x.dtype), pre.astype(x.dtype)


def hsigmoid_loss_grad(x, label, w, bias, path_table, path_code, pre_out, d_out, num_classes=2):
    d_x, d_w, d_b = np.zeros_like(x), np.zeros_like(w), None if bias is None else np.zeros_like(bias)
    for i, way in _ways(label, path_table, path_code, num_classes):
        for j, (node, turn) in enumerate(way):
            slope = (1 - np.exp(-pre_out[i, j]) - turn) * d_out[i, 0]
            d_x[i] += slope * w[node]
            d_w[node] += slope * x[i]
            if bias is not None:
                d_b.reshape(-1)[node] += slope
    return (d_x, d_w) if bias is None else (d_x, d_w, d_b)


def gather_tree(ids, parents):
    out = np.empty_like(ids)
    for b, k in itertools.product(range(ids.shape[1]), range(ids.shape[2])):
        beam = k
        for t in reversed(range(ids.shape[0])):
            out[t, b, k] = ids[t, b, beam]
            beam = parents[t, b, beam]
    return out


def sequence_mask(x, maxlen=-1, dtype="I64"):
    length = int(x.max()) if maxlen < 0 else maxlen
    return (np.arange(length) < x[..., None]).astype({"BOOL": bool, "F32": np.float32}.get(dtype, np.int64))
