"""One decoding step of attention over a cache [2, batch, heads, capacity, D] of keys and values, written in place."""
from ... import _core
from ...autograd import no_grad
from .quantized import of_dtype, to_int8
from .rotary import turned_sections, turned

FAR = -6e4  # added to scores of what is not seen: nearly float16's least number
FLOATS = (_core.float16, _core.bfloat16, _core.float32, _core.float64)
COMPUTE_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def invalid(who, text):
    return ValueError(f"(InvalidArgument) {who}: {text}")


def check_sizes(who, size, **tensors):
    """Refuses tensors that have not `size` elements."""
    for name, t in tensors.items():
        if t is not None and t.size != size:
            raise invalid(who, f"{name} is {list(t.shape)}, expected {size} elements")


class Step:
    """One token a sequence: its slot in a cache, and the slots that it sees. Serves the caches of all layers.

    at: slots filled so far, one number for all sequences or a tensor [batch]. In a program, whose numbers nobody knows yet, all
    slots are read under a mask; eagerly, those in use.
    """

    def __init__(self, who, at, batch, cache, mask=None, idle_at_zero=True):
        self.who, self.batch, (self.heads, self.capacity) = who, batch, cache.shape[2:4]
        if cache.shape[1] < batch:
            raise invalid(who, f"cache_kv has {cache.shape[1]} sequences, expected at least x's {batch}")
        self.at, self.idle, self.bias = at, None, None
        if isinstance(at, _core.Tensor):
            self._read(_core.reshape(_core.cast(at, "int64"), [-1]), idle_at_zero)
        else:
            self._known([at])
        self.varied = isinstance(self.at, _core.Tensor)
        self._see(mask, cache.dtype)
        if self.varied:
            self.points = self._points()

    def _known(self, lengths):
        if min(lengths) < 0 or max(lengths) >= self.capacity:
            raise invalid(self.who, f"the cache has {self.capacity} slots; expected lengths from 0 to {self.capacity - 1},"
                                    f" got {max(lengths) if min(lengths) >= 0 else min(lengths)}")
        self.end = max(lengths) + 1

    def _read(self, at, idle_at_zero):
        if at.shape[0] not in (1, self.batch):
            raise invalid(self.who, f"expected one length a sequence, {self.batch}, got {at.shape[0]}")
        self.end, some_idle = self.capacity, idle_at_zero
        if not at.is_symbolic:
            lengths = at.tolist()
            self._known(lengths)
            some_idle = idle_at_zero and min(lengths) == 0
            if not some_idle and len(set(lengths)) == 1:
                self.at = lengths[0]
                return
        self.at = _core.expand(at, [self.batch])
        if some_idle:
            self.idle = _core.reshape(self.at == 0, [self.batch, 1, 1])

    def _see(self, mask, dtype):
        """Sets what is added to scores [batch, heads, 1, end], if anything is."""
        if mask is not None:
            if mask.ndim != 4 or mask.shape[0] not in (1, self.batch) or mask.shape[1] not in (1, self.heads) or mask.shape[2] != 1:
                raise invalid(self.who, f"the mask is {list(mask.shape)}, expected [batch, 1 or {self.heads}, 1, length]")
            seen = mask.shape[3]
            if self.varied and self.at.is_symbolic:
                self.end = min(self.end, seen)
            if seen < self.end:
                raise invalid(self.who, f"the mask is for {seen} slots, expected at least {self.end}")
            self.bias = of_dtype(mask[..., :self.end] if seen > self.end else mask, dtype)
        if self.varied:
            slots = _core.arange(0, self.end, 1, "int64")
            seen = _core.reshape(slots <= _core.unsqueeze(self.at, [1]), [self.batch, 1, 1, self.end])
            far = _core.full([], float("-inf"), dtype)
            self.bias = _core.where(seen, _core.full([], 0.0, dtype) if self.bias is None else self.bias, far)

    def _points(self):
        """[2, batch, heads, 4]: where in a cache a step's keys and values go."""
        whole = [2, self.batch, self.heads, 1]
        axes = [_core.reshape(_core.arange(0, n, 1, "int64"), [-1 if i == axis else 1 for i in range(4)])
                for axis, n in enumerate(whole[:3])]
        parts = [*axes, _core.reshape(self.at, [1, self.batch, 1, 1])]
        return _core.concat([_core.expand(part, whole) for part in parts], -1)

    def write(self, cache, pair):
        """Stores keys and values [2, batch, heads, D]."""
        pair = of_dtype(pair, cache.dtype)
        if not self.varied:
            cache[:, :self.batch, :, self.at] = pair
            return
        if self.idle is not None:
            pair = _core.where(_core.unsqueeze(self.idle, [0]), cache[:, :self.batch, :, 0], pair)
        _core.index_put_(cache, self.points, pair)

    def attend(self, query, cache):
        """Attention [batch, heads · D] of query [batch, heads, D]; 0 for sequences without a length."""
        key, value = (cache[i, :self.batch, :, :self.end] for i in (0, 1))
        scores = _core.matmul(_core.unsqueeze(query * query.shape[2] ** -0.5, [2]), key, False, True)
        if self.bias is not None:
            scores = scores + self.bias
        return self._answer(_core.matmul(_core.softmax(scores, -1), value))

    def attend_beams(self, query, cache, origin):
        """attend, where origin [groups, beams, slots] says of which beam of its group each slot is taken."""
        groups, beams = origin.shape[:2]
        heads, depth, end = self.heads, query.shape[2], self.end
        if groups * beams != self.batch or origin.shape[2] < end:
            raise invalid(self.who, f"beam_cache_offset is {list(origin.shape)}, expected [groups, beams, {end} or more] of"
                                    f" {self.batch} sequences")
        key, value = (_core.reshape(cache[i, :self.batch, :, :end], [groups, beams, heads, end, depth]) for i in (0, 1))
        query = _core.transpose(_core.reshape(query * depth ** -0.5, [groups, 1, beams, heads, depth]), [0, 1, 3, 2, 4])
        scores = _core.matmul(query, key, False, True)  # [groups, beams of keys, heads, beams of queries, slots]
        if self.bias is not None:
            bias = _core.reshape(_core.expand(self.bias, [self.batch, self.bias.shape[1], 1, end]), [groups, 1, beams, -1, end])
            scores = scores + _core.transpose(bias, [0, 1, 3, 2, 4])
        scores = _core.where(self._taken(origin), scores, _core.full([], float("-inf"), scores.dtype))
        weights = _core.reshape(_core.transpose(scores, [0, 2, 3, 1, 4]), [groups, heads, beams, beams * end])
        weights = _core.reshape(_core.softmax(weights, -1), [groups, heads, beams, beams, end])
        out = _core.sum(_core.matmul(_core.transpose(weights, [0, 3, 1, 2, 4]), value), 1)
        return self._answer(_core.reshape(_core.transpose(out, [0, 2, 1, 3]), [self.batch, heads, 1, depth]))

    def _taken(self, origin):
        """[groups, beams of keys, 1, beams of queries, slots]: whether a query takes that beam's slot; of its own token, its own."""
        groups, beams = origin.shape[:2]
        names = _core.arange(0, beams, 1, "int64")
        keys, queries = _core.reshape(names, [1, beams, 1, 1, 1]), _core.reshape(names, [1, 1, 1, beams, 1])
        origin = _core.reshape(_core.cast(origin[:, :, :self.end], "int64"), [groups, 1, 1, beams, self.end])
        at = _core.reshape(self.at, [groups, 1, 1, beams, 1]) if self.varied else self.at
        now = _core.arange(0, self.end, 1, "int64") == at
        return _core.where(now, queries, origin) == keys

    def _answer(self, out):
        out = _core.reshape(out, [self.batch, -1])
        if self.idle is None:
            return out
        return _core.where(_core.reshape(self.idle, [self.batch, 1]), _core.full([], 0.0, out.dtype), out)


@no_grad()
def masked_multihead_attention(x, cache_kv=None, bias=None, src_mask=None, cum_offsets=None, sequence_lengths=None,
                               rotary_tensor=None, beam_cache_offset=None, qkv_out_scale=None, out_shift=None, out_smooth=None,
                               seq_len=1, rotary_emb_dims=0, use_neox_rotary_style=False, compute_dtype="default", out_scale=-1,
                               quant_round_type=1, quant_max_bound=127.0, quant_min_bound=-127.0):
    """(attention, cache_kv) of one token a sequence: x [B, 3 · heads · D] has its query, key and value, cache_kv
    [2, B, heads, slots, D] those before, to which they are added in place; with beam_cache_offset that follows as it came.

    The token's slot is sequence_lengths [B, 1], or the last one of src_mask [B, 1, 1, length]. A sequence of length 0 has ended:
    its cache stays and its result is 0. rotary_tensor holds the cosines and the sines, [2, B, 1, 1, D], of the tokens' positions,
    by neighbors or, with use_neox_rotary_style, by halves. cum_offsets moves the row of sequence i to i · seq_len − cum_offsets[i].
    x of int32 is multiplied by qkv_out_scale; with out_scale > 0 the result is int8, of (attention + out_shift) · out_smooth.
    """
    who = "masked_multihead_attention"
    if cache_kv is None or cache_kv.ndim != 5 or cache_kv.shape[0] != 2:
        raise invalid(who, f"cache_kv: expected [2, batch, heads, slots, D], got {None if cache_kv is None else cache_kv.shape}")
    heads, depth = cache_kv.shape[2], cache_kv.shape[4]
    if x.ndim != 2 or x.shape[1] != 3 * heads * depth or x.size == 0:
        raise invalid(who, f"x is {list(x.shape)}, expected [batch, 3 · {heads} · {depth}] of the heads of cache_kv, and some of it")
    batch = x.shape[0]
    check_sizes(who, 3 * heads * depth, bias=bias, qkv_out_scale=qkv_out_scale)
    check_sizes(who, heads * depth, out_shift=out_shift, out_smooth=out_smooth)
    check_sizes(who, batch, cum_offsets=cum_offsets)
    for name, t, dims in (("src_mask", src_mask, 4), ("beam_cache_offset", beam_cache_offset, 3)):
        if t is not None and t.ndim != dims:
            raise invalid(who, f"{name} is {list(t.shape)}, expected {dims} dims")
    if sequence_lengths is None and src_mask is None:
        raise invalid(who, "sequence_lengths or src_mask must say which slot is next, got neither")
    at = src_mask.shape[3] - 1 if sequence_lengths is None else sequence_lengths
    step = Step(who, at, batch, cache_kv, src_mask)
    qkv = _core.reshape(floats(who, x, qkv_out_scale, compute_dtype, cache_kv.dtype), [batch, 3, heads, depth])
    if bias is not None:
        qkv = qkv + _core.reshape(bias, [3, heads, depth])
    queries_and_keys, values = qkv[:, :2], qkv[:, 2:]
    if rotary_emb_dims > 0:
        queries_and_keys = _turn(who, queries_and_keys, rotary_tensor, rotary_emb_dims, use_neox_rotary_style)
    pair = _core.concat([queries_and_keys[:, 1:], values], 1) if rotary_emb_dims > 0 else qkv[:, 1:]
    step.write(cache_kv, _core.transpose(pair, [1, 0, 2, 3]))
    if beam_cache_offset is None:
        out = step.attend(queries_and_keys[:, 0], cache_kv)
    else:
        out = step.attend_beams(queries_and_keys[:, 0], cache_kv, beam_cache_offset)
    out = finished(out, out_shift, out_smooth, out_scale, quant_round_type, quant_max_bound, quant_min_bound)
    if cum_offsets is not None:
        out = _moved(out, cum_offsets, seq_len)
    return (out, cache_kv) if beam_cache_offset is None else (out, cache_kv, beam_cache_offset)


def floats(who, x, scale, compute_dtype, cache_dtype):
    """x, or what integers of a quantized product stand for."""
    if compute_dtype != "default" and compute_dtype not in COMPUTE_DTYPES:
        raise invalid(who, f"compute_dtype: expected 'default' or one of {sorted(COMPUTE_DTYPES)}, got {compute_dtype!r}")
    if scale is None:
        return x
    wide = _core.cast(x, "float32") * _core.reshape(scale, [-1])
    return _core.cast(wide, COMPUTE_DTYPES.get(compute_dtype, cache_dtype))


def _turn(who, x, table, sections, by_halves):
    """x [B, 2, heads, D] at its sequences' positions."""
    batch, depth = x.shape[0], x.shape[3]
    if table is None or table.size != 2 * batch * depth:
        raise invalid(who, f"rotary_tensor: expected [2, {batch}, 1, 1, {depth}], got {None if table is None else list(table.shape)}")
    table = _core.reshape(table, [2, batch, 1, 1, depth])
    if by_halves:
        return turned_sections(x, table[0], table[1], sections)
    return of_dtype(turned(of_dtype(x, table.dtype), table[0], table[1], True), x.dtype)


def finished(out, shift, smooth, scale, round_type, high, low):
    """(out + shift) · smooth, as int8 if there is a scale."""
    if shift is not None:
        out = out + shift
    if smooth is not None:
        out = out * smooth
    return to_int8(out, scale, round_type, high, low) if scale > 0 else out


def _moved(out, cum_offsets, seq_len):
    """out with row i at i · seq_len − cum_offsets[i]; rows of ended sequences are 0 and add nothing to others."""
    batch = out.shape[0]
    rows = _core.arange(0, batch, 1, "int64") * seq_len - _core.reshape(_core.cast(cum_offsets, "int64"), [-1])
    if not rows.is_symbolic and not all(0 <= row < batch for row in rows.tolist()):
        raise invalid("masked_multihead_attention", f"cum_offsets: expected rows from 0 to {batch - 1}, got {rows.tolist()}")
    return _core.index_put(_core.full(out.shape, 0, out.dtype), _core.unsqueeze(rows, [1]), out, True)
