"""Reference of hash: XXH64 in Python's integers. One function per op, named as the op: tests/ops/test_ops.py calls it with
the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns."""
import numpy as np

ALL = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def rotl(v, n):
    return (v << n | v >> 64 - n) & ALL


def mixed(lane, word):
    return rotl((lane + word * P2) & ALL, 31) * P1 & ALL


def xxh64(data, seed):
    words, at = [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data) - 7, 8)], 0
    h = (seed + P5) & ALL
    if len(data) >= 32:
        lanes = [(seed + P1 + P2) & ALL, (seed + P2) & ALL, seed, (seed - P1) & ALL]
        for at in range(0, len(words) // 4 * 4, 4):
            lanes = [mixed(lane, word) for lane, word in zip(lanes, words[at:at + 4])]
        words = words[len(words) // 4 * 4:]
        h = sum(rotl(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) & ALL
        for lane in lanes:
            h = ((h ^ mixed(0, lane)) * P1 + P4) & ALL
    h = (h + len(data)) & ALL
    for word in words:
        h = (rotl(h ^ mixed(0, word), 27) * P1 + P4) & ALL
    if len(data) % 8:
        h = (rotl(h ^ int.from_bytes(data[-4:], "little") * P1 & ALL, 23) * P2 + P3) & ALL
    for shift, factor in ((33, P2), (29, P3)):
        h = (h ^ h >> shift) * factor & ALL
    return h ^ h >> 32


def hash(x, num_hash=1, mod_by=100000):
    rows = [[[xxh64(row.tobytes(), seed) % mod_by] for seed in range(num_hash)] for row in np.ascontiguousarray(x)]
    return np.array(rows, np.uint64).astype(x.dtype).reshape(len(x), num_hash, 1)
