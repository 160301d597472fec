"""travel.py save|resume|export|infer PREFIX MODEL: a training program that is built and saved, or loaded with its
state and trained for ten steps; or a model for inference. Runs under real Paddle and under Proa."""
import sys

import numpy as np
import paddle
import paddle.nn.functional as F
import paddle.static as static

paddle.enable_static()
paddle.seed(0)
what, prefix, model = sys.argv[1:4]
rng = np.random.RandomState(0)
exe = static.Executor(paddle.CPUPlace())
X = rng.uniform(-1, 1, (10, 6, 1, 8, 8)).astype("float32")
Y = rng.randint(0, 5, (10, 6, 1)).astype("int64")


def mlp(x):
    h = F.dropout(static.nn.fc(x, 16, activation="tanh"), 0.0)
    return static.nn.fc(h, 5)


def conv(x):
    h = static.nn.batch_norm(static.nn.conv2d(x, 4, 3, padding=1), act="relu")
    return static.nn.fc(paddle.flatten(F.max_pool2d(h, 2, 2), 1), 5)


def attention(x):
    h = paddle.reshape(x, [-1, 8, 8])
    q, k = static.nn.fc(h, 8, num_flatten_dims=2), static.nn.fc(h, 8, num_flatten_dims=2)
    a = F.softmax(paddle.matmul(q, k, transpose_y=True) / 2.0)
    h = static.nn.layer_norm(h + paddle.matmul(a, h), begin_norm_axis=2)
    return static.nn.fc(paddle.mean(F.gelu(paddle.transpose(h, [0, 2, 1])), axis=1), 5)


def words(x):
    ids = paddle.cast(paddle.abs(paddle.reshape(x, [-1, 64])) * 20, "int64")
    h = paddle.sum(static.nn.embedding(ids, [20, 6], padding_idx=0), axis=1)
    return static.nn.fc(F.relu(static.nn.layer_norm(h)), 5)


def recurrent(x):
    out, _ = paddle.nn.LSTM(8, 6, direction="bidirect")(paddle.reshape(x, [-1, 8, 8]))
    return static.nn.fc(paddle.max(out, axis=1), 5)


def bent(x):
    h = F.leaky_relu(static.nn.fc(x, 16), 0.3) + F.hardsigmoid(static.nn.fc(x, 16), 0.2, 0.4)
    h = F.mish(static.nn.fc(h, 16)) + F.softplus(static.nn.fc(h, 16), 2.0, 5.0)
    return static.nn.fc(h, 5)


def supplied(x):
    """Attributes that variables supply: the lengths of an unpooling, the place of a new axis."""
    x = static.nn.conv2d(x, 2, 3, padding=1)[:, :, :7]
    lengths = paddle.shape(x)
    h, at = F.max_pool2d(x, 2, 2, return_mask=True)
    h = F.max_unpool2d(h, at, 2, 2, output_size=[lengths[2], 8])
    h = paddle.squeeze(paddle.unsqueeze(h, axis=lengths[1:2]), axis=[2])
    return static.nn.fc(paddle.reshape(h, [-1, 112]), 5)


def build():
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x, y = static.data("x", [None, 1, 8, 8], "float32"), static.data("y", [None, 1], "int64")
        logits = {"mlp": mlp, "conv": conv, "attention": attention, "words": words,
                  "recurrent": recurrent, "bent": bent, "supplied": supplied}[model](x)
        loss = paddle.mean(F.softmax_with_cross_entropy(logits, y))
        if what == "save":
            clip = paddle.nn.ClipGradByGlobalNorm(0.5)
            {"mlp": paddle.optimizer.Momentum(0.1, 0.9, weight_decay=1e-3, grad_clip=clip),
             "conv": paddle.optimizer.Adam(0.01),
             "words": paddle.optimizer.Lamb(0.02),
             "bent": paddle.optimizer.SGD(0.05),
             "supplied": paddle.optimizer.SGD(0.05),
             "recurrent": paddle.optimizer.RMSProp(0.01, grad_clip=clip),
             "attention": paddle.optimizer.AdamW(0.01, weight_decay=0.1)}[model].minimize(loss)
    exe.run(startup)
    return main, x, logits, loss


def show(values):
    print(" ".join(f"{float(v):.6f}" for v in np.ravel(values)))


if what == "save":
    main, _, _, loss = build()
    static.save(main, prefix)
    open(prefix + ".loss", "w").write(loss.name)
elif what == "resume":
    main = static.deserialize_program(static.load_from_file(prefix + ".pdmodel"))
    loss = open(prefix + ".loss").read()
    for name, value in static.load_program_state(prefix).items():
        static.global_scope().var(name).get_tensor().set(value, paddle.CPUPlace())
    show([exe.run(main, feed={"x": X[i], "y": Y[i]}, fetch_list=[loss])[0] for i in range(10)])
elif what == "export":
    main, x, logits, _ = build()
    static.save_inference_model(prefix, [x], [logits], exe, program=main)
    show(exe.run(main.clone(for_test=True), feed={"x": X[0], "y": Y[0]}, fetch_list=[logits])[0])
else:
    folder = what == "infer_folder"
    options = {"model_filename": "__model__", "params_filename": None} if folder else {}
    program, feeds, fetches = static.load_inference_model(prefix, exe, **options)
    show(exe.run(program, feed={feeds[0]: X[0]}, fetch_list=fetches)[0])
