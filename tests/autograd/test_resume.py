"""Training that is saved, and resumed in another process, ends with the bits of one that never stopped: optimizers, schedules,
loss scaling, dropout's random numbers and the loader's position."""
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

STEPS, AT, BATCHES = 8, 3, 5
OPTIMIZERS = {
    "SGD": {}, "Momentum": {"use_nesterov": True}, "Adam": {}, "AdamW": {"weight_decay": 0.05}, "Adamax": {}, "Adagrad": {},
    "Adadelta": {}, "RMSProp": {"momentum": 0.9, "centered": True}, "Lamb": {}, "Adam clipped": {"grad_clip": True},
}
SCHEDULES = {
    "StepDecay": (0.05, 2), "CosineAnnealingDecay": (0.05, 5), "LinearWarmup": (0.05, 4, 0.0, 0.05), "OneCycleLR": (0.05, 10),
    "CosineAnnealingWarmRestarts": (0.05, 1, 2), "ReduceOnPlateau": (0.05, "min", 0.5, 1), "CyclicLR": (0.01, 0.05, 2), "NoamDecay": (16, 3), "PiecewiseDecay": ([2, 5], [.1, .05, .01])}


class Training:
    def __init__(self, optimizer, schedule):
        import proa as paddle
        self.paddle, nn = paddle, paddle.nn
        paddle.seed(7)
        self.net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1D(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
        self.schedule = getattr(paddle.optimizer.lr, schedule)(*SCHEDULES[schedule])
        options = dict(OPTIMIZERS[optimizer])
        if options.pop("grad_clip", None):
            options["grad_clip"] = nn.ClipGradByGlobalNorm(0.5)
        kind = getattr(paddle.optimizer, optimizer.split()[0])
        self.opt = kind(self.schedule, parameters=self.net.parameters(), **options)
        self.scaler = paddle.amp.GradScaler(init_loss_scaling=2.0 ** 10, incr_every_n_steps=3)
        self.step = 0

    def batches(self, epoch):
        import numpy as np
        rng = np.random.RandomState(3)
        x, y = rng.randn(4 * BATCHES, 6).astype("float32"), rng.randint(0, 3, 4 * BATCHES)
        data = self.paddle.io.TensorDataset([self.paddle.to_tensor(x), self.paddle.to_tensor(y)])
        np.random.seed(epoch)
        return self.paddle.io.DataLoader(data, batch_size=4, shuffle=True)

    def run(self, until):
        paddle, losses = self.paddle, []
        while self.step < until:
            epoch, at = divmod(self.step, BATCHES)
            for i, (x, y) in enumerate(self.batches(epoch)):
                if i < at or self.step >= until:
                    continue
                loss = paddle.nn.functional.cross_entropy(self.net(x), y)
                self.scaler.scale(loss).backward()
                self.scaler.step(self.opt)
                self.scaler.update()
                self.opt.clear_grad()
                self.schedule.step(*((loss,) if type(self.schedule).__name__ == "ReduceOnPlateau" else ()))
                losses.append(loss.numpy().tobytes())
                self.step += 1
        return losses

    def save(self, at):
        paddle = self.paddle
        paddle.save(self.net.state_dict(), at + ".pdparams")
        paddle.save(self.opt.state_dict(), at + ".pdopt")
        paddle.save({"scaler": self.scaler.state_dict(), "schedule": self.schedule.state_dict(), "step": self.step}, at + ".rest")
        with open(at + ".rng", "wb") as file:
            pickle.dump(paddle.get_rng_state(), file)

    def load(self, at):
        paddle = self.paddle
        self.net.set_state_dict(paddle.load(at + ".pdparams"))
        self.opt.set_state_dict(paddle.load(at + ".pdopt"))
        rest = paddle.load(at + ".rest")
        self.scaler.load_state_dict(rest["scaler"])
        self.schedule.set_state_dict(rest["schedule"])
        self.step = rest["step"]
        with open(at + ".rng", "rb") as file:
            paddle.set_rng_state(pickle.load(file))

    def bits(self):
        state = {**self.net.state_dict(), **{k: v for k, v in self.opt.state_dict().items() if hasattr(v, "numpy")}}
        return [(k, v.numpy().tobytes()) for k, v in sorted(state.items())] + [("rate", self.opt.get_lr())]


def resume(folder):
    """In another process: the rest of every training."""
    for path in sorted(pathlib.Path(folder).glob("*.rest")):
        import proa as paddle
        with paddle.utils.unique_name.guard():
            training = Training(*path.stem.split("-"))
            training.load(str(path.with_suffix("")))
            losses = training.run(STEPS)
        path.with_suffix(".bits").write_bytes(pickle.dumps((losses, training.bits())))


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    """{(optimizer, schedule): (expected, found)}"""
    import proa as paddle
    folder, expected = tmp_path_factory.mktemp("resume"), {}
    schedules = list(SCHEDULES)
    for i, optimizer in enumerate(OPTIMIZERS):
        schedule = schedules[i % len(schedules)]
        with paddle.utils.unique_name.guard():
            training = Training(optimizer, schedule)
            training.run(AT)
            training.save(str(folder / f"{optimizer}-{schedule}"))
            losses = training.run(STEPS)
        expected[optimizer, schedule] = losses, training.bits()
    done = subprocess.run([sys.executable, __file__, str(folder)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(pathlib.Path(paddle.__file__).parents[1])})
    assert done.returncode == 0, done.stderr[-2000:]
    return {key: (want, pickle.loads((folder / f"{'-'.join(key)}.bits").read_bytes())) for key, want in expected.items()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_resumed_training_has_the_same_bits(optimizer, resumed):
    (want, got), = [pair for key, pair in resumed.items() if key[0] == optimizer]
    assert got[0] == want[0]
    assert [name for name, _ in got[1]] == [name for name, _ in want[1]]
    assert [name for (name, a), (_, b) in zip(want[1], got[1]) if a != b] == []


if __name__ == "__main__":
    resume(sys.argv[1])
