"""LeNet on the digits in static mode: layers, momentum with decay and clipping, a learning-rate schedule."""
import numpy as np
import paddle
import paddle.nn.functional as F
import paddle.static as static

from common import digits, fill, say


class LeNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1 = paddle.nn.Conv2D(1, 6, 3, padding=1)
        self.norm = paddle.nn.BatchNorm2D(6)
        self.conv2 = paddle.nn.Conv2D(6, 8, 3, padding=1)
        self.fc1 = paddle.nn.Linear(8 * 2 * 2, 24)
        self.drop = paddle.nn.Dropout(0.0)
        self.fc2 = paddle.nn.Linear(24, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = paddle.flatten(x, 1)
        return self.fc2(self.drop(F.relu(self.fc1(x))))


paddle.enable_static()
images, labels = digits(320)
main, startup = static.Program(), static.Program()
with static.program_guard(main, startup):
    image = static.data("image", [None, 1, 8, 8], "float32")
    label = static.data("label", [None, 1], "int64")
    net = LeNet()
    logits = net(image)
    loss = F.cross_entropy(logits, label)
    acc = static.accuracy(F.softmax(logits), label)
    test = main.clone(for_test=True)
    scheduler = paddle.optimizer.lr.StepDecay(learning_rate=0.1, step_size=3, gamma=0.5)
    optimizer = paddle.optimizer.Momentum(scheduler, momentum=0.9, weight_decay=paddle.regularizer.L2Decay(1e-3),
                                          grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))
    optimizer.minimize(loss)

exe = static.Executor(paddle.CPUPlace())
exe.run(startup)
fill(main, 2)
for epoch in range(6):
    for i in range(0, 256, 64):
        out = exe.run(main, feed={"image": images[i:i + 64], "label": labels[i:i + 64]}, fetch_list=[loss, acc])
    held = exe.run(test, feed={"image": images[256:], "label": labels[256:]}, fetch_list=[loss, acc])
    say("epoch", epoch, out[0], held[0], scheduler.get_lr())
    scheduler.step()

names = sorted(v.name.split("_")[0] for v in main.list_vars() if v.persistable and "velocity" in v.name)
print(len(names), names[0])
say("statistics", *[np.array(static.global_scope().find_var(v.name).get_tensor())
                    for v in (net.norm._mean, net.norm._variance)])

static.save_inference_model("lenet", [image], [logits], exe, program=test)
[program, feeds, fetches] = static.load_inference_model("lenet", exe)
say("inference", exe.run(program, feed={feeds[0]: images[300:303]}, fetch_list=fetches)[0])
