"""block_multihead_attention: sequences that begin and sequences that go on, over a cache in blocks. Uses _core."""
from ... import _core
from ...autograd import no_grad
from .block_cache import BlockCache
from .cached_attention import FAR, FLOATS, check_sizes, finished, floats, invalid
from .quantized import of_dtype
from .rotary import turned

WHO = "block_multihead_attention"


@no_grad()
def block_multihead_attention(qkv, key_cache, value_cache, seq_lens_encoder, seq_lens_decoder, seq_lens_this_time,
                              padding_offsets, cum_offsets, cu_seqlens_q, cu_seqlens_k, block_tables, pre_key_cache=None,
                              pre_value_cache=None, cache_k_quant_scales=None, cache_v_quant_scales=None,
                              cache_k_dequant_scales=None, cache_v_dequant_scales=None, qkv_out_scale=None, qkv_bias=None,
                              out_shift=None, out_smooth=None, rope_emb=None, mask=None, tgt_mask=None, max_seq_len=-1,
                              block_size=64, use_neox_style=False, use_dynamic_cachekv_quant=False, quant_round_type=1,
                              quant_max_bound=127.0, quant_min_bound=-127.0, out_scale=-1, compute_dtype="default"):
    """(attention, qkv, key_cache, value_cache) of the tokens that are new, one behind the other without padding: qkv
    [tokens, (heads + 2 · key heads) · D], sequence b from cu_seqlens_q[b] to cu_seqlens_q[b + 1].

    A sequence whose seq_lens_encoder is not 0 begins: its tokens see pre_key_cache, and one another causally or as mask
    [B, 1, S, pre + S] says. Others add their tokens to seq_lens_decoder cached ones, under tgt_mask [B, 1 or heads, 1, length]. Keys
    and values go, in place, into the blocks that block_tables [B, blocks of a sequence] names. rope_emb [2, 1 or B, positions, 1,
    D / 2] are cosines and sines, of neighbors or, with use_neox_style, of halves. Caches of uint8 hold 128 + round(scale · value),
    with scales a head or, dynamic, a sequence and head, which are set when a sequence begins. qkv_out_scale, out_shift, out_smooth
    and out_scale are masked_multihead_attention's. A program computes all sequences in both ways, as neither is known.
    """
    _check(qkv, key_cache, value_cache, block_tables, block_size)
    scales = (cache_k_quant_scales, cache_v_quant_scales, cache_k_dequant_scales, cache_v_dequant_scales)
    quantized = key_cache.dtype == _core.uint8
    if quantized and any(scale is None for scale in scales):
        raise invalid(WHO, "caches of uint8: expected all of cache_k_quant_scales, cache_v_quant_scales, cache_k_dequant_scales and"
                           " cache_v_dequant_scales")
    check_sizes(WHO, qkv.shape[1], qkv_out_scale=qkv_out_scale, qkv_bias=qkv_bias)
    check_sizes(WHO, qkv.shape[1] - 2 * key_cache.shape[1] * key_cache.shape[3], out_shift=out_shift, out_smooth=out_smooth)
    shape = [block_tables.shape[0], key_cache.shape[1]] if use_dynamic_cachekv_quant else [key_cache.shape[1]]
    if quantized and any(list(scale.shape) != shape or scale.dtype != _core.float32 for scale in scales):
        raise invalid(WHO, f"scales of the caches: expected float32 {shape}, got {[[str(s.dtype), list(s.shape)] for s in scales]}")
    cache = BlockCache(key_cache, value_cache, block_tables, scales if quantized else None, quantized and use_dynamic_cachekv_quant,
                       (quant_round_type, quant_max_bound, quant_min_bound))
    wide = floats(WHO, qkv, qkv_out_scale, compute_dtype, _core.float32 if quantized else key_cache.dtype)
    if qkv_bias is not None:
        wide = wide + _core.reshape(qkv_bias, [-1])
    tokens = _Tokens(wide, cache, (seq_lens_encoder, seq_lens_decoder, seq_lens_this_time), cu_seqlens_q, max_seq_len)
    if rope_emb is not None:
        tokens.turn(rope_emb, not use_neox_style)
    before = None if pre_key_cache is None and pre_value_cache is None else (pre_key_cache, pre_value_cache)
    _check_floats(tokens, cache, before, {"mask": mask, "tgt_mask": tgt_mask})
    out = tokens.attend(before, mask, tgt_mask)
    out = finished(out, out_shift, out_smooth, out_scale, quant_round_type, quant_max_bound, quant_min_bound)
    return out, qkv, key_cache, value_cache


def _check(qkv, key_cache, value_cache, block_tables, block_size):
    whole = key_cache.ndim == 4 and key_cache.size and key_cache.shape[2] == block_size
    if not whole or key_cache.shape != value_cache.shape or key_cache.dtype != value_cache.dtype:
        raise invalid(WHO, f"expected key_cache and value_cache [blocks, heads, block_size {block_size}, D] of one dtype, got"
                           f" {list(key_cache.shape)} and {list(value_cache.shape)}, {key_cache.dtype} and {value_cache.dtype}")
    if qkv.ndim != 2 or block_tables.ndim != 2:
        raise invalid(WHO, f"expected qkv [tokens, width] and block_tables [batch, blocks of a sequence], got {list(qkv.shape)} and"
                           f" {list(block_tables.shape)}")
    _, kv_heads, _, depth = key_cache.shape
    heads, rest = divmod(qkv.shape[1] - 2 * kv_heads * depth, depth)
    if rest or heads <= 0 or heads % kv_heads:
        raise invalid(WHO, f"qkv has {qkv.shape[1]} columns, expected (heads + 2 · {kv_heads}) · {depth} of key_cache, with heads a"
                           f" multiple of {kv_heads}")


def _check_floats(tokens, cache, before, masks):
    """Refuses integers that no scale makes floats, and values before the prompt or masks of other sequences."""
    if tokens.value.dtype not in FLOATS or (cache.scales is None and cache.parts[0].dtype not in FLOATS):
        raise invalid(WHO, f"expected qkv and caches of floats (or, with their scales, of int32 and uint8), got {tokens.value.dtype} and"
                           f" {cache.parts[0].dtype}")
    for t in before or ():
        if t is None or t.ndim != 4 or t.shape[:2] != [tokens.batch, cache.heads] or t.shape[3] != cache.depth or t.dtype not in FLOATS:
            raise invalid(WHO, f"pre_key_cache and pre_value_cache: expected floats [{tokens.batch}, {cache.heads}, length, {cache.depth}],"
                               f" got {None if t is None else list(t.shape)}")
    for name, t in masks.items():
        if t is not None and (t.ndim != 4 or t.shape[0] not in (1, tokens.batch) or t.shape[1] not in (1, tokens.heads)):
            raise invalid(WHO, f"{name} is {list(t.shape)}, expected [{tokens.batch}, 1 or {tokens.heads}, queries, keys]")


class _Tokens:
    """The new tokens of a batch: query [tokens, heads, D], key and value, of whom each is (owner) and where in it (place)."""

    def __init__(self, wide, cache, lengths, starts, longest):
        self.cache, self.count, self.batch = cache, wide.shape[0], cache.tables.shape[0]
        self.heads = wide.shape[1] // cache.depth - 2 * cache.heads
        wide = _core.reshape(wide, [self.count, -1, cache.depth])
        self.turning, self.value = wide[:, :self.heads + cache.heads], wide[:, self.heads + cache.heads:]
        self.begins, self.cached, self.now = (_core.reshape(_core.cast(t, "int64"), [-1]) for t in lengths)
        self.starts = _core.reshape(_core.cast(starts, "int64"), [-1])
        if any(t.shape[0] != self.batch for t in (self.begins, self.cached, self.now)) or self.starts.shape[0] != self.batch + 1:
            raise invalid(WHO, f"block_tables has {self.batch} sequences; expected as many lengths, and one more in cu_seqlens_q, got"
                               f" {[t.shape[0] for t in (self.begins, self.cached, self.now, self.starts)]}")
        self.program = any(t.is_symbolic for t in (self.begins, self.cached, self.now, self.starts))
        self._plan(self.count if longest <= 0 else min(longest, self.count))
        names = _core.arange(0, self.count, 1, "int64")
        self.owner = _core.searchsorted(self.starts[1:], names, right=True)
        self.index = names - _core.gather(self.starts, self.owner, 0)
        self.place = self.index + _core.gather(self.cached, self.owner, 0)

    def _plan(self, longest):
        """Sets the greatest lengths: of sequences that begin, of what others add, and of what these see in the cache."""
        self.even = False
        if self.program:
            self.begun, self.added, self.end = longest, longest, self.cache.capacity
            return
        begins, cached, now = self.begins.tolist(), self.cached.tolist(), self.now.tolist()
        if sum(now) != self.count:
            raise invalid(WHO, f"seq_lens_this_time adds up to {sum(now)} tokens, qkv has {self.count}")
        starts = [sum(now[:b]) for b in range(self.batch + 1)]
        if min(begins + cached + now, default=0) < 0 or self.starts.tolist() != starts:
            raise invalid(WHO, f"expected lengths from 0 and cu_seqlens_q {starts} of them, got {self.starts.tolist()}")
        going = [b for b in range(self.batch) if now[b] and not begins[b]]
        self.begun = max((now[b] for b in range(self.batch) if begins[b]), default=0)
        self.added = max((now[b] for b in going), default=0)
        self.end = max((cached[b] + now[b] for b in going), default=0)
        self.even = len(set(now)) == 1
        self.full = max((c + n for c, n in zip(cached, now)), default=0)

    def turn(self, table, by_pairs):
        """Turns queries and keys by their positions."""
        depth = self.cache.depth
        if table.ndim != 5 or table.shape[0] != 2 or table.shape[1] not in (1, self.batch) or table.shape[4] not in (depth // 2, depth):
            raise invalid(WHO, f"rope_emb is {list(table.shape)}, expected [2, 1, positions, 1, {depth // 2}]")
        if not self.program and self.full > table.shape[2]:
            raise invalid(WHO, f"rope_emb has {table.shape[2]} positions, expected {self.full}")
        rows = self.place if table.shape[1] == 1 else self.place + self.owner * table.shape[2]
        cos, sin = _core.unsqueeze(_core.gather(_core.reshape(table, [2, -1, table.shape[4]]), rows, 1), [2]).unbind(0)
        if table.shape[4] != depth:
            cos, sin = (_core.reshape(_core.stack([t, t], -1), [-1, 1, depth]) if by_pairs else _core.concat([t, t], -1)
                        for t in (cos, sin))
        table = of_dtype(table, _core.float64 if self.turning.dtype == _core.float64 else _core.float32)
        whole = of_dtype(self.turning, table.dtype)
        self.turning = of_dtype(turned(whole, cos, sin, by_pairs), self.turning.dtype)

    def attend(self, before, mask, tgt_mask):
        """Writes keys and values into the cache; attention [tokens, heads · D]."""
        query, key = self.turning[:, :self.heads], self.turning[:, self.heads:]
        skipped = 0 if before is None else before[0].shape[2]
        if not self.program and self.full + skipped > self.cache.capacity:
            raise invalid(WHO, f"block_tables have {self.cache.capacity} slots a sequence, expected {self.full + skipped}")
        starting = [self._padded(t, self.begun) for t in (query, key, self.value)] if self.begun else None
        if self.begun and self.cache.dynamic:
            there = _core.arange(0, self.begun, 1, "int64") < _core.unsqueeze(self.now, [1])
            self.cache.measure(starting[1:], there, self.begins > 0)
        self.cache.write(key, self.value, self.owner, self.place + skipped)
        if before is not None and self.begun:
            self._write_before(before)
        parts = []
        if self.begun:
            parts.append(self._flat(self._from_start(*starting, before, mask)))
        if self.added:
            parts.append(self._flat(self._going_on(self._padded(query, self.added), skipped, tgt_mask)))
        if not parts:
            return _core.full([0, self.heads * self.cache.depth], 0.0, query.dtype)
        if len(parts) == 1:
            return parts[0]
        return _core.where(_core.unsqueeze(_core.gather(self.begins, self.owner, 0) > 0, [1]), *parts)

    def _write_before(self, before):
        if self.program:
            raise NotImplementedError(f"(Unimplemented) {WHO}: pre_key_cache needs lengths that are known, which those of a program"
                                      " are not")
        rows = _core.reshape(_core.nonzero(self.begins > 0), [-1])
        self.cache.write_before([_core.gather(t, rows, 0) for t in before], rows)

    def _padded(self, x, length):
        """[batch, length, …] of [tokens, …]: behind a sequence's end is what follows."""
        if self.even and length * self.batch == self.count:
            return _core.reshape(x, [self.batch, length, *x.shape[1:]])
        rows = _core.unsqueeze(self.starts[:self.batch], [1]) + _core.arange(0, length, 1, "int64")
        rows = _core.reshape(_core.clip(rows, 0, self.count - 1), [-1])
        return _core.reshape(_core.gather(x, rows, 0), [self.batch, length, *x.shape[1:]])

    def _flat(self, x):
        """[tokens, heads · D] of [batch, length, heads, D]."""
        length = x.shape[1]
        x = _core.reshape(x, [self.batch * length, -1])
        if self.even and length * self.batch == self.count:
            return x
        return _core.gather(x, self.owner * length + _core.clip(self.index, 0, length - 1), 0)

    def _from_start(self, query, key, value, before, mask):
        """Attention [batch, length, heads, D] of sequences over themselves."""
        if before is not None:
            key, value = (_core.concat([of_dtype(_core.transpose(t, [0, 2, 1, 3]), new.dtype), new], 1) for t, new in zip(before, (key, value)))
        if mask is not None:
            if mask.shape[2] < query.shape[1] or mask.shape[3] < key.shape[1]:
                raise invalid(WHO, f"mask is {list(mask.shape)}, expected [batch, 1, {query.shape[1]}, {key.shape[1]}] or more")
            there = self.now + (key.shape[1] - query.shape[1])
            there = _core.arange(0, key.shape[1], 1, "int64") < _core.reshape(there, [self.batch, 1, 1, 1])
            mask = of_dtype(mask[:, :, :query.shape[1], :key.shape[1]], query.dtype)
            mask = _core.where(there, mask, _core.full([], FAR, query.dtype))
        return _core.scaled_dot_product_attention(query, key, value, mask, 0.0, mask is None, False)[0]

    def _going_on(self, query, skipped, mask):
        """Attention [batch, length, heads, D] of tokens over the cache."""
        batch, length, heads, depth = query.shape
        rows = self.cache.rows(self.end + skipped)
        slots = rows.shape[2] * self.cache.size
        query = _core.reshape(_core.transpose(query * depth ** -0.5, [0, 2, 1, 3]), [batch, self.cache.heads, -1, depth])
        scores = _core.matmul(query, self.cache.read(0, rows, query.dtype), False, True)  # keys' memory is free for the values
        scores = _core.reshape(scores, [batch, heads, length, slots])
        last = _core.unsqueeze(self.cached + skipped, [1]) + _core.arange(0, length, 1, "int64")
        seen = _core.arange(0, slots, 1, "int64") <= _core.reshape(last, [batch, 1, length, 1])
        if mask is not None:
            scores = scores + self._fitted(mask, slots, skipped, scores.dtype)
        scores = _core.where(seen, scores, _core.full([], float("-inf"), scores.dtype))
        weights = _core.reshape(_core.softmax(scores, -1), [batch, self.cache.heads, -1, slots])
        out = _core.reshape(_core.matmul(weights, self.cache.read(1, rows, query.dtype)), [batch, heads, length, depth])
        return _core.transpose(out, [0, 2, 1, 3])

    def _fitted(self, mask, slots, skipped, dtype):
        """mask [batch, 1 or heads, 1, slots]: cut, or lengthened where nobody looks."""
        given = mask.shape[3]
        if given < self.end + skipped and not self.program:
            raise invalid(WHO, f"tgt_mask is for {given} slots, expected at least {self.end + skipped}")
        mask = of_dtype(mask[..., :slots], dtype)
        if given >= slots:
            return mask
        return _core.concat([mask, _core.full([*mask.shape[:3], slots - given], 0.0, dtype)], -1)
