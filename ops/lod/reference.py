"""NumPy references of the ops on concatenated sequences (LoD tensors: sequence_pool, sequence_pad, …) and their
gradients; a sequence is a slice of rows between two offsets. One function per op, named as the op:
tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the
outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np

DIVISOR = {"AVERAGE": lambda n: n, "SUM": lambda n: 1, "SQRT": np.sqrt}


def _parts(x, offsets):
    return [x[a:b] for a, b in zip(offsets, offsets[1:])]


def _joined(parts, like):
    parts = [p for p in parts if len(p)]
    return np.concatenate(parts) if parts else like[:0]


def _offsets(parts):
    return np.cumsum([0, *map(len, parts)]).astype(np.int64)


def sequence_pool(x, offsets, pooltype="AVERAGE", is_test=False, pad_value=0.0):
    rows, index = [], []
    for a, part in zip(offsets, _parts(x, offsets)):
        if not len(part):
            rows.append(np.full(x.shape[1:], pad_value, x.dtype))
            index.append(np.full(x.shape[1:], -1, np.int32))
            continue
        index.append((a + part.argmax(0)).astype(np.int32))
        rows.append(part.max(0) if pooltype == "MAX" else part[0] if pooltype == "FIRST" else part[-1]
                    if pooltype == "LAST" else part.sum(0) / DIVISOR[pooltype](len(part)))
    return np.stack(rows), np.stack(index) if pooltype == "MAX" and not is_test else None


def sequence_pool_grad(x, offsets, max_index, d_out, pooltype="AVERAGE"):
    d = np.zeros_like(x)
    for s, (a, b) in enumerate(zip(offsets, offsets[1:])):
        if a == b:
            continue
        if pooltype == "MAX":
            for k in range(x.shape[1]):
                d[max_index[s, k], k] = d_out[s, k]
        elif pooltype in ("FIRST", "LAST"):
            d[a if pooltype == "FIRST" else b - 1] = d_out[s]
        else:
            d[a:b] = d_out[s] / DIVISOR[pooltype](b - a)
    return d


def sequence_softmax(x, offsets):
    return _joined([np.exp(p - p.max()) / np.exp(p - p.max()).sum() for p in _parts(x, offsets) if len(p)], x)


def sequence_softmax_grad(out, offsets, d_out):
    return _joined([y * (d - (y * d).sum()) for y, d in zip(_parts(out, offsets), _parts(d_out, offsets))], out)


def _windows(x, offsets, length, start):
    rows = np.zeros((len(x), length) + x.shape[1:], x.dtype)
    for a, b in zip(offsets, offsets[1:]):
        for i in range(a, b):
            for j in range(length):
                if a <= i + start + j < b:
                    rows[i, j] = x[i + start + j]
    return rows.reshape(len(x), -1)


def sequence_conv(x, filter, offsets, length=3, start=-1):
    return _windows(x, offsets, length, start) @ filter


def sequence_conv_grad(x, filter, offsets, d_out, length=3, start=-1):
    d_rows = (d_out @ filter.T).reshape(len(x), length, -1)
    d = np.zeros_like(x)
    for a, b in zip(offsets, offsets[1:]):
        for i in range(a, b):
            for j in range(length):
                if a <= i + start + j < b:
                    d[i + start + j] += d_rows[i, j]
    return d, _windows(x, offsets, length, start).T @ d_out


def sequence_expand(x, y, x_offsets, y_offsets, ref_level=-1):
    own = _parts(x, x_offsets) if x_offsets is not None else [x[i:i + 1] for i in range(len(x))]
    parts = [p for p, n in zip(own, np.diff(y_offsets)) for _ in range(n)]
    return _joined(parts, x), _offsets(parts) if x_offsets is not None else None


def _summed(moved, x, d_out):
    """The gradient of an op that copies rows; moved: the op applied to the row numbers of x instead of x."""
    d = np.zeros_like(x)
    np.add.at(d, moved, d_out)
    return d


def _numbers(x):
    return np.arange(len(x))


def sequence_expand_grad(x, y, x_offsets, y_offsets, d_out, ref_level=-1):
    return _summed(sequence_expand(_numbers(x), y, x_offsets, y_offsets)[0], x, d_out)


def sequence_expand_as(x, y, y_offsets):
    return np.repeat(x, np.diff(y_offsets), 0)


def sequence_expand_as_grad(x, y, y_offsets, d_out):
    return _summed(sequence_expand_as(_numbers(x), y, y_offsets), x, d_out)


def sequence_concat(x, offsets):
    parts = [_joined(parts, x[0]) for parts in zip(*(_parts(t, o) for t, o in zip(x, offsets)))]
    return _joined(parts, x[0]), _offsets(parts)


def sequence_concat_grad(x, offsets, d_out):
    starts = np.cumsum([0, *map(len, x)])
    rows, _ = sequence_concat([a + _numbers(t) for a, t in zip(starts, x)], offsets)
    whole = _summed(rows, np.concatenate(x), d_out)
    return [whole[a:b] for a, b in zip(starts, starts[1:])]


def sequence_pad(x, pad_value, offsets, padded_length=-1):
    parts = _parts(x, offsets)
    n = max(map(len, parts)) if padded_length < 0 else padded_length
    out = np.empty((len(parts), n) + x.shape[1:], x.dtype)
    out[:] = pad_value
    for row, part in zip(out, parts):
        row[:len(part)] = part
    return out, np.diff(offsets)


def sequence_pad_grad(x, offsets, d_out):
    return _joined([row[:n] for row, n in zip(d_out, np.diff(offsets))], x)


def sequence_unpad(x, length):
    rows = x[..., None] if x.ndim == 2 else x
    parts = [row[:n] for row, n in zip(rows, length)]
    return _joined(parts, rows[0]), _offsets(parts)


def sequence_unpad_grad(x, length, d_out):
    d, at = np.zeros_like(x), 0
    for i, n in enumerate(length):
        d[i, :n] = d_out[at:at + n].reshape(d[i, :n].shape)
        at += n
    return d


def sequence_reverse(x, offsets):
    return _joined([p[::-1] for p in _parts(x, offsets)], x)


def sequence_slice(x, offset, length, offsets):
    parts = [p[o:o + n] for p, o, n in zip(_parts(x, offsets), offset.ravel(), length.ravel())]
    return _joined(parts, x), _offsets(parts)


def sequence_slice_grad(x, offset, length, offsets, d_out):
    return _summed(sequence_slice(_numbers(x), offset, length, offsets)[0], x, d_out)


def sequence_reshape(x, offsets, new_dim):
    return x.reshape(-1, new_dim), offsets * x.shape[1] // new_dim


def sequence_reshape_grad(x, d_out):
    return d_out.reshape(x.shape)


def lod_reset(x, y=None, y_offsets=None, target_lod=()):
    offsets = y_offsets if y_offsets is not None else y if y is not None else np.array(target_lod)
    return x, np.asarray(offsets, "int64").reshape(-1)


def sequence_enumerate(x, offsets, win_size, pad_value=0):
    out = np.full((len(x), win_size), pad_value, x.dtype)
    for a, b in zip(offsets, offsets[1:]):
        for i in range(a, b):
            n = min(win_size, b - i)
            out[i, :n] = x.ravel()[i:i + n]
    return out


def sequence_scatter(x, ids, updates, offsets):
    out = x.copy()
    for s, (a, b) in enumerate(zip(offsets, offsets[1:])):
        np.add.at(out[s], ids.ravel()[a:b], updates.ravel()[a:b])
    return out


def sequence_scatter_grad(d_out, ids, updates, offsets):
    rows = np.repeat(np.arange(len(d_out)), np.diff(offsets))
    return d_out, d_out[rows, ids.ravel()].reshape(updates.shape)
