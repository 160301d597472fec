"""Recurrent cells: a cell of one's own in nn.RNN and nn.BiRNN, GRU and SimpleRNN stacks, states carried on."""
import math

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

from common import say, seeded


class MinimalGatedCell(nn.RNNCellBase):
    """One gate: f = σ(W[x, h]), h' = (1 − f) h + f tanh(U[x, f h])."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        std = 1.0 / math.sqrt(hidden_size)
        self.hidden_size = hidden_size
        attr = paddle.ParamAttr(initializer=nn.initializer.Uniform(-std, std))
        self.gate = self.create_parameter([input_size + hidden_size, hidden_size], attr)
        self.cand = self.create_parameter([input_size + hidden_size, hidden_size], attr)
        self.bias = self.create_parameter([hidden_size], is_bias=True)

    def forward(self, inputs, states=None):
        if states is None:
            states = self.get_initial_states(inputs, self.state_shape)
        f = F.sigmoid(paddle.matmul(paddle.concat([inputs, states], axis=-1), self.gate) + self.bias)
        c = paddle.tanh(paddle.concat([inputs, f * states], axis=-1) @ self.cand)
        h = (1.0 - f) * states + f * c
        return h, h

    @property
    def state_shape(self):
        return (self.hidden_size,)


class Tagger(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.rnn = nn.RNN(MinimalGatedCell(8, 10))
        self.both = nn.BiRNN(nn.LSTMCell(10, 6), nn.LSTMCell(10, 6))
        self.gru = nn.GRU(12, 9, num_layers=2)
        self.simple = nn.SimpleRNN(9, 7, activation="relu", direction="bidirectional")
        self.tag = nn.Linear(14, 5)

    def forward(self, ids, lengths, state=None):
        x = self.embedding(ids)
        x, last = self.rnn(x)
        x, _ = self.both(x, sequence_length=lengths)
        x, state = self.gru(x, state)
        x, _ = self.simple(x, sequence_length=lengths)
        return self.tag(x), last, state


def main():
    rng = np.random.RandomState(0)
    ids = rng.randint(0, 20, [24, 9]).astype("int64")
    tags = paddle.to_tensor((ids + np.roll(ids, 1, axis=1)) % 5)
    lengths = paddle.to_tensor(rng.randint(3, 10, [24]).astype("int32"))
    ids = paddle.to_tensor(ids)
    model = seeded(Tagger(), 4)
    print([n for n, _ in model.named_parameters()])
    clip = nn.ClipGradByNorm(clip_norm=1.0)
    optimizer = paddle.optimizer.RMSProp(learning_rate=0.005, rho=0.9, momentum=0.5, grad_clip=clip,
                                         parameters=model.parameters())
    mask = F.sequence_mask if hasattr(F, "sequence_mask") else nn.functional.extension.sequence_mask
    weights = mask(lengths, maxlen=9, dtype="float32")
    state = None
    for step in range(8):
        logits, last, state = model(ids, lengths, None if state is None else state.detach())
        loss = F.cross_entropy(logits, tags, reduction="none")
        loss = (loss.reshape([24, 9]) * weights).sum() / weights.sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_gradients()
        say(f"step {step}", loss, last.mean(), state.abs().sum())
    model.eval()
    cell = nn.GRUCell(4, 3)
    seeded(cell, 9)
    h = paddle.zeros([2, 3])
    for t in range(4):
        y, h = cell(paddle.full([2, 4], 0.1 * t), h)
    say("cell", *y.flatten().tolist())


if __name__ == "__main__":
    main()
