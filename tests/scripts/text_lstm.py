"""Sentiment of synthetic reviews: padded batches, Embedding with padding_idx, a bidirectional LSTM with lengths."""
import numpy as np
import paddle
import paddle.nn as nn
from paddle.io import DataLoader, Dataset

from common import say, seeded

VOCAB, PAD, MAX_LEN = 60, 0, 12


def make_reviews(n, seed):
    """Words below 30 are kind, above are not; the label is the majority."""
    rng = np.random.RandomState(seed)
    reviews = []
    for _ in range(n):
        words = rng.randint(1, VOCAB, size=rng.randint(3, MAX_LEN + 1))
        reviews.append((words.astype("int64"), int((words < 30).mean() > 0.5)))
    return reviews


class Reviews(Dataset):
    def __init__(self, n, seed):
        self.items = make_reviews(n, seed)

    def __getitem__(self, i):
        return self.items[i]

    def __len__(self):
        return len(self.items)


def pad_batch(samples):
    longest = max(len(words) for words, _ in samples)
    ids = np.full([len(samples), longest], PAD, "int64")
    for i, (words, _) in enumerate(samples):
        ids[i, :len(words)] = words
    lengths = np.array([len(words) for words, _ in samples], "int64")
    return ids, lengths, np.array([label for _, label in samples], "int64")


class LSTMClassifier(nn.Layer):
    def __init__(self, hidden=16, layers=2):
        super().__init__()
        self.embedder = nn.Embedding(VOCAB, 12, padding_idx=PAD)
        self.lstm = nn.LSTM(12, hidden, num_layers=layers, direction="bidirect", dropout=0.0)
        self.fc = nn.Linear(hidden * 2, 16)
        self.output_layer = nn.Linear(16, 2)

    def forward(self, text, seq_len):
        embedded = self.embedder(text)
        encoded, (last_hidden, last_cell) = self.lstm(embedded, sequence_length=seq_len)
        pooled = paddle.concat((last_hidden[-2, :, :], last_hidden[-1, :, :]), axis=1)
        mask = paddle.unsqueeze((text != PAD).astype("float32"), -1)
        mean = (encoded * mask).sum(axis=1) / mask.sum(axis=1)
        return self.output_layer(paddle.tanh(self.fc(pooled + mean)))


def main():
    np.random.seed(5)
    train = DataLoader(Reviews(96, 1), batch_size=16, shuffle=True, collate_fn=pad_batch, return_list=True)
    dev = DataLoader(Reviews(40, 2), batch_size=20, collate_fn=pad_batch)
    model = seeded(LSTMClassifier(), 2)
    criterion = nn.CrossEntropyLoss()
    metric = paddle.metric.Accuracy()
    optimizer = paddle.optimizer.Adam(parameters=model.parameters(), learning_rate=5e-3)
    for epoch in range(3):
        model.train()
        for step, (ids, lengths, labels) in enumerate(train, start=1):
            logits = model(ids, lengths)
            loss = criterion(logits, labels)
            probs = nn.functional.softmax(logits, axis=1)
            correct = metric.compute(probs, paddle.unsqueeze(labels, -1))
            metric.update(correct)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            if step % 2 == 0:
                say(f"step {epoch}.{step}", loss)
        say("train accuracy", metric.accumulate())
        metric.reset()
        model.eval()
        with paddle.no_grad():
            for ids, lengths, labels in dev:
                metric.update(metric.compute(model(ids, lengths), labels.unsqueeze(1)))
        say("dev accuracy", metric.accumulate())
        metric.reset()
    ids, lengths, _ = pad_batch([(np.array([3, 4, 5, 40]), 1), (np.array([50, 51]), 0)])
    for row in nn.functional.softmax(model(paddle.to_tensor(ids), paddle.to_tensor(lengths))).tolist():
        say("predict", *row)


if __name__ == "__main__":
    main()
