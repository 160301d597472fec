"""The tour of tensors that every tutorial begins with: making, shaping, indexing, broadcasting, printing, NumPy."""
import numpy as np
import paddle

from common import say


def main():
    ndim_1 = paddle.to_tensor([2.0, 3.0, 4.0])
    print(ndim_1)
    print(paddle.to_tensor(2), paddle.to_tensor([[1, 2], [3, 4]], dtype="float64", stop_gradient=False))
    print(paddle.to_tensor(np.array([True, False])), paddle.to_tensor([1 + 2j, 3j]))
    try:
        paddle.to_tensor([[1.0, 2.0], [4.0, 5.0, 6.0]])
    except ValueError as e:
        print("ragged", type(e).__name__)
    x = paddle.arange(24, dtype="float32").reshape([2, 3, 4])
    print(x.ndim, x.shape, x.size, x.dtype, x.place, x[0, 1].numpy(), x[..., -1].tolist(), x[:, ::-1, ::2].shape)
    print(x[1, 2, 3].item(), x[paddle.to_tensor([0, 1]), 1].tolist(), x[x > 20.5].tolist(), x[:, [0, 2]].shape)
    x[0, 0] = 0.5
    x[1, :, 1:3] = paddle.full([3, 2], -1.0)
    x[x < 0] = 100.0
    print(x)
    print(paddle.reshape(x, [-1, 4]).shape, paddle.transpose(x, perm=[2, 0, 1]).shape, x.T.shape)
    print(paddle.concat([x, x], axis=1).shape, [t.shape for t in paddle.split(x, num_or_sections=[1, -1], axis=2)],
          paddle.stack([x, x], axis=-1).shape, [t.shape for t in paddle.chunk(x, 3, axis=1)])
    a, b = paddle.ones([2, 3, 1, 5]), paddle.ones([3, 4, 1])
    print((a + b).shape, (paddle.to_tensor([1, 2, 3]) / 2).dtype, (paddle.to_tensor([7, -7]) // 2).tolist(),
          (paddle.to_tensor([7, -7]) % 3).tolist(), (2 ** paddle.to_tensor([1.0, 2.0])).tolist())
    try:
        paddle.add(paddle.ones([2, 3, 4]), paddle.ones([2, 3, 6]))
    except ValueError as e:
        print("broadcast", type(e).__name__)
    y = paddle.to_tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    print(y.max(), y.argmin(axis=1), y.sort(axis=1, descending=True), y.cumsum(axis=0))
    say("reductions", y.mean(), y.std(), y.var(unbiased=False), y.prod(), y.logsumexp(), y.norm(), y.median())
    print(paddle.where(y > 2, y, -y).tolist(), paddle.nonzero(y > 3).tolist(), paddle.unique(paddle.to_tensor([3, 1, 3])).tolist())
    print(paddle.allclose(y, y + 1e-9), paddle.equal_all(y, y), (y == 5.0).any(), paddle.is_tensor(y), paddle.numel(y))
    print(paddle.gather_nd(y, paddle.to_tensor([[0, 1], [1, 2]])).tolist(),
          paddle.scatter(paddle.zeros([3, 2]), paddle.to_tensor([2, 0]), paddle.ones([2, 2])).tolist(),
          paddle.masked_select(y, y > 2).tolist(), paddle.roll(y, 1, axis=1).tolist(), paddle.flip(y, [0]).tolist())
    print(paddle.einsum("ij,kj->ik", y, y).tolist(), y.matmul(y.t()).tolist(), paddle.dot(y[0], y[1]).item())
    print(y.astype("int32"), y.cast(paddle.float64).dtype, y.unsqueeze([0, -1]).shape, y.tile([2, 1]).shape,
          y.expand([4, 2, 3]).shape, y.broadcast_to([2, 2, 3]).shape, paddle.squeeze(y.unsqueeze(1), 1).shape)
    z = paddle.to_tensor(3.0, stop_gradient=False)
    w = z ** 2 + 2 * z
    w.backward()
    print(z.grad.item(), z.gradient(), w.stop_gradient, z.is_leaf, w.is_leaf, w.detach().stop_gradient)
    z.clear_grad()
    print(z.grad.numpy(), z.name.startswith("generated_tensor"), len(str(z)))
    n = y.numpy()
    n[0, 0] = 42.0
    print(y[0, 0].item(), np.add(y.numpy(), 1).tolist(), float(y[0, 1]), int(y[0, 2]), bool(y[0, 1] > 0), len(y), [v.shape for v in y])
    paddle.set_printoptions(precision=2, threshold=5, edgeitems=1)
    print(paddle.arange(100.0).reshape([10, 10]))
    paddle.set_printoptions(precision=8, threshold=1000, edgeitems=3)
    print(paddle.zeros([0, 3]), paddle.full([2], float("nan")), paddle.to_tensor([1e-9, 1e9]), paddle.eye(2, dtype="int64"))
    paddle.seed(5)
    u, v = paddle.rand([1000]), paddle.randn([1000])
    print(0.4 < u.mean().item() < 0.6, -0.2 < v.mean().item() < 0.2, paddle.randint(0, 3, [4]).dtype,
          sorted(paddle.randperm(4).tolist()), paddle.get_device())


if __name__ == "__main__":
    main()
