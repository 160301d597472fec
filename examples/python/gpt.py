"""A small GPT on a repeated text: causal attention by hand, tied weights, accumulation, sampling with a cache."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

from common import say, seeded

TEXT = "the quick brown fox jumps over the lazy dog and the dog sleeps while the fox runs. " * 6
CHARS = sorted(set(TEXT))
D, HEADS, CONTEXT = 32, 4, 24


class Attention(nn.Layer):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.register_buffer("mask", paddle.tril(paddle.ones([CONTEXT, CONTEXT], dtype="bool")), persistable=False)

    def forward(self, x, cache=None):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).reshape([n, t, 3, HEADS, D // HEADS]).transpose([2, 0, 3, 1, 4]).unbind(axis=0)
        if cache is not None:
            k, v = paddle.concat([cache[0], k], axis=2), paddle.concat([cache[1], v], axis=2)
        score = paddle.matmul(q * (D // HEADS) ** -0.5, k, transpose_y=True)
        visible = self.mask[k.shape[2] - t:k.shape[2], :k.shape[2]]
        score = paddle.where(visible, score, paddle.full([], -1e9, score.dtype))
        out = paddle.matmul(F.softmax(score, axis=-1), v).transpose([0, 2, 1, 3]).flatten(2)
        return self.proj(out), (k, v)


class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D, epsilon=1e-6)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(approximate=True), nn.Linear(4 * D, D))

    def forward(self, x, cache=None):
        a, cache = self.attention(self.ln1(x), cache)
        x = x + a
        return x + self.mlp(self.ln2(x)), cache


class GPT(nn.Layer):
    def __init__(self, layers=2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(len(CHARS), D), nn.Embedding(CONTEXT, D)
        self.blocks = nn.LayerList([Block() for _ in range(layers)])
        self.ln = nn.LayerNorm(D)

    def forward(self, ids, caches=None, start=0):
        places = paddle.arange(start, start + ids.shape[1], dtype="int64").unsqueeze(0).expand_as(ids)
        x = self.tokens(ids) + self.places(places)
        made = []
        for i, block in enumerate(self.blocks):
            x, cache = block(x, None if caches is None else caches[i])
            made.append(cache)
        return paddle.matmul(self.ln(x), self.tokens.weight, transpose_y=True), made


def main():
    ids = np.array([CHARS.index(c) for c in TEXT], "int64")
    rng = np.random.RandomState(0)
    model = seeded(GPT(), 14)
    decay = [p.name for n, p in model.named_parameters() if not any(w in n for w in ("bias", "ln"))]
    warm = paddle.optimizer.lr.LinearWarmup(
        paddle.optimizer.lr.PolynomialDecay(0.01, decay_steps=30, end_lr=1e-3), 4, 0.0, 0.01)
    opt = paddle.optimizer.AdamW(warm, parameters=model.parameters(), weight_decay=0.1, beta2=0.95, epsilon=1e-6,
                                 apply_decay_param_fun=lambda n: n in decay,
                                 grad_clip=nn.ClipGradByGlobalNorm(1.0))
    for step in range(12):
        total = 0.0
        for _ in range(2):
            at = rng.randint(0, len(ids) - CONTEXT - 1, 8)
            batch = paddle.to_tensor(np.stack([ids[i:i + CONTEXT + 1] for i in at]))
            logits, _ = model(batch[:, :-1])
            loss = F.cross_entropy(logits.reshape([-1, len(CHARS)]), batch[:, 1:].reshape([-1])) / 2
            loss.backward()
            total += loss.item()
        opt.step()
        opt.clear_grad(set_to_zero=False)
        warm.step()
        if step % 3 == 2:
            say(f"step {step}", total, np.exp(total), opt.get_lr())
    model.eval()
    with paddle.no_grad():
        word, caches, out = paddle.to_tensor([[CHARS.index("t")]]), None, []
        for t in range(CONTEXT - 1):
            logits, caches = model(word, caches, t)
            value, index = paddle.topk(F.softmax(logits[:, -1] / 0.8), k=3)
            word = index[:, :1]
            out.append(CHARS[int(word)])
        full, _ = model(paddle.to_tensor([[CHARS.index(c) for c in "t" + "".join(out[:-1])]]))
        print("text", repr("".join(out)))
        say("cache agrees", F.softmax(logits[0, -1]).max(), F.softmax(full[0, -1]).max(), value.sum())


if __name__ == "__main__":
    main()
