"""Distillation: a teacher without gradients, a student, an average of weights, in-place updates, label smoothing."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

from common import digits, say, seeded


class ExponentialAverage:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {name: p.clone().detach() for name, p in model.named_parameters()}

    @paddle.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name].scale_(self.decay).add_(p * (1 - self.decay))

    def apply(self, model):
        self.backup = {name: paddle.assign(p) for name, p in model.named_parameters()}
        model.set_state_dict({**model.state_dict(), **self.shadow})

    def restore(self, model):
        model.set_state_dict({**model.state_dict(), **self.backup})


class MaxoutNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1D(8, 16, 3, padding=1, data_format="NCL")
        self.maxout = nn.Maxout(groups=2, axis=1)
        self.norm = nn.BatchNorm1D(8)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = self.norm(self.maxout(self.conv(x.squeeze(1)).unsqueeze(-1)).squeeze(-1))
        return self.head(F.dropout(x.flatten(1), p=0.3, training=False))


def main():
    images, labels = digits(320)
    teacher = seeded(nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.Tanhshrink(), nn.Linear(40, 10)), 17)
    opt = paddle.optimizer.SGD(0.3, teacher.parameters())
    x, y = paddle.to_tensor(images), paddle.to_tensor(labels)
    for _ in range(15):
        loss = F.cross_entropy(teacher(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
    teacher.eval()
    say("teacher", loss, (teacher(x).argmax(1, keepdim=True) == y).cast("float32").mean())

    student = seeded(MaxoutNet(), 18)
    average = ExponentialAverage(student)
    opt = paddle.optimizer.Momentum(0.05, 0.9, student.parameters(), weight_decay=1e-4)
    temperature = 3.0
    for step in range(16):
        rows = paddle.to_tensor(np.arange(step * 40, step * 40 + 40) % 320)
        batch, truth = paddle.index_select(x, rows), y[rows].squeeze(-1)
        with paddle.no_grad():
            soft = F.softmax(teacher(batch) / temperature)
        logits = student(batch)
        kl = F.kl_div(F.log_softmax(logits / temperature, axis=-1), soft, reduction="batchmean") * temperature ** 2
        hard = F.nll_loss(F.log_softmax(logits, axis=1), truth)
        (0.7 * kl + 0.3 * hard).backward()
        opt.step()
        opt.clear_grad()
        average.update(student)
        if step % 4 == 3:
            say(f"step {step}", kl, hard)
    student.eval()
    plain = F.cross_entropy(student(x), y)
    average.apply(student)
    averaged = F.cross_entropy(student(x), y)
    average.restore(student)
    say("student", plain, averaged, F.cross_entropy(student(x), y))
    names = [n for n in ("CrossEntropyLoss", "KLDivLoss", "NLLLoss", "SmoothL1Loss", "L1Loss", "MSELoss", "BCELoss")]
    print(names, [hasattr(nn, n) for n in names])
    t = paddle.to_tensor([[1.0, -2.0], [0.5, 3.0]])
    t.add_(paddle.ones([2, 2])).clip_(-0.5, 3.0).exp_().subtract_(paddle.to_tensor([1.0, 2.0])).tanh_()
    say("in place", *t.flatten().tolist(), t.inplace_version)


if __name__ == "__main__":
    main()
