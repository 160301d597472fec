"""TreeIndex: a tree over items, for tree-based retrieval (Zhu et al. 2018, arXiv 1801.02294), read from Paddle's files. A node's code numbers
it level by level from the root, 0: code c's children are c · branch + 1 … c · branch + branch."""
import random
import struct

_VARINT, _BYTES, _FLOAT = 0, 2, 5


def _fields(data, where):
    """{number: value} of a protobuf message of integers, byte strings and floats."""
    found, at = {}, 0
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            kind = tag & 7
            if kind == _VARINT:
                value, at = _varint(data, at)
            elif kind == _BYTES:
                n, at = _varint(data, at)
                value, at = data[at:at + n], at + n
                if len(value) < n:
                    raise IndexError
            elif kind == _FLOAT:
                (value,), at = struct.unpack_from("<f", data, at), at + 4
            else:
                raise IndexError
            found[tag >> 3] = value
    except (IndexError, struct.error):
        raise ValueError(f"TreeIndex: {where} is no message of a tree; expected a file that Paddle's tree builder wrote") from None
    return found


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise IndexError


class IndexNode:
    """A node: an item's id at a leaf, an id of its own above."""

    def __init__(self, id=0, is_leaf=False, probability=0.0):
        self._id, self._is_leaf, self._probability = id, is_leaf, probability

    def id(self):
        """The id; 0: there is no such node."""
        return self._id

    def is_leaf(self):
        """Whether it is an item."""
        return self._is_leaf

    def probability(self):
        """The frequency of visits."""
        return self._probability


class TreeIndex:
    """A tree of items. path: a file of records, each an int32 length and a KVItem message: ".tree_meta" with height and branch, and the
    nodes by code."""

    def __init__(self, name, path):
        self._name, self._nodes, self._codes, self._sampler = name, {}, {}, None
        self._height = self._branch = 0
        with open(path, "rb") as f:
            data = f.read()
        at = 0
        while at < len(data):
            n = struct.unpack_from("<i", data, at)[0] if at + 4 <= len(data) else -1
            if n <= 0 or at + 4 + n > len(data):
                raise ValueError(f"TreeIndex: {path}: the record at byte {at} is cut short; expected its length, 4 bytes, and then as many")
            self._read(_fields(data[at + 4:at + 4 + n], f"{path}, byte {at},"), f"{path}, byte {at},")
            at += 4 + n
        if self._height < 1 or self._branch < 2:
            raise ValueError(f"TreeIndex: {path} says height {self._height}, branch {self._branch}; expected at least 1 and 2")

    def _read(self, item, where):
        key, value = item.get(1, b""), _fields(item.get(2, b""), where)
        if key == b".tree_meta":
            self._height, self._branch = value.get(1, 0), value.get(2, 0)
        elif key.isdigit():
            node = IndexNode(value.get(1, 0), bool(value.get(2, 0)), value.get(3, 0.0))
            self._nodes[int(key)] = node
            if node.is_leaf():
                self._codes[node.id()] = int(key)
        else:
            raise ValueError(f"TreeIndex: {where} has the key {key!r}; expected .tree_meta or a code")

    def height(self):
        """The number of levels; the root is level 0."""
        return self._height

    def branch(self):
        """The most children of a node."""
        return self._branch

    def total_node_nums(self):
        """The number of nodes."""
        return len(self._nodes)

    def emb_size(self):
        """Rows of an embedding of all ids: the largest id, plus 1."""
        return max((node.id() for node in self._nodes.values()), default=0) + 1

    def get_all_leafs(self):
        """The leaves' nodes."""
        return [self._nodes[code] for code in self._codes.values()]

    def get_nodes(self, codes):
        """The nodes of codes; one of id 0 where there is none."""
        return [self._nodes.get(code) or IndexNode() for code in codes]

    def _first(self, level):
        """The first code of a level. (Paddle 2.6.2 takes branch^level − 1, which is right for two branches.)"""
        return (self._branch ** level - 1) // (self._branch - 1)

    def _level(self, level, who):
        if not isinstance(level, int) or not 0 <= level < self._height:
            raise ValueError(f"TreeIndex.{who}: level is {level!r}; expected 0 to {self._height - 1}")
        return level

    def get_layer_codes(self, level):
        """The codes of a level's nodes."""
        level = self._level(level, "get_layer_codes")
        return [code for code in range(self._first(level), self._first(level + 1)) if code in self._nodes]

    def _leaf(self, id, who):
        if id not in self._codes:
            raise ValueError(f"TreeIndex.{who}: there is no leaf of id {id}")
        return self._codes[id]

    def get_travel_codes(self, id, start_level=0):
        """Codes from a leaf up to its ancestor at start_level."""
        start_level, code = self._level(start_level, "get_travel_codes"), self._leaf(id, "get_travel_codes")
        codes = []
        for _ in range(self._height - start_level):
            codes.append(code)
            code = (code - 1) // self._branch
        return codes

    def get_ancestor_codes(self, ids, level):
        """The codes of leaves' ancestors at a level."""
        return [self.get_travel_codes(id, level)[-1] for id in ids]

    def get_children_codes(self, ancestor, level):
        """Codes of the nodes at a level that are below a node, or are that node."""
        codes, last = range(ancestor, ancestor + 1), self._first(self._level(level, "get_children_codes") + 1)
        while codes[0] < self._first(level):
            codes = range(codes[0] * self._branch + 1, codes[-1] * self._branch + self._branch + 1)
        return [code for code in codes if code in self._nodes and code < last]

    def get_travel_path(self, child, ancestor):
        """Codes from child up to ancestor, without ancestor."""
        codes = []
        while child > ancestor:
            codes.append(child)
            child = (child - 1) // self._branch
        return codes

    def get_pi_relation(self, ids, level):
        """{id: its ancestor's code at a level}."""
        return dict(zip(ids, self.get_ancestor_codes(ids, level)))

    def init_layerwise_sampler(self, layer_sample_counts, start_sample_layer=1, seed=0):
        """Prepares layerwise_sample: how many negatives a level has, from start_sample_layer on down to the leaves; seed 0: drawn."""
        assert self._sampler is None
        levels = self._height - self._level(start_sample_layer, "init_layerwise_sampler")
        if len(layer_sample_counts) < levels:
            raise ValueError(f"TreeIndex.init_layerwise_sampler: {len(layer_sample_counts)} counts for the {levels} levels from "
                             f"{start_sample_layer} on; expected one each")
        layers = [self.get_layer_codes(start_sample_layer + i) for i in range(levels)]
        for i, (codes, count) in enumerate(zip(layers, layer_sample_counts)):
            if count > 0 and len(codes) < 2:
                raise ValueError(f"TreeIndex.init_layerwise_sampler: level {start_sample_layer + i} has one node, which leaves no negatives; "
                                 "give it a count of 0")
        self._sampler = (start_sample_layer, list(layer_sample_counts), layers, random.Random(seed or None))

    def layerwise_sample(self, user_input, index_input, with_hierarchy=False):
        """Rows [user's ids …, node's id, label]: for each user and target leaf, from the leaf up, the target's ancestor with label 1 and
        other nodes of its level with label 0. with_hierarchy: the user's ids become their ancestors', too, 0 stays."""
        if self._sampler is None:
            raise ValueError("please init layerwise_sampler first.")
        start, counts, layers, draw = self._sampler
        rows = []
        for user, target in zip(user_input, index_input):
            for above, code in enumerate(self.get_travel_codes(target, start)):
                level = self._height - 1 - above
                seen = [self._nodes[self.get_ancestor_codes([id], level)[0]].id() if id and with_hierarchy and above else id for id in user]
                rows.append([*seen, self._nodes[code].id(), 1])
                for _ in range(counts[level - start]):
                    other = code
                    while other == code:
                        other = draw.choice(layers[level - start])
                    rows.append([*seen, self._nodes[other].id(), 0])
        return rows
