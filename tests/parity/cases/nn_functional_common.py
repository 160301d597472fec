"""Linear maps, dropout, padding, resampling, windows, norms, masks and their layers."""
import paddle
import paddle.nn.functional as F
from parity import case, fill, ints, rand

N = "paddle.nn.functional."
L = "paddle.nn."


def add(name, names, fn, **options):
    fn.__name__ = name
    case(*names, **options)(fn)


@case(N + "linear", L + "Linear", L + "Linear.weight", L + "Linear.bias")
def linear():
    m = fill(paddle.nn.Linear(4, 3))
    bare = fill(paddle.nn.Linear(4, 3, bias_attr=False))
    x = rand(2, 5, 4)
    return F.linear(x, rand(4, 3), rand(3)), F.linear(x, rand(4, 3)), m(x), bare(x), repr(m), list(m.state_dict())


@case(N + "linear")
def linear_with_other_weights():
    """A vector, as heads that take a mean over bins have; batches of matrices; a bias per row."""
    x = rand(2, 5, 4)
    return F.linear(x, rand(4)), F.linear(x[0], rand(2, 4, 3)), F.linear(x, rand(4), rand(1)), \
        F.linear(x, rand(4, 3), rand(5, 3))


@case(N + "bilinear", L + "Bilinear")
def bilinear():
    m = fill(paddle.nn.Bilinear(3, 4, 2))
    return F.bilinear(rand(5, 3), rand(5, 4), rand(2, 3, 4), rand(1, 2)), m(rand(5, 3), rand(5, 4)), repr(m)


@case(N + "dropout", N + "dropout2d", N + "dropout3d", N + "alpha_dropout", L + "Dropout", L + "Dropout2D",
      L + "Dropout3D", L + "AlphaDropout")
def dropout_without_chance():
    x, v = rand(2, 3, 4, 5), rand(1, 2, 2, 3, 2)
    layers = [paddle.nn.Dropout(0.3), paddle.nn.Dropout(0.3, axis=1, mode="downscale_in_infer"),
              paddle.nn.Dropout2D(0.4), paddle.nn.AlphaDropout(0.4)]
    for m in layers:
        m.eval()
    cube = paddle.nn.Dropout3D(0.5)
    cube.eval()
    return (F.dropout(x, training=False), F.dropout(x, 0.3, training=False, mode="downscale_in_infer"),
            F.dropout(x, 0), F.dropout(x, 1.0), F.dropout(x, 1.0, axis=1), F.dropout2d(x, training=False),
            F.dropout3d(v, training=False), F.alpha_dropout(x, training=False), F.alpha_dropout(x, 1),
            [m(x) for m in layers], [repr(m) for m in layers], cube(v), repr(cube))


@case(N + "dropout", N + "dropout2d", L + "Dropout2D", grad=False)
def dropout_kept_values():
    x = paddle.ones([40, 50])
    y = F.dropout(x, 0.5)
    rows = F.dropout(x, 0.5, axis=0)
    maps = F.dropout2d(paddle.ones([20, 10, 3, 4]), 0.25)
    share = float((y == 0).astype("float32").mean())
    return (sorted(set(y.numpy().ravel().tolist())), 0.4 < share < 0.6, rows.numpy().std(1).max() == 0.0,
            maps.numpy().std((2, 3)).max() == 0.0)


@case(N + "pad")
def pad():
    x = rand(2, 3, 4, 5)
    return [F.pad(x, [1, 2, 0, 1]), F.pad(x, [1, 0, 0, 2], mode="reflect"), F.pad(x, [1, 2, 2, 1], mode="replicate"),
            F.pad(x, [1, 2, 2, 1], mode="circular"), F.pad(x, [1, 1, 0, 0], value=3, data_format="NHWC"),
            F.pad(x, [0, 0, 1, 1, 0, 2, 3, 0], value=1.5), F.pad(rand(2, 3), [1, 0, 0, 2]),
            F.pad(rand(2, 3, 4), [1, 2], data_format="NCL"), F.pad(x, paddle.to_tensor([1, 2, 0, 1], dtype="int32")),
            F.pad(rand(1, 2, 2, 3, 4), [1, 0, 0, 1, 1, 1], data_format="NCDHW")]


@case(N + "zeropad2d", L + "Pad1D", L + "Pad2D", L + "Pad3D", L + "ZeroPad2D")
def pad_layers():
    a, b = paddle.nn.Pad1D([1, 2], "replicate"), paddle.nn.Pad2D(1, mode="reflect")
    c, d = paddle.nn.Pad3D(1, value=2.0), paddle.nn.ZeroPad2D([1, 0, 2, 1])
    x = rand(1, 2, 3, 4)
    return F.zeropad2d(x, [1, 1, 0, 2]), a(rand(1, 2, 3)), b(x), c(rand(1, 1, 2, 2, 2)), d(x), \
        [repr(m) for m in (a, b, c, d)]


for mode in ("nearest", "bilinear", "bicubic"):
    def resampled(mode=mode):
        x = rand(2, 3, 4, 5)
        out = [F.interpolate(x, [7, 9], mode=mode), F.interpolate(x, scale_factor=2, mode=mode),
               F.upsample(x, scale_factor=[1.5, 2.0], mode=mode), F.interpolate(x, size=(2, 3), mode=mode),
               F.interpolate(rand(1, 4, 5, 2), [6, 6], mode=mode, data_format="NHWC")]
        m = paddle.nn.Upsample(scale_factor=2, mode=mode)
        if mode != "nearest":
            out.append(F.interpolate(x, [7, 9], mode=mode, align_corners=True))
        return out + [m(x), repr(m)]
    add(f"interpolate_{mode}", [N + "interpolate", N + "upsample", L + "Upsample"], resampled)


@case(N + "interpolate", N + "upsample")
def interpolate_other_ranks():
    return (F.interpolate(rand(2, 3, 5), [8], mode="linear", data_format="NCW"),
            F.interpolate(rand(1, 2, 3, 4, 5), [5, 6, 7], mode="trilinear", data_format="NCDHW"),
            F.interpolate(rand(2, 3, 4, 5), [2, 2], mode="area"),
            F.interpolate(rand(2, 3, 4, 5), paddle.to_tensor([6, 7]), mode="bilinear", align_mode=1))


@case(L + "UpsamplingNearest2D", L + "UpsamplingBilinear2D")
def upsampling_layers():
    a, b = paddle.nn.UpsamplingNearest2D(scale_factor=2), paddle.nn.UpsamplingBilinear2D(size=[6, 7])
    return a(rand(1, 2, 3, 4)), b(rand(1, 2, 3, 4)), repr(a), repr(b)


@case(N + "unfold", N + "fold", L + "Unfold", L + "Fold")
def windows():
    x, m = rand(2, 3, 5, 6), paddle.nn.Unfold([2, 3], strides=2)
    f = paddle.nn.Fold([5, 6], [2, 3])
    return F.unfold(x, 3), F.unfold(x, [2, 3], [1, 2], [1, 0, 2, 1], 1), m(x), repr(m), \
        F.fold(rand(2, 18, 16), [5, 6], [2, 3]), f(rand(2, 18, 16))


@case(N + "cosine_similarity", L + "CosineSimilarity", N + "pairwise_distance", L + "PairwiseDistance")
def similarities():
    x, y = rand(3, 4), rand(3, 4)
    a, b = paddle.nn.CosineSimilarity(axis=0), paddle.nn.PairwiseDistance(3.0, keepdim=True)
    return F.cosine_similarity(x, y), a(x, y), F.pairwise_distance(x, y), b(x, y), repr(a), repr(b)


@case(N + "label_smooth", N + "one_hot")
def labels():
    hot = F.one_hot(ints(3, 2, high=4), 4)
    return hot, F.label_smooth(hot, epsilon=0.2), F.label_smooth(rand(2, 3), rand(1, 3))


@case(N + "embedding", L + "Embedding")
def embedding():
    m = fill(paddle.nn.Embedding(6, 3))
    return F.embedding(ints(2, 4, high=6), rand(6, 3)), F.embedding(ints(9, high=6), rand(6, 3), padding_idx=-1), \
        m(ints(2, 3, high=6)), repr(m), repr(paddle.nn.Embedding(6, 3, 2)), paddle.nn.Embedding(6, 3, 2).weight[2]


@case(N + "sequence_mask", grad=False)
def sequence_mask():
    x = paddle.to_tensor([[1, 3], [0, 2]])
    return F.sequence_mask(x), F.sequence_mask(x, 5, "float32"), F.sequence_mask(x, paddle.to_tensor(4, "int32"), "bool")


@case(N + "temporal_shift")
def temporal_shift():
    return F.temporal_shift(rand(6, 4, 2, 3), 3), F.temporal_shift(rand(4, 2, 3, 5), 2, 0.4, data_format="NHWC")


@case(N + "diag_embed", grad=False)  # real Paddle has no gradient here, Proa has
def diag_embed():
    return F.diag_embed(rand(2, 3)), F.diag_embed(rand(2, 3), 1, 0, 2), F.diag_embed(rand(2, 3), -2, -1, 0)


@case(N + "gather_tree", grad=False)
def gather_tree():
    ids = paddle.to_tensor([[[2, 2], [6, 1]], [[3, 9], [6, 1]], [[0, 1], [9, 0]]])
    parents = paddle.to_tensor([[[0, 0], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [0, 1]]])
    return F.gather_tree(ids, parents)


@case(N + "affine_grid", N + "grid_sample")
def spatial_transformer():
    grid = F.affine_grid(rand(2, 2, 3), [2, 3, 4, 5])
    x = rand(2, 3, 4, 5)
    return grid, F.affine_grid(rand(2, 2, 3), [2, 3, 4, 5], False), F.grid_sample(x, rand(2, 3, 4, 2)), \
        F.grid_sample(x, rand(2, 3, 4, 2), "nearest", "border"), \
        F.grid_sample(x, rand(2, 3, 4, 2), padding_mode="reflection", align_corners=False)


@case(N + "pixel_shuffle", N + "pixel_unshuffle", N + "channel_shuffle", L + "PixelShuffle", L + "PixelUnshuffle",
      L + "ChannelShuffle")
def pixels():
    ms = [paddle.nn.PixelShuffle(2), paddle.nn.PixelUnshuffle(2), paddle.nn.ChannelShuffle(2)]
    x = rand(1, 8, 4, 6)
    return F.pixel_shuffle(x, 2), F.pixel_shuffle(rand(1, 3, 4, 8), 2, "NHWC"), F.pixel_unshuffle(x, 2), \
        F.channel_shuffle(x, 4), [m(x) for m in ms], [repr(m) for m in ms]


@case(L + "Flatten", L + "Unflatten", L + "Identity")
def shapes():
    x = rand(2, 3, 4)
    return paddle.nn.Flatten()(x), paddle.nn.Unflatten(1, [3, 1])(x), paddle.nn.Identity(1, a=2)(x)


@case(N + "scaled_dot_product_attention", tol=1e-4)  # exponentials of sums
def attention():
    return F.scaled_dot_product_attention(rand(2, 5, 2, 8), rand(2, 5, 2, 8), rand(2, 5, 2, 8))
