"""masked_multihead_attention: a step over a cache against float64 formulas, a sequence and head at a time."""
import numpy as np
import proa as paddle
import pytest
from proa.incubate.nn import functional as F
from serving import attention, eight_bits, rotate

B, H, S, D = 3, 2, 9, 8


def numbers(seed, *shape, spread=1.0):
    return np.random.default_rng(seed).uniform(-spread, spread, shape)


def expect(x, cache, at, bias=None, mask=None, angle=None, by_pairs=True, live=None):
    """(attention, the cache after the step) of float64 x [B, 3, H, D]."""
    x, cache = x + (0 if bias is None else bias), cache.copy()
    if angle is not None:
        x[:, :2] = rotate(x[:, :2], angle[:, None, None], by_pairs)
    out = np.zeros((len(x), x.shape[2], x.shape[3]))
    for b in range(len(x)):
        if live is not None and not live[b]:
            continue
        cache[:, b, :, at[b]] = x[b, 1:]
        for h in range(x.shape[2]):
            k, v = cache[:, b, h, :at[b] + 1]
            out[b, h] = attention(x[b, 0, h][None], k, v, 0.0 if mask is None else mask[b, h % mask.shape[1], 0, :at[b] + 1])[0]
    return out.reshape(len(x), -1), cache


def run(x, cache, dtype="float32", **more):
    tensors = {k: paddle.to_tensor(v) if isinstance(v, np.ndarray) else v for k, v in more.items()}
    kept = paddle.to_tensor(cache.astype(dtype))
    result = F.masked_multihead_attention(paddle.to_tensor(x.reshape(len(x), -1).astype(dtype)), kept, **tensors)
    assert result[1] is kept
    return result[0], kept


def check(got, cache, want, tol=2e-6):
    np.testing.assert_allclose(got.astype("float32").numpy(), want[0], rtol=tol, atol=tol)
    np.testing.assert_allclose(cache.astype("float32").numpy(), want[1], rtol=tol, atol=tol)


@pytest.mark.parametrize("heads", [1, H])
def test_slot_is_the_last_of_the_mask(heads):
    x, cache, mask = numbers(0, B, 3, H, D), numbers(1, 2, B, H, S, D), numbers(2, B, heads, 1, 6, spread=3)
    bias = numbers(3, 3, H, D)
    got = run(x, cache, src_mask=mask.astype("float32"), bias=bias.astype("float32"))
    check(*got, expect(x, cache, [5] * B, bias, mask))


def test_lengths_of_sequences_and_ended_ones():
    x, cache, mask = numbers(4, B, 3, H, D), numbers(5, 2, B, H, S, D), numbers(6, B, 1, 1, S, spread=3)
    lengths = np.array([[4], [0], [8]], "int32")
    got = run(x, cache, sequence_lengths=lengths, src_mask=mask.astype("float32"))
    check(*got, expect(x, cache, lengths[:, 0], mask=mask, live=[1, 0, 1]))
    same = np.array([3, 3, 3], "int64")
    check(*run(x, cache, sequence_lengths=same), expect(x, cache, same))


@pytest.mark.parametrize("neox", [False, True])
def test_rotary(neox):
    x, cache, at = numbers(7, B, 3, H, D), numbers(8, 2, B, H, S, D), np.array([2, 5, 7], "int32")
    angle = at[:, None] * 10000.0 ** (-np.arange(0, D, 2) / D)
    wide = np.concatenate([angle, angle], 1) if neox else np.repeat(angle, 2, 1)
    table = np.stack([np.cos(wide), np.sin(wide)]).reshape(2, B, 1, 1, D).astype("float32")
    got = run(x, cache, sequence_lengths=at, rotary_tensor=table, rotary_emb_dims=1, use_neox_rotary_style=neox)
    check(*got, expect(x, cache, at, angle=angle, by_pairs=not neox), 1e-5)


def test_two_sections_turn_by_themselves():
    x, cache, at = numbers(9, B, 3, H, D), numbers(10, 2, B, H, S, D), np.array([2, 5, 7], "int32")
    angle = numbers(11, B, 2, D // 4, spread=3)
    wide = np.concatenate([angle, angle], 2).reshape(B, D)
    table = np.stack([np.cos(wide), np.sin(wide)]).reshape(2, B, 1, 1, D).astype("float32")
    turned = x.copy()
    for part in range(2):
        cut = slice(part * D // 2, (part + 1) * D // 2)
        turned[:, :2, :, cut] = rotate(x[:, :2, :, cut], angle[:, None, None, part], False)
    got = run(x, cache, sequence_lengths=at, rotary_tensor=table, rotary_emb_dims=2, use_neox_rotary_style=True)
    check(*got, expect(turned, cache, at), 1e-5)


@pytest.mark.parametrize("lengths", [None, [5, 5, 3, 3]])
def test_beams_take_slots_of_others(lengths):
    beams, batch = 2, 4
    x, cache, mask = numbers(12, batch, 3, H, D), numbers(13, 2, batch, H, S, D), numbers(14, batch, 1, 1, 6)
    origin = np.random.default_rng(15).integers(0, beams, (batch // beams, beams, S)).astype("int32")
    at = lengths or [5] * batch
    more = {} if lengths is None else {"sequence_lengths": np.array(lengths, "int32")}
    got, kept = run(x, cache, beam_cache_offset=origin, src_mask=mask.astype("float32"), **more)
    written = expect(x, cache, at)[1]
    for b in range(batch):
        for h in range(H):
            of = [b // beams * beams + origin[b // beams, b % beams, t] if t < at[b] else b for t in range(at[b] + 1)]
            k, v = (np.stack([written[i, o, h, t] for t, o in enumerate(of)]) for i in (0, 1))
            want = attention(x[b, 0, h][None], k, v, mask[b, 0, 0, :at[b] + 1])[0]
            np.testing.assert_allclose(got.numpy()[b, h * D:(h + 1) * D], want, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(kept.numpy(), written, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("round_type", [0, 1])
def test_integers_come_and_go(round_type):
    ints = np.random.default_rng(16).integers(-50, 50, (B, 3, H, D)).astype("int32")
    scale, bias, cache = numbers(17, 3, H, D, spread=0.02), numbers(18, 3, H, D), numbers(19, 2, B, H, S, D)
    shift, smooth = numbers(20, H * D), numbers(21, H * D)
    out, after = expect(ints * scale, cache, [5] * B, bias)
    settings = {"bias": bias.astype("float32"), "sequence_lengths": np.array([5] * B, "int32"), "compute_dtype": "fp32"}
    kept = paddle.to_tensor(cache.astype("float32"))
    got = F.masked_multihead_attention(
        paddle.to_tensor(ints.reshape(B, -1)), kept, qkv_out_scale=paddle.to_tensor(scale.astype("float32")),
        out_shift=paddle.to_tensor(shift.astype("float32")), out_smooth=paddle.to_tensor(smooth.astype("float32")), out_scale=0.7,
        quant_round_type=round_type, quant_max_bound=126.0, quant_min_bound=-126.0,
        **{k: paddle.to_tensor(v) if isinstance(v, np.ndarray) else v for k, v in settings.items()})[0]
    assert got.dtype == paddle.int8
    np.testing.assert_allclose(kept.numpy(), after, rtol=1e-5, atol=1e-5)
    exact = 126 * 0.7 * (out + shift) * smooth
    want = eight_bits(exact, round_type, 126, -126)
    clear = np.abs(np.abs(exact - np.trunc(exact)) - 0.5) > 1e-3  # ties may fall either way after float32
    np.testing.assert_array_equal(got.numpy()[clear], want[clear])


def test_rounding_of_ties():
    from proa.incubate.nn.quantized import to_int8
    x = paddle.to_tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49, 3.0, 300.0, -300.0])
    assert to_int8(x, 0.5, 0, 2.0, -100.0).tolist() == [0, 2, 2, 0, -2, -2, 0, 2, 2, -100]
    assert to_int8(x, 0.01, 1, 100.0, -100.0).tolist() == [1, 2, 3, -1, -2, -3, 0, 3, 100, -100]


def test_rows_move_to_where_offsets_say():
    x, cache = numbers(22, B, 3, H, D), numbers(23, 2, B, H, S, D)
    lengths, offsets = np.array([4, 0, 8], "int32"), np.array([0, 0, 1], "int32")
    got = run(x, cache, sequence_lengths=lengths, cum_offsets=offsets)[0]
    out = expect(x, cache, lengths, live=[1, 0, 1])[0]
    np.testing.assert_allclose(got.numpy(), np.stack([out[0], out[2], 0 * out[0]]), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype,tol", [("float16", 4e-3), ("bfloat16", 3e-2), ("float64", 1e-12)])
def test_other_dtypes(dtype, tol):
    x, cache, at = numbers(24, B, 3, H, D), numbers(25, 2, B, H, S, D), np.array([2, 5, 7], "int32")
    kept = paddle.to_tensor(cache).astype(dtype)
    got = F.masked_multihead_attention(paddle.to_tensor(x.reshape(B, -1)).astype(dtype), kept,
                                       sequence_lengths=paddle.to_tensor(at))[0]
    assert got.dtype == kept.dtype
    np.testing.assert_allclose(got.astype("float64").numpy(), expect(x, cache, at)[0], rtol=tol, atol=tol)


def test_programs_read_lengths_when_they_run():
    x, cache = numbers(26, B, 3, H, D), numbers(27, 2, B, H, S, D)
    step = paddle.jit.to_static(lambda x, cache, lengths: F.masked_multihead_attention(x, cache, sequence_lengths=lengths))
    kept = paddle.to_tensor(cache.astype("float32"))
    for lengths in ([4, 0, 8], [2, 3, 1]):
        cache = kept.numpy().astype("float64")
        with paddle.no_grad():
            out = step(paddle.to_tensor(x.reshape(B, -1).astype("float32")), kept, paddle.to_tensor(lengths, "int32"))
        check(out[0], kept, expect(x, cache, lengths, live=[n > 0 for n in lengths]))


def test_errors_name_what_came():
    x, cache = paddle.rand([B, 3 * H * D]), paddle.rand([2, B, H, S, D])
    for text, settings in (("sequence_lengths or src_mask", {}),
                           ("expected lengths from 0 to 8, got 9", {"sequence_lengths": paddle.to_tensor([1, 2, 9])}),
                           ("expected lengths from 0 to 8, got -1", {"sequence_lengths": paddle.to_tensor([1, -1, 3])}),
                           ("one length a sequence, 3, got 2", {"sequence_lengths": paddle.to_tensor([1, 2])}),
                           ("at least 4", {"sequence_lengths": paddle.to_tensor([1, 2, 3]), "src_mask": paddle.rand([B, 1, 1, 2])}),
                           ("the mask is", {"src_mask": paddle.rand([B, 5, 1, 2])}),
                           ("rotary_tensor", {"src_mask": paddle.rand([B, 1, 1, 2]), "rotary_emb_dims": 1}),
                           ("compute_dtype", {"src_mask": paddle.rand([B, 1, 1, 2]), "compute_dtype": "int"}),
                           ("beam_cache_offset", {"src_mask": paddle.rand([B, 1, 1, 2]), "beam_cache_offset": paddle.ones([1, 2, 9])})):
        with pytest.raises(ValueError, match="masked_multihead_attention: .*" + text):
            F.masked_multihead_attention(x, cache, **settings)
    with pytest.raises(ValueError, match="cache_kv: expected"):
        F.masked_multihead_attention(x)
    with pytest.raises(ValueError, match="x is"):
        F.masked_multihead_attention(x[:, :4], cache, src_mask=paddle.rand([B, 1, 1, 2]))
