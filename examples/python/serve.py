"""A small language model, trained with plain layers and served with caches: prompts of several lengths, one token a step."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.incubate.nn import FusedMultiTransformer

from common import say, seeded

TEXT = "the quick brown fox jumps over the lazy dog and the dog sleeps while the fox runs. " * 4
CHARS = sorted(set(TEXT))
D, HEADS, LAYERS, CONTEXT = 32, 4, 2, 48


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(len(CHARS), D), nn.Embedding(CONTEXT, D)
        layer = nn.TransformerEncoderLayer(D, HEADS, 4 * D, dropout=0.0, activation="gelu", normalize_before=True)
        self.body, self.norm = nn.TransformerEncoder(layer, LAYERS), nn.LayerNorm(D)

    def embed(self, ids, places):
        return self.tokens(ids) + self.places(places)

    def head(self, x):
        return paddle.matmul(self.norm(x), self.tokens.weight, transpose_y=True)

    def forward(self, ids):
        places = paddle.arange(ids.shape[1]).unsqueeze(0).expand_as(ids)
        return self.head(self.body(self.embed(ids, places), causal(ids.shape[1])))


def causal(n):
    """Added to scores: a token does not see those behind it."""
    return paddle.triu(paddle.full([1, 1, n, n], -1e4), diagonal=1)


def fused(body):
    """The layers of a TransformerEncoder as one FusedMultiTransformer with the same weights."""
    made = FusedMultiTransformer(D, HEADS, 4 * D, num_layers=LAYERS)
    for i, layer in enumerate(body.layers):
        heads = [layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj]
        made.qkv_weights[i].set_value(paddle.stack([p.weight.t() for p in heads]).reshape([3, HEADS, D // HEADS, D]))
        made.qkv_biases[i].set_value(paddle.stack([p.bias for p in heads]).reshape([3, HEADS, D // HEADS]))
        for name, part in (("linear", layer.self_attn.out_proj), ("ffn1", layer.linear1), ("ffn2", layer.linear2)):
            getattr(made, name + "_weights")[i].set_value(part.weight)
            getattr(made, name + "_biases")[i].set_value(part.bias)
        for name, part in (("ln", layer.norm1), ("ffn_ln", layer.norm2)):
            getattr(made, name + "_scales")[i].set_value(part.weight)
            getattr(made, name + "_biases")[i].set_value(part.bias)
    made.eval()
    return made


class Server:
    """Generates for a batch of prompts. step: how many tokens each sequence has so far, its next one follows."""

    def __init__(self, model, prompts):
        self.model, self.body = model, fused(model.body)
        self.lengths, longest = np.array([len(p) for p in prompts]), max(len(p) for p in prompts)
        ids = paddle.to_tensor(np.array([[CHARS.index(c) for c in p.ljust(longest)] for p in prompts], "int64"))
        self.caches = [paddle.zeros([2, len(prompts), HEADS, CONTEXT, D // HEADS]) for _ in range(LAYERS)]
        places = paddle.arange(longest).unsqueeze(0).expand_as(ids)
        x, _ = self.body(model.embed(ids, places), causal(longest), self.caches, seq_lens=self.counts())
        last = paddle.stack([paddle.arange(len(prompts)), paddle.to_tensor(self.lengths - 1)], axis=1)
        self.logits = model.head(paddle.gather_nd(x, last))

    def counts(self):
        return paddle.to_tensor(self.lengths.astype("int32"))

    def step(self, token):
        places = paddle.to_tensor(self.lengths[:, None])
        x, _ = self.body(self.model.embed(token, places), caches=self.caches, seq_lens=self.counts(),
                         time_step=paddle.to_tensor([int(self.lengths.max())], "int32"))
        self.lengths = self.lengths + 1
        self.logits = self.model.head(x[:, 0])


class Recomputing:
    """The same without caches, for builds without the kernels: Paddle has them on GPUs alone."""

    def __init__(self, model, prompts):
        self.model, self.texts = model, [[CHARS.index(c) for c in p] for p in prompts]
        self.compute()

    def step(self, token):
        for text, new in zip(self.texts, token.reshape([-1]).tolist()):
            text.append(new)
        self.compute()

    def compute(self):
        self.logits = paddle.concat([self.model(paddle.to_tensor([text]))[:, -1] for text in self.texts])


def generate(model, prompts, count):
    """(count more characters of each prompt, the likelihoods of all that were chosen)."""
    try:
        server = Server(model, prompts)
    except (AttributeError, RuntimeError):
        server = Recomputing(model, prompts)
    written, likelihoods = [[] for _ in prompts], []
    for i in range(count):
        chance = F.softmax(server.logits, axis=-1)
        token = chance.argmax(axis=-1, keepdim=True)
        likelihoods.append(chance.max(axis=-1).numpy())
        for text, new in zip(written, token.reshape([-1]).tolist()):
            text.append(CHARS[new])
        if i + 1 < count:
            server.step(token)
    return ["".join(text) for text in written], np.stack(likelihoods, 1)


def main():
    ids = np.array([CHARS.index(c) for c in TEXT], "int64")
    rng, model = np.random.RandomState(0), seeded(Model(), 5)
    opt = paddle.optimizer.AdamW(8e-3, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    for step in range(40):
        at = rng.randint(0, len(ids) - 32, 8)
        batch = paddle.to_tensor(np.stack([ids[i:i + 32] for i in at]))
        loss = F.cross_entropy(model(batch[:, :-1]).reshape([-1, len(CHARS)]), batch[:, 1:].reshape([-1]))
        loss.backward()
        opt.step()
        opt.clear_grad()
        if step % 10 == 9:
            say(f"step {step}", loss)
    model.eval()
    prompts = ["the quick", "jumps over the l", "the dog sl"]
    with paddle.no_grad():
        for prompt, (text, chance) in zip(prompts, zip(*generate(model, prompts, 12))):
            print("text", repr(prompt + text))
            say("likelihood", chance.mean(), chance[-1])


if __name__ == "__main__":
    main()
