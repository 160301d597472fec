"""One small network in static mode under many optimizers and learning-rate schedules: batch norm, dropout, a program for
testing that shares the parameters, and a model that is saved and loaded again."""
import paddle
import paddle.nn.functional as F
import paddle.static as static

from common import digits, fill, say

paddle.enable_static()
images, labels = digits(192)
rates = paddle.optimizer.lr
O = paddle.optimizer
WAYS = {
    "sgd": lambda: O.SGD(rates.PolynomialDecay(0.2, 8), grad_clip=paddle.nn.ClipGradByValue(0.05)),
    "momentum": lambda: O.Momentum(rates.NaturalExpDecay(0.05, 0.1), 0.9, use_nesterov=True),
    "adam": lambda: O.Adam(rates.NoamDecay(64, 4), beta2=0.98, grad_clip=paddle.nn.ClipGradByNorm(0.2)),
    "adamw": lambda: O.AdamW(rates.CosineAnnealingDecay(0.01, 6), weight_decay=0.02,
                             apply_decay_param_fun=lambda name: "w" in name),
    "adamax": lambda: O.Adamax(rates.LinearWarmup(0.02, 3, 0.0, 0.02)),
    "adagrad": lambda: O.Adagrad(rates.PiecewiseDecay([2, 4], [0.1, 0.05, 0.01])),
    "adadelta": lambda: O.Adadelta(rates.InverseTimeDecay(1.0, 0.1), rho=0.9),
    "rmsprop": lambda: O.RMSProp(rates.MultiStepDecay(0.01, [2, 4]), momentum=0.5, centered=True),
    "lamb": lambda: O.Lamb(rates.LambdaDecay(0.02, lambda k: 0.9 ** k), lamb_weight_decay=0.01),
}


def network(x):
    h = static.nn.conv2d(x, num_filters=4, filter_size=3, padding=1, bias_attr=False)
    h = F.max_pool2d(static.nn.batch_norm(h, act="relu", momentum=0.8), 2)
    h = F.dropout(static.nn.fc(h, 16, activation="tanh"), 0.0)
    return static.nn.fc(h, 10)


for name, way in WAYS.items():
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    with static.scope_guard(scope), static.program_guard(main, startup), paddle.utils.unique_name.guard():
        image, label = static.data("image", [None, 1, 8, 8]), static.data("label", [None, 1], "int64")
        logits = network(image)
        loss = paddle.mean(F.softmax_with_cross_entropy(logits, label))
        test = main.clone(for_test=True)
        optimizer = way()
        optimizer.minimize(loss)
        exe = static.Executor(paddle.CPUPlace())
        exe.run(startup)
        fill(main, 4)
        losses = []
        for step in range(6):
            at = slice(step % 2 * 64, step % 2 * 64 + 64)
            losses += exe.run(main, feed={"image": images[at], "label": labels[at]}, fetch_list=[loss])
            optimizer._learning_rate.step()
        held, = exe.run(test, feed={"image": images[128:], "label": labels[128:]}, fetch_list=[loss.name])
        say(name, *losses, held, optimizer.get_lr())
        static.save_inference_model(name, [image], [logits], exe, program=test)
        program, feeds, fetches = static.load_inference_model(name, exe)
        say("loaded", exe.run(program, feed={feeds[0]: images[128:130]}, fetch_list=fetches)[0])
