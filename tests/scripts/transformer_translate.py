"""A small Transformer encoder-decoder: masks, Noam rate, label smoothing, greedy decoding with caches."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

from common import say, seeded

VOCAB, PAD, BOS, EOS, D = 16, 0, 1, 2, 16


def pairs(n, seed):
    """Translation: each word w becomes w + 1 (mod the words), in the same order."""
    rng = np.random.RandomState(seed)
    src, tgt = np.zeros([n, 7], "int64"), np.zeros([n, 9], "int64")
    for i in range(n):
        words = rng.randint(3, VOCAB, rng.randint(3, 8))
        src[i, :len(words)] = words
        out = [BOS] + [3 + (w - 2) % (VOCAB - 3) for w in words] + [EOS]
        tgt[i, :len(out)] = out
    return src, tgt


class PositionalEncoding(nn.Layer):
    def __init__(self, size, length=32):
        super().__init__()
        position = np.arange(length)[:, None]
        rate = np.exp(np.arange(0, size, 2) * -(np.log(10000.0) / size))
        table = np.zeros([length, size], "float32")
        table[:, 0::2], table[:, 1::2] = np.sin(position * rate), np.cos(position * rate)
        self.register_buffer("table", paddle.to_tensor(table))

    def forward(self, x, start=0):
        return x + self.table[start:start + x.shape[1]]


class Translator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.src_embedding, self.tgt_embedding = nn.Embedding(VOCAB, D), nn.Embedding(VOCAB, D)
        self.position = PositionalEncoding(D)
        self.transformer = nn.Transformer(d_model=D, nhead=4, num_encoder_layers=2, num_decoder_layers=2,
                                          dim_feedforward=32, dropout=0.0, activation="gelu", normalize_before=True)
        self.generator = nn.Linear(D, VOCAB)

    def source_mask(self, src):
        return ((src == PAD).astype(paddle.get_default_dtype()) * -1e9).unsqueeze([1, 2])

    def forward(self, src, tgt):
        mask = self.source_mask(src)
        causal = paddle.tensor.triu(paddle.full([tgt.shape[1], tgt.shape[1]], float("-inf")), diagonal=1)
        out = self.transformer(self.position(self.src_embedding(src) * D ** 0.5),
                               self.position(self.tgt_embedding(tgt) * D ** 0.5), mask, causal, mask)
        return self.generator(out)

    def greedy(self, src, steps=8):
        mask = self.source_mask(src)
        memory = self.transformer.encoder(self.position(self.src_embedding(src) * D ** 0.5), mask)
        caches = self.transformer.decoder.gen_cache(memory)
        word, words = paddle.full([src.shape[0], 1], BOS, "int64"), []
        for t in range(steps):
            x = self.position(self.tgt_embedding(word) * D ** 0.5, t)
            out, caches = self.transformer.decoder(x, memory, None, mask, caches)
            word = self.generator(out[:, -1:]).argmax(-1)
            words.append(word)
        return paddle.concat(words, axis=-1)


def main():
    model = seeded(Translator(), 6)
    scheduler = paddle.optimizer.lr.NoamDecay(d_model=D, warmup_steps=20, learning_rate=0.5)
    optimizer = paddle.optimizer.AdamW(learning_rate=scheduler, beta1=0.9, beta2=0.98, epsilon=1e-9,
                                       weight_decay=0.01, parameters=model.parameters(),
                                       grad_clip=nn.ClipGradByGlobalNorm(1.0))
    src, tgt = pairs(64, 0)
    for step in range(20):
        pick = np.arange(step * 16, step * 16 + 16) % 64
        x, y = paddle.to_tensor(src[pick]), paddle.to_tensor(tgt[pick])
        logits = model(x, y[:, :-1])
        labels = y[:, 1:]
        smooth = F.label_smooth(F.one_hot(labels, VOCAB), epsilon=0.1)
        loss = F.cross_entropy(logits, smooth, soft_label=True, reduction="none").squeeze(-1)
        keep = (labels != PAD).astype("float32")
        loss = (loss * keep).sum() / keep.sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        scheduler.step()
        if step % 4 == 3:
            say(f"step {step}", loss, optimizer.get_lr())
    model.eval()
    print("greedy", model.greedy(paddle.to_tensor(src[:3])).tolist())


if __name__ == "__main__":
    main()
