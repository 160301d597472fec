"""A text classifier in static mode: embedding, mean, fc; Adam; the same program compiled; state saved and loaded."""
import numpy as np
import paddle
import paddle.static as static

from common import fill, say

paddle.enable_static()
main, startup = static.Program(), static.Program()
main.random_seed = 7
with static.program_guard(main, startup):
    words = static.data("words", [None, 12], "int64")
    label = static.data("label", [None, 1], "int64")
    emb = static.nn.embedding(words, size=[50, 16], padding_idx=0,
                              param_attr=paddle.ParamAttr(name="emb", learning_rate=0.5))
    hidden = static.nn.fc(paddle.mean(emb, axis=1), 24, activation="tanh", name="hidden")
    hidden = static.nn.layer_norm(hidden, begin_norm_axis=1)
    predict = static.nn.fc(hidden, 3, activation="softmax", bias_attr=paddle.ParamAttr(name="last_bias"))
    cost = paddle.nn.functional.cross_entropy(predict, label, use_softmax=False, reduction="none")
    loss = paddle.mean(cost)
    accuracy = static.accuracy(input=predict, label=label)
    test = main.clone(for_test=True)
    paddle.optimizer.Adam(learning_rate=0.02, beta1=0.8, weight_decay=0.01).minimize(loss)

print(sorted(p.name for p in main.all_parameters()))
rng = np.random.RandomState(3)
labels = rng.randint(0, 3, (96, 1)).astype("int64")
texts = (rng.randint(0, 17, (96, 12)) + 16 * labels).astype("int64")

exe = static.Executor()
exe.run(startup)
fill(main, 4)
compiled = static.CompiledProgram(main)
for step in range(12):
    at = slice(step % 4 * 24, step % 4 * 24 + 24)
    value, right = exe.run(compiled, feed={"words": texts[at], "label": labels[at]}, fetch_list=[loss, accuracy])
    say("step", step, value)

static.save(main, "checkpoint/text")
held = exe.run(test, feed={"words": texts[:8], "label": labels[:8]}, fetch_list=[predict])
state = static.load_program_state("checkpoint/text")
print(sorted(k for k in state if "moment" not in k and "pow" not in k and "learning" not in k))
for name in state:
    holder = static.global_scope().find_var(name).get_tensor()
    holder.set(np.zeros_like(np.array(holder)), paddle.CPUPlace())
static.load(main, "checkpoint/text", exe)
again = exe.run(test, feed={"words": texts[:8], "label": labels[:8]}, fetch_list=[predict])
say("restored", np.array_equal(held[0], again[0]), again[0])

data = static.serialize_program([words], [predict], program=test)
params = static.serialize_persistables([words], [predict], exe, program=test)
static.save_to_file("text.bin", data)
with static.scope_guard(static.Scope()):
    program = static.deserialize_program(static.load_from_file("text.bin"))
    static.deserialize_persistables(program, params, exe)
    ends = [v for v in program.list_vars() if v.name.startswith("save_infer_model")]
    print(len(ends))
    say("deserialized", exe.run(program, feed={"words": texts[:2]}, fetch_list=[ends[0].name])[0])
