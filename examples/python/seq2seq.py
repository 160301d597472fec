"""Sequence to sequence with attention: reverses a string of numbers, teacher forcing, then greedy decoding."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

from common import say, seeded

VOCAB, BOS, EOS, LENGTH, EMBED, HIDDEN = 14, 0, 1, 6, 16, 24


def make_data(n, seed):
    rng = np.random.RandomState(seed)
    source = rng.randint(2, VOCAB, [n, LENGTH])
    target = np.concatenate([source[:, ::-1], np.full([n, 1], EOS)], 1)
    shifted = np.concatenate([np.full([n, 1], BOS), target[:, :-1]], 1)
    return source.astype("int64"), shifted.astype("int64"), np.expand_dims(target, 2).astype("int64")


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, EMBED)
        self.lstm = nn.LSTM(input_size=EMBED, hidden_size=HIDDEN, num_layers=1)

    def forward(self, x):
        return self.lstm(self.emb(x))


class AttentionDecoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, EMBED)
        self.lstm = nn.LSTM(input_size=EMBED + HIDDEN, hidden_size=HIDDEN)
        self.attention_linear1 = nn.Linear(HIDDEN * 2, HIDDEN)
        self.attention_linear2 = nn.Linear(HIDDEN, 1)
        self.outlinear = nn.Linear(HIDDEN, VOCAB)

    def forward(self, x, previous_hidden, previous_cell, encoder_outputs):
        x = self.emb(x)
        attention_inputs = paddle.concat(
            (encoder_outputs, paddle.tile(previous_hidden, repeat_times=[1, LENGTH, 1])), axis=-1)
        hidden = F.tanh(self.attention_linear1(attention_inputs))
        weights = F.softmax(paddle.squeeze(self.attention_linear2(hidden), axis=-1))
        context = paddle.sum(paddle.expand(paddle.unsqueeze(weights, -1), encoder_outputs.shape) * encoder_outputs, 1)
        context = paddle.unsqueeze(context, 1)
        lstm_input = paddle.concat((x, context), axis=-1)
        previous_hidden = paddle.transpose(previous_hidden, [1, 0, 2])
        previous_cell = paddle.transpose(previous_cell, [1, 0, 2])
        x, (hidden, cell) = self.lstm(lstm_input, (previous_hidden, previous_cell))
        output = self.outlinear(paddle.squeeze(x, axis=1))
        return output, (paddle.transpose(hidden, [1, 0, 2]), paddle.transpose(cell, [1, 0, 2])), weights


def main():
    encoder, decoder = seeded(Encoder(), 1), seeded(AttentionDecoder(), 2)
    opt = paddle.optimizer.Adam(learning_rate=0.01, parameters=encoder.parameters() + decoder.parameters())
    source, shifted, target = make_data(128, 3)
    for epoch in range(3):
        perm = np.random.RandomState(epoch).permutation(len(source))
        source, shifted, target = source[perm], shifted[perm], target[perm]
        for begin in range(0, len(source), 32):
            x = paddle.to_tensor(source[begin:begin + 32])
            y, label = shifted[begin:begin + 32], target[begin:begin + 32]
            encoded, (hidden, cell) = encoder(x)
            hidden, cell = hidden.transpose([1, 0, 2]), cell.transpose([1, 0, 2])
            loss = paddle.zeros([1])
            for i in range(LENGTH + 1):
                logits, (hidden, cell), _ = decoder(paddle.to_tensor(y[:, i:i + 1]), hidden, cell, encoded)
                loss += F.cross_entropy(logits, paddle.to_tensor(label[:, i]))
            loss = loss / (LENGTH + 1)
            loss.backward()
            opt.step()
            opt.clear_grad()
        say(f"epoch {epoch}", loss.numpy()[0])
    encoder.eval(), decoder.eval()
    with paddle.no_grad():
        encoded, (hidden, cell) = encoder(paddle.to_tensor(source[:3]))
        hidden, cell = paddle.transpose(hidden, [1, 0, 2]), paddle.transpose(cell, [1, 0, 2])
        word, words = paddle.full([3, 1], BOS, dtype="int64"), []
        for i in range(LENGTH + 1):
            logits, (hidden, cell), weights = decoder(word, hidden, cell, encoded)
            word = paddle.argmax(logits, axis=1, keepdim=True)
            words.append(word)
        say("attention", *weights.numpy().ravel())
        print("decoded", paddle.concat(words, 1).numpy().tolist())


if __name__ == "__main__":
    main()
