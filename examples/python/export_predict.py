"""From training to a server: to_static, jit.save, and Paddle's inference interface, with a batch of any size."""
import numpy as np
import paddle
import paddle.inference as infer
import paddle.nn as nn

from common import digits, say, seeded


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2D(1, 8, 3, padding=1, bias_attr=False), nn.BatchNorm2D(8), nn.ReLU(), nn.MaxPool2D(2),
                                  nn.Flatten(), nn.Linear(8 * 4 * 4, 10))

    def forward(self, x):
        scores = self.body(x)
        if not self.training:
            scores = nn.functional.softmax(scores)
        return scores


def train(net, x, y):
    opt = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
    for step in range(40):
        at = step * 16
        loss = nn.functional.cross_entropy(net(paddle.to_tensor(x[at:at + 16])), paddle.to_tensor(y[at:at + 16]))
        loss.backward()
        opt.step()
        opt.clear_grad()
    say("loss", loss)


def serve(prefix, batches):
    config = infer.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    predictor = infer.create_predictor(config)
    given = predictor.get_input_handle(predictor.get_input_names()[0])
    for batch in batches:
        given.copy_from_cpu(batch)
        predictor.run()
        yield predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


def main():
    x, y = digits()
    net = seeded(Net())
    train(net, x[:640], y[:640])
    net.eval()
    paddle.jit.save(net, "digits", input_spec=[paddle.static.InputSpec([None, 1, 8, 8], "float32", name="image")])
    batches = [x[700:701], x[800:832], x[900:1000]]
    for batch, out in zip(batches, serve("digits", batches)):
        eager = net(paddle.to_tensor(batch)).numpy()
        print("batch of", len(batch), "eager and served agree:", bool(np.allclose(out, eager, atol=1e-5)))
        say("first", out[0])
    say("accuracy", np.mean(np.argmax(out, 1) == y[900:1000, 0]))


if __name__ == "__main__":
    main()
