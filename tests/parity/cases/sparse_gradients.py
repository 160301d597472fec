"""Gradients of embeddings that are SelectedRows: what they look like, how they add up, ten steps of every optimizer
that takes them. Two faults of Paddle's are left out: its momentum and RMSProp lose rows of gradients whose rows do not
ascend, and its Adam reads past the gradient's end for the table's last row where the gradient lacks it."""
import numpy as np
import paddle
from parity import array, case

F = paddle.nn.functional
opt = paddle.optimizer


def table(rows=8, length=4):
    return paddle.to_tensor(array(rows, length).astype("float32"), stop_gradient=False)


def look(grad):
    rows = grad.get_selected_rows()
    return [grad.is_selected_rows(), grad.is_dense(), grad.shape, grad.rows(), grad.numpy(), rows.height(),
            rows.rows(), rows.get_tensor() is not None]


@case("paddle.nn.functional.embedding", "paddle.Tensor.is_selected_rows", "paddle.Tensor.gradient",
      "paddle.Tensor.get_selected_rows", "paddle.Tensor.rows", grad=False)
def gradient():
    w, x = table(), paddle.to_tensor([[1, 3], [3, 0]])
    out = F.embedding(x, w, sparse=True)
    (out * out).sum().backward()
    values, rows = w.gradient()
    seen = [look(w.grad), values, rows, w.is_selected_rows()]
    w.clear_gradient()
    out = F.embedding(x.astype("int32"), w, padding_idx=1, sparse=True)
    (out * out).sum().backward()
    return seen + [look(w.grad), w.grad.clear_gradient()]


@case("paddle.nn.functional.embedding", grad=False)
def sums():
    w, x = table(), paddle.to_tensor([[1, 3], [3, 0]])

    def run(*losses, clear=True):
        if clear:
            w.clear_gradient(False)
        for loss in losses:
            loss().backward()
        return look(w.grad) if w.grad.is_selected_rows() else [w.grad.numpy()]

    def sparse():
        return (F.embedding(x, w, sparse=True) ** 2).sum()

    def dense():
        return (w * w).sum()
    return [run(sparse, sparse), run(dense, sparse), run(sparse, dense), run(lambda: sparse() + dense()),
            run(lambda: sparse() + sparse()), run(sparse, clear=False)]


@case("paddle.nn.Embedding", "paddle.grad", grad=False)
def layer():
    emb = paddle.nn.Embedding(6, 3, padding_idx=2, sparse=True)
    emb(paddle.to_tensor([5, 3, 5])).sum().backward()
    found = paddle.grad(emb(paddle.to_tensor([0, 4])).sum(), emb.weight)[0]
    return look(emb.weight.grad), look(found)


@case("paddle.nn.Embedding", "paddle.nn.functional.embedding", grad=False)
def padding_row():
    """A sparse gradient keeps the row at padding_idx, so that training moves it; a dense one does not."""
    seen = []
    for sparse in (True, False):
        emb = paddle.nn.Embedding(5, 2, padding_idx=0, sparse=sparse)
        emb.weight.set_value(np.arange(10, dtype="float32").reshape(5, 2))
        sgd = opt.SGD(1.0, parameters=emb.parameters())
        out = emb(paddle.to_tensor([[0, 1], [0, 3]]))
        out.sum().backward()
        seen += [out.detach(), emb.weight.grad.numpy()]
        sgd.step()
        seen.append(emb.weight)
    return seen


CLIPS = (None, ("ClipGradByNorm", 0.5), ("ClipGradByGlobalNorm", 0.5))


def train(name, clip=None, ascending=False, last_row=False, **options):
    w, b = table(), paddle.to_tensor(np.ones(4, "float32"), stop_gradient=False)
    if clip:
        options["grad_clip"] = getattr(paddle.nn, clip[0])(clip[1])
    o = getattr(opt, name)(learning_rate=0.1, parameters=[w, b], **options)
    draw, seen = np.random.RandomState(3), []
    for i in range(10):
        ids = draw.randint(0, 8, [2 + i % 4])
        if last_row:
            ids[0] = 7
        y = F.embedding(paddle.to_tensor(np.sort(ids) if ascending else ids), w, sparse=True) + b
        (y * y).sum().backward()
        o.step()
        o.clear_grad()
        seen += [w.detach().clone(), b.detach().clone(), w.grad is None]
    return seen


def add(name, label, **options):
    # ten steps of float32 rounding, which fused and separate loops do differently
    @case(f"paddle.optimizer.{name}", f"paddle.optimizer.{name}.step", grad=False, tol=2e-4)
    def ten_steps():
        return [train(name, clip, **options) for clip in CLIPS]
    from parity import CASES
    CASES[-1].id = f"sparse_gradients::{name}_{label}"


add("SGD", "plain")
add("SGD", "decay", weight_decay=0.1)
add("Adam", "plain", last_row=True)
add("Adam", "lazy", lazy_mode=True)
add("Adam", "epsilon", last_row=True, epsilon=1e-2)
add("Adam", "lazy_epsilon", lazy_mode=True, epsilon=1e-2)
add("Adagrad", "plain")
add("Lamb", "plain")
add("Momentum", "plain", ascending=True)
add("Momentum", "nesterov", ascending=True, use_nesterov=True, weight_decay=0.1)
add("RMSProp", "plain", ascending=True)
add("RMSProp", "centered", ascending=True, centered=True, momentum=0.5)
