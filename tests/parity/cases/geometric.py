"""paddle.geometric and its names in paddle.incubate."""
import numpy as np
import paddle

from parity import case, ints, rand, raised

EDGES = ([0, 1, 2, 0, 3, 1], [1, 2, 1, 0, 3, 1])
ROW, COLUMN = [3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7], [0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13]


def edges(dtype="int64"):
    return [paddle.to_tensor(np.asarray(e, dtype)) for e in EDGES]


@case("paddle.geometric.send_u_recv", "paddle.incubate.graph_send_recv")
def send_u_recv():
    x, y, (s, d) = rand(5, 3), rand(5, 2, 2, dtype="float64"), edges()
    return ([paddle.geometric.send_u_recv(v, s, d, op) for v in (x, y) for op in ("sum", "mean", "max", "min")],
            paddle.geometric.send_u_recv(x, *edges("int32"), "sum", 4), paddle.incubate.graph_send_recv(x, s, d, "max", 6),
            paddle.geometric.send_u_recv(ints(5, 3), s, d, "min"))


@case("paddle.geometric.send_ue_recv")
def send_ue_recv():
    x, y, (s, d) = rand(5, 3), rand(6, 3, low=0.5, high=2.0), edges()
    return ([paddle.geometric.send_ue_recv(x, y, s, d, m, r) for m in ("add", "sub", "mul", "div")
             for r in ("sum", "mean", "max", "min")], paddle.geometric.send_ue_recv(x, rand(6, 1), s, d, "mul", "sum", 4),
            paddle.geometric.send_ue_recv(rand(5, 1, 2), rand(6, 3, 1), s, d, "mul", "mean"))


@case("paddle.geometric.send_uv")
def send_uv():
    x, y, (s, d) = rand(5, 3), rand(5, 3, low=0.5, high=2.0), edges()
    return ([paddle.geometric.send_uv(x, y, s, d, m) for m in ("add", "sub", "mul", "div")],
            paddle.geometric.send_uv(x, rand(5, 1), s, d, "mul"))


@case("paddle.geometric.segment_sum", "paddle.geometric.segment_mean", "paddle.geometric.segment_max",
      "paddle.geometric.segment_min", "paddle.incubate.segment_sum", "paddle.incubate.segment_mean",
      "paddle.incubate.segment_max", "paddle.incubate.segment_min")
def segments():
    x, y = rand(6, 3), rand(6, 2, 2, dtype="float64")
    ids = paddle.to_tensor([0, 0, 1, 3, 3, 3])
    return [getattr(where, "segment_" + op)(v, ids) for where in (paddle.geometric, paddle.incubate) for v in (x, y)
            for op in ("sum", "mean", "max", "min")]


@case("paddle.geometric.reindex_graph", "paddle.geometric.reindex_heter_graph", "paddle.incubate.graph_reindex")
def reindex():
    x, n = paddle.to_tensor([0, 1, 2]), paddle.to_tensor([8, 9, 0, 4, 7, 6, 7])
    c = paddle.to_tensor([2, 3, 2], dtype="int32")
    other, count = paddle.to_tensor([0, 2, 3, 5, 1]), paddle.to_tensor([1, 3, 1], dtype="int32")
    return (paddle.geometric.reindex_graph(x, n, c), paddle.incubate.graph_reindex(x, n, c),
            paddle.geometric.reindex_heter_graph(x, [n, other], [c, count]))


@case("paddle.geometric.sample_neighbors", "paddle.geometric.weighted_sample_neighbors",
      "paddle.incubate.graph_sample_neighbors", "paddle.incubate.graph_khop_sampler")
def neighbors():
    row, column = paddle.to_tensor(ROW), paddle.to_tensor(COLUMN)
    nodes, eids = paddle.to_tensor([0, 8, 1, 2]), paddle.arange(13)
    one = paddle.geometric.sample_neighbors(row, column, nodes, 1)  # of −1, "all", Paddle's own kernel fails
    heavy = paddle.to_tensor(np.where(np.arange(13) % 2, 1.0, 1e-30).astype("float32"))
    return (paddle.geometric.sample_neighbors(row, column, nodes, 9),
            paddle.geometric.sample_neighbors(row, column, nodes, 9, eids, True), one[1], one[0].shape,
            paddle.geometric.weighted_sample_neighbors(row, column, heavy, nodes, 9),
            paddle.incubate.graph_sample_neighbors(row, column, nodes, sample_size=9),
            paddle.incubate.graph_khop_sampler(row, column, nodes, [2, 2]),
            paddle.incubate.graph_khop_sampler(row, column, nodes, [2, 2], eids, True))


@case("paddle.incubate.softmax_mask_fuse", "paddle.incubate.identity_loss")
def incubate_losses():
    x, mask = rand(2, 2, 3, 32), rand(2, 1, 3, 32)
    y = rand(3, 4)
    return (paddle.incubate.softmax_mask_fuse(x, mask), paddle.incubate.identity_loss(y, "sum"),
            paddle.incubate.identity_loss(y, 1), paddle.incubate.identity_loss(y))


@case("paddle.geometric.send_u_recv", grad=False)
def errors():
    x, (s, d) = rand(5, 3), edges()
    return (raised(lambda: paddle.geometric.send_u_recv(x, s, d, "prod")),
            raised(lambda: paddle.geometric.send_ue_recv(x, x, s, d, "pow")))
