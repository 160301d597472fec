"""Keys and values in blocks [blocks, heads, block_size, D] that tables hand out to sequences, in floats or in eight bits."""
from ... import _core
from .quantized import from_offset_uint8, of_dtype, to_offset_uint8


class BlockCache:
    """The two caches of a layer with their tables [batch, blocks of a sequence] and, for eight bits, scales.

    scales are those that quantize keys and values and those that bring them back: [heads], or [batch, heads] if they are dynamic.
    """

    def __init__(self, key_cache, value_cache, tables, scales, dynamic, rounding):
        self.parts, self.scales, self.dynamic, self.rounding = (key_cache, value_cache), scales, dynamic, rounding
        _, self.heads, self.size, self.depth = key_cache.shape
        tables = _core.cast(tables, "int64")
        self.tables = _core.maximum(tables, _core.full([], 0, tables.dtype))  # −1: a block that the sequence does not have yet
        blocks = key_cache.shape[0]
        if not self.tables.is_symbolic and tables.size and int(_core.max(self.tables)) >= blocks:
            raise ValueError(f"(InvalidArgument) block_multihead_attention: block_tables: expected blocks from -1 to {blocks - 1}, got"
                             f" {int(_core.max(self.tables))}")
        self.capacity = tables.shape[1] * self.size

    def write(self, key, value, owner, place):
        """Stores [tokens, heads, D] of the sequences owner [tokens] at their slots `place`."""
        block = _core.gather_nd(self.tables, _core.stack([owner, place // self.size], -1))
        points = self._points([owner.shape[0], self.heads, 1], [block, None, place % self.size])
        for i, new in enumerate((key, value)):
            _core.index_put_(self.parts[i], points, self._stored(new, i, owner))

    def write_before(self, pair, rows):
        """Stores [sequences, heads, slots, D] at the first slots of the sequences `rows`."""
        count, slots = pair[0].shape[0], pair[0].shape[2]
        owner = _core.reshape(_core.expand(_core.unsqueeze(rows, [1]), [count, slots]), [-1])
        place = _core.reshape(_core.expand(_core.arange(0, slots, 1, "int64"), [count, slots]), [-1])
        flat = (_core.reshape(_core.transpose(t, [0, 2, 1, 3]), [-1, self.heads, self.depth]) for t in pair)
        self.write(*flat, owner, place)

    def _points(self, shape, parts):
        """Coordinates [*shape, 3] of which parts are given by the first dim, and None counts the second."""
        count = _core.reshape(_core.arange(0, shape[1], 1, "int64"), [1, -1, 1])
        parts = [count if part is None else _core.reshape(part, [-1, 1, 1]) for part in parts]
        return _core.concat([_core.expand(part, shape) for part in parts], -1)

    def _stored(self, new, which, owner):
        if self.scales is None:
            return of_dtype(new, self.parts[which].dtype)
        scale = self.scales[which]
        scale = _core.gather(scale, owner, 0) if self.dynamic else _core.reshape(scale, [1, -1])
        return to_offset_uint8(new, _core.unsqueeze(scale, [2]), *self.rounding)

    def measure(self, pair, there, begins):
        """Sets the scales of the sequences that begin, to the greatest of their tokens [batch, length, heads, D] that are there."""
        for i, new in enumerate(pair):
            size = _core.cast(_core.max(_core.abs(new), -1), "float32")
            size = _core.max(_core.where(_core.unsqueeze(there, [2]), size, _core.full([], 0.0, size.dtype)), 1)
            size = _core.maximum(size, _core.full([], 1e-30, size.dtype))
            for scale, found in ((self.scales[i], 127.0 / size), (self.scales[2 + i], size / 127.0)):
                scale[:] = _core.where(_core.unsqueeze(begins, [1]), found, scale)

    def rows(self, end):
        """[batch, heads, blocks]: which rows of a cache [blocks · heads, …] are the sequences' up to slot `end`."""
        tables = self.tables[:, :-(-end // self.size)]
        return _core.unsqueeze(tables * self.heads, [1]) + _core.reshape(_core.arange(0, self.heads, 1, "int64"), [1, -1, 1])

    def read(self, which, rows, dtype):
        """Keys (0) or values (1) of those rows, [batch, heads, slots, D]."""
        batch, heads, count = rows.shape
        flat = _core.reshape(self.parts[which], [-1, self.size, self.depth])
        stored = _core.reshape(_core.gather(flat, _core.reshape(rows, [-1]), 0), [batch, heads, count * self.size, self.depth])
        if self.scales is None:
            return of_dtype(stored, dtype)
        return from_offset_uint8(stored, _core.reshape(self.scales[2 + which], [-1, heads, 1, 1]), dtype)
