"""Handwritten digits by hand: DataLoader with workers, warm-up, cosine rate, checkpoint and resume."""
import numpy as np
import paddle
import paddle.nn.functional as F
from paddle.io import BatchSampler, DataLoader, Dataset

from common import digits, say, seeded

BATCH_SIZE, EPOCH_NUM = 40, 4


class MyDataset(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __getitem__(self, idx):
        return self.images[idx].reshape([-1]), self.labels[idx]

    def __len__(self):
        return len(self.images)


class MLP(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1 = paddle.nn.Linear(in_features=64, out_features=48)
        self.norm = paddle.nn.LayerNorm(48)
        self.fc2 = paddle.nn.Linear(48, 10, weight_attr=paddle.ParamAttr(learning_rate=0.5), bias_attr=False)
        self.drop = paddle.nn.Dropout(0.0)

    def forward(self, x):
        x = F.gelu(self.norm(self.fc1(x)))
        return self.fc2(self.drop(x))


def build():
    model = seeded(MLP(), 3)
    cosine = paddle.optimizer.lr.CosineAnnealingDecay(learning_rate=0.01, T_max=20, eta_min=1e-4)
    scheduler = paddle.optimizer.lr.LinearWarmup(cosine, warmup_steps=5, start_lr=0.001, end_lr=0.01)
    adam = paddle.optimizer.Adam(learning_rate=scheduler, parameters=model.parameters(), beta1=0.9, beta2=0.99)
    return model, scheduler, adam


def train_one(model, scheduler, adam, loader, epoch):
    model.train()
    for batch_id, data in enumerate(loader()):
        x_data, y_data = data[0], data[1]
        predicts = model(x_data)
        loss = F.cross_entropy(predicts, y_data)
        acc = paddle.metric.accuracy(predicts, y_data)
        loss.backward()
        if batch_id % 4 == 0:
            say(f"epoch {epoch} batch {batch_id}", loss.numpy(), acc.numpy(), adam.get_lr())
        adam.step()
        adam.clear_grad()
        scheduler.step()


@paddle.no_grad()
def validate(model, loader):
    model.eval()
    accuracies, losses = [], []
    for x, y in loader:
        out = model(x)
        losses.append(F.cross_entropy(out, y).item())
        accuracies.append(paddle.metric.accuracy(input=out, label=y, k=2).item())
    say("validate", np.mean(losses), np.mean(accuracies))


def first_half(loader, test_loader):
    model, scheduler, adam = build()
    for epoch in range(EPOCH_NUM // 2):
        train_one(model, scheduler, adam, loader, epoch)
    validate(model, test_loader)
    paddle.save({"model": model.state_dict(), "opt": adam.state_dict(), "epoch": 1}, "digits_loop.ckpt")


def second_half(loader, test_loader):
    model, scheduler, adam = build()
    state = paddle.load("digits_loop.ckpt")
    model.set_state_dict(state["model"])
    adam.set_state_dict(state["opt"])
    say("resumed at", state["epoch"], adam.get_lr(), scheduler.last_epoch)
    for epoch in range(state["epoch"] + 1, EPOCH_NUM):
        train_one(model, scheduler, adam, loader, epoch)
    validate(model, test_loader)


def main():
    np.random.seed(11)
    x, y = digits(500)
    train, test = MyDataset(x[:400], y[:400]), MyDataset(x[400:], y[400:])
    test_loader = DataLoader(test, batch_size=30, num_workers=0, drop_last=False)
    loader = DataLoader(train, batch_sampler=BatchSampler(train, shuffle=True, batch_size=BATCH_SIZE, drop_last=True),
                        num_workers=2)
    for half in first_half, second_half:
        with paddle.utils.unique_name.guard():  # names as in a new process: the optimizer's state goes by them
            half(loader, test_loader)


if __name__ == "__main__":
    main()
