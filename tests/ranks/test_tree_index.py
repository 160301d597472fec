"""TreeIndex: trees that are written here, against what they are, and two branches against real Paddle (which takes other levels with more)."""
import collections
import json
import struct

import pytest

import oracle
from conftest import NEEDS_PADDLE
from proa.distributed.fleet.dataset import TreeIndex


def _varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def _field(number, kind, payload):
    return _varint(number << 3 | kind) + (_varint(len(payload)) + payload if kind == 2 else payload)


def _item(key, value):
    body = _field(1, 2, key) + _field(2, 2, value)
    return struct.pack("<i", len(body)) + body


def _write(path, branch, height, leaves):
    """A tree whose leaves have these ids, from the left; a node of code c above them has the id 1000 + c."""
    nodes = {}
    for k, id in enumerate(leaves):
        code = (branch ** (height - 1) - 1) // (branch - 1) + k
        nodes[code] = (id, 1)
        while code:
            code = (code - 1) // branch
            nodes.setdefault(code, (1000 + code, 0))
    with open(path, "wb") as f:
        f.write(_item(b".tree_meta", _field(1, 0, _varint(height)) + _field(2, 0, _varint(branch))))
        for code, (id, leaf) in sorted(nodes.items()):
            f.write(_item(str(code).encode(), _field(1, 0, _varint(id)) + _field(2, 0, _varint(leaf)) +
                          _field(3, 5, struct.pack("<f", 1 / (code + 1)))))
    return str(path)


ASK = """
import json
tree, ids = TreeIndex("tree", PATH), [11, 14, 17]
plain = lambda nodes: [[n.id(), n.is_leaf(), round(n.probability(), 5)] for n in nodes]
found = [tree.height(), tree.branch(), tree.total_node_nums(), tree.emb_size(), sorted(plain(tree.get_all_leafs())), plain(tree.get_nodes([0, 1, 9, 999]))]
for level in range(tree.height()):
    found += [tree.get_layer_codes(level), tree.get_ancestor_codes(ids, level), tree.get_travel_codes(14, level), sorted(tree.get_pi_relation(ids, level).items())]
found += [tree.get_children_codes(*pair) for pair in ((0, 1), (0, 3), (1, 2), (2, 3))] + [tree.get_travel_path(10, 1)]
tree.init_layerwise_sampler([1, 2, 2], 1, 5)
for hierarchy in (False, True):
    rows = tree.layerwise_sample([[11, 12], [13, 0]], [11, 14], hierarchy)
    found.append([row for row in rows if row[-1]])  # the negatives are drawn
    found.append([row[:2] for row in rows])
"""


@NEEDS_PADDLE
def test_two_branches_are_paddles(tmp_path):
    path = _write(tmp_path / "tree.pb", 2, 4, range(11, 18))
    names = {"TreeIndex": TreeIndex, "PATH": path}
    exec(ASK, names)
    theirs = oracle.ask("-c", f"from paddle.distributed.fleet.dataset.index_dataset import TreeIndex\nPATH = {path!r}\n{ASK}\nprint('found', json.dumps(found))")
    assert json.loads(json.dumps(names["found"])) == json.loads(theirs.rpartition("found ")[2].splitlines()[0])


def test_three_branches_and_negatives(tmp_path):
    tree = TreeIndex("tree", _write(tmp_path / "tree.pb", 3, 3, range(21, 28)))
    assert [tree.get_layer_codes(level) for level in range(3)] == [[0], [1, 2, 3], [4, 5, 6, 7, 8, 9, 10]]
    assert tree.get_travel_codes(25) == [8, 2, 0] and tree.get_children_codes(2, 2) == [7, 8, 9] and tree.get_children_codes(2, 1) == [2]
    tree.init_layerwise_sampler([2, 3], 1, seed=9)
    rows = [row for _ in range(200) for row in tree.layerwise_sample([[21]], [25])]
    seen = collections.Counter(tuple(row[1:]) for row in rows)
    assert seen[25, 1] == seen[1002, 1] == 200 and (25, 0) not in seen and (1002, 0) not in seen
    leaves = [seen[id, 0] for id in range(21, 28) if id != 25]
    assert sum(leaves) == 600 and min(leaves) > 60 and seen[1001, 0] + seen[1003, 0] == 400


def test_what_is_no_tree_is_refused(tmp_path):
    path = tmp_path / "tree.pb"
    _write(path, 2, 3, [1, 2, 3])
    whole = path.read_bytes()
    for cut in (3, 20, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="TreeIndex: .*(cut short|height 0)"):
            TreeIndex("tree", str(path))
    path.write_bytes(struct.pack("<i", 4) + b"\xff\xff\xff\xff")
    with pytest.raises(ValueError, match="is no message of a tree"):
        TreeIndex("tree", str(path))
    path.write_bytes(whole)
    tree = TreeIndex("tree", str(path))
    for call, words in ((lambda: tree.get_travel_codes(9), "no leaf of id 9"), (lambda: tree.get_layer_codes(3), "expected 0 to 2"),
                        (lambda: tree.layerwise_sample([], []), "init layerwise_sampler"),
                        (lambda: tree.init_layerwise_sampler([1], 1), "1 counts for the 2 levels"),
                        (lambda: tree.init_layerwise_sampler([1, 1, 1], 0), "level 0 has one node")):
        with pytest.raises(ValueError, match=words):
            call()
