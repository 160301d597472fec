"""Wrong arguments of attention over caches: an error that names the function, or a result, never a crash."""
import random

import numpy as np
import pytest

import proa as paddle
from proa.incubate import nn
from proa.incubate.nn import functional as F

HEADS, D, SIZE = 2, 4, 4
ROUNDS, SHARE = 400, 0.07  # calls of each function; of their arguments that are made wrong


def ints(values):
    return paddle.to_tensor(np.array(values, "int32"))


def wrong(draw, value):
    """Another shape, dtype or range of a tensor."""
    return draw.choice([
        lambda: value.flatten(), lambda: value[:1], lambda: value[:0], lambda: value.unsqueeze(0), lambda: paddle.full_like(value, 7),
        lambda: -value, lambda: value.astype(draw.choice(["int64", "float32", "uint8", "float16"]))])()


def one_token(draw):
    optional = {"bias": paddle.rand([3, HEADS, D]), "src_mask": paddle.rand([2, 1, 1, 6]), "out_smooth": paddle.rand([HEADS * D]),
                "cum_offsets": ints([0, 0]), "beam_cache_offset": ints([[[0] * 6, [1] * 6]]), "sequence_lengths": ints([[3], [5]])}
    given = {"x": paddle.rand([2, 3 * HEADS * D]), "cache_kv": paddle.rand([2, 2, HEADS, 6, D]),
             **{k: v for k, v in optional.items() if draw.random() < 0.4}}
    if draw.random() < 0.3:
        return F.masked_multihead_attention, given | {"rotary_tensor": paddle.rand([2, 2, 1, 1, D])}, {"rotary_emb_dims": 1}
    return F.masked_multihead_attention, given, {}


def blocks(draw):
    begun, cached, now = draw.choice([([3, 2], [0, 0], [3, 2]), ([0, 0], [3, 2], [1, 1]), ([0, 4], [2, 0], [1, 4])])
    count, eight, dynamic, starts = sum(now), draw.random() < 0.3, draw.random() < 0.5, ints([0, now[0], sum(now)])
    cache = {n: paddle.zeros([6, HEADS, SIZE, D], "uint8" if eight else "float32") for n in ("key_cache", "value_cache")}
    given = {"qkv": paddle.rand([count, 3 * HEADS * D]), **cache, "seq_lens_encoder": ints(begun), "seq_lens_decoder": ints(cached),
             "seq_lens_this_time": ints(now), "padding_offsets": ints([0] * count), "cum_offsets": ints([0, 0]), "cu_seqlens_q": starts,
             "cu_seqlens_k": starts, "block_tables": ints([[0, 1, 2], [3, 4, 5]])}
    if eight:
        given |= {f"cache_{p}_{w}_scales": paddle.ones([2, HEADS] if dynamic else [HEADS]) for p in "kv" for w in ("quant", "dequant")}
    optional = {"rope_emb": paddle.rand([2, 1, 16, 1, D // 2]), "mask": paddle.rand([2, 1, 4, 4]), "tgt_mask": paddle.rand([2, 1, 1, 12]),
                "qkv_bias": paddle.rand([3 * HEADS * D]), "pre_key_cache": paddle.rand([2, HEADS, 2, D])}
    given |= {k: v for k, v in optional.items() if draw.random() < 0.2}
    return F.block_multihead_attention, given, {"max_seq_len": 4, "block_size": SIZE, "use_dynamic_cachekv_quant": dynamic}


def layers(draw):
    model = nn.FusedMultiTransformer(HEADS * D, HEADS, 12, num_layers=1)
    step = draw.random() < 0.5
    given = {"src": paddle.rand([2, 1 if step else 3, HEADS * D])}
    optional = {"attn_mask": paddle.rand([2, 1, 1, 4] if step else [2, 1, 3, 3]), "seq_lens": ints([3, 2]),
                "rotary_embs": paddle.rand([2, 2, 1, given["src"].shape[1], D])}
    given |= {k: v for k, v in optional.items() if draw.random() < 0.3} | ({"time_step": ints([3])} if step else {})
    cache = paddle.zeros([2, 2, HEADS, 6, D])
    cache = wrong(draw, cache) if draw.random() < SHARE else cache
    return model, given, {"caches": [cache], "rotary_emb_dims": int("rotary_embs" in given)}


@pytest.mark.parametrize("name,make", [("masked_multihead_attention", one_token), ("block_multihead_attention", blocks),
                                       ("fused_multi_transformer", layers)])
def test_wrong_arguments_are_named(name, make):
    draw, refused = random.Random(5), 0
    paddle.seed(1)
    with paddle.no_grad():
        for _ in range(ROUNDS):
            function, given, settings = make(draw)
            given = {k: wrong(draw, v) if draw.random() < SHARE else v for k, v in given.items()}
            try:
                function(**given, **settings)
            except (ValueError, NotImplementedError, AssertionError) as error:
                assert name in str(error), f"{error}: of { {k: [str(v.dtype), v.shape] for k, v in given.items()} }"
                refused += 1
    assert ROUNDS / 20 < refused < ROUNDS * 0.9
