"""paddle.fft and paddle.signal: every kind, norm, size and axis; gradients; errors."""
import paddle

from parity import case, ints, rand, raised

NORMS = ("backward", "ortho", "forward")


@case("paddle.fft.fft", "paddle.fft.ifft")
def one_axis():
    x, y = rand(3, 12, dtype="complex64"), rand(2, 7, 3, dtype="complex128")
    return [f(v, **k) for f in (paddle.fft.fft, paddle.fft.ifft) for v in (x, y) for k in (
        {}, {"n": 5}, {"n": 16}, {"axis": 0}, {"axis": 1, "norm": "ortho"}, {"norm": "forward", "n": 9})]


@case("paddle.fft.fft", "paddle.fft.fftn", "paddle.fft.ifft2", "paddle.fft.ifft")
def of_real():
    x, k = rand(4, 6), ints(3, 8)
    return (paddle.fft.fft(x), paddle.fft.fft(k), paddle.fft.fftn(x, norm="ortho"), paddle.fft.ifft2(x),
            paddle.fft.ifft(rand(5, dtype="float64"), n=7), paddle.fft.fft(x, n=3, axis=0))


@case("paddle.fft.rfft", "paddle.fft.irfft", "paddle.fft.hfft", "paddle.fft.ihfft")
def hermitian():
    x, y, z = rand(3, 9), rand(2, 8, dtype="float64"), rand(3, 6, dtype="complex64")
    out = [f(v, norm=n) for f in (paddle.fft.rfft, paddle.fft.ihfft) for v in (x, y) for n in NORMS]
    out += [f(z, n=n, norm=m) for f in (paddle.fft.irfft, paddle.fft.hfft) for n in (None, 7, 8, 20) for m in NORMS]
    return out + [paddle.fft.rfft(x, n=5, axis=0), paddle.fft.irfft(z, axis=0), paddle.fft.rfft(ints(6))]


@case("paddle.fft.fftn", "paddle.fft.ifftn", "paddle.fft.fft2", "paddle.fft.ifft2")
def several_axes():
    x = rand(3, 4, 5, dtype="complex64")
    return (*(paddle.fft.fftn(x, norm=n) for n in NORMS), paddle.fft.ifftn(x, axes=(2, 0)), paddle.fft.fftn(x, s=(6, 3)),
            paddle.fft.fftn(x, s=(6, 3), axes=(0, 1)), paddle.fft.fft2(x), paddle.fft.ifft2(x, axes=(0, 2)),
            paddle.fft.fft2(x, s=(3, 7), norm="forward"))


@case("paddle.fft.rfftn", "paddle.fft.irfftn", "paddle.fft.hfftn", "paddle.fft.ihfftn", "paddle.fft.rfft2",
      "paddle.fft.irfft2", "paddle.fft.hfft2", "paddle.fft.ihfft2")
def several_axes_hermitian():
    x, z = rand(3, 4, 5), rand(3, 4, 5, dtype="complex64")
    return (*(f(x, norm=n) for f in (paddle.fft.rfftn, paddle.fft.ihfftn) for n in NORMS),
            *(f(z, norm=n) for f in (paddle.fft.irfftn, paddle.fft.hfftn) for n in NORMS),
            paddle.fft.rfftn(x, axes=(1, 0)), paddle.fft.irfftn(z, s=(4, 9), axes=(0, 2)), paddle.fft.rfft2(x),
            paddle.fft.irfft2(z), paddle.fft.hfft2(z, s=(3, 6)), paddle.fft.ihfft2(x, axes=(0, 2)))


@case("paddle.fft.fftfreq", "paddle.fft.rfftfreq", "paddle.fft.fftshift", "paddle.fft.ifftshift")
def frequencies():
    x = rand(4, 5)
    return (paddle.fft.fftfreq(5), paddle.fft.fftfreq(6, 0.3), paddle.fft.rfftfreq(7, 0.5), paddle.fft.rfftfreq(8),
            paddle.fft.fftshift(x), paddle.fft.ifftshift(x), paddle.fft.fftshift(x, axes=1),
            paddle.fft.ifftshift(x, axes=(0, 1)))


@case("paddle.fft.fft", "paddle.fft.fftn", "paddle.fft.rfft", grad=False)
def errors():
    x = paddle.ones([2, 3], "complex64")
    return [raised(lambda: paddle.fft.fft(x, norm="none")), raised(lambda: paddle.fft.fft(x, n=0)),
            raised(lambda: paddle.fft.fft(x, axis=2)), raised(lambda: paddle.fft.fftn(x, s=(1, 2, 3))),
            raised(lambda: paddle.fft.fftn(x, s=(2,), axes=(0, 1))), raised(lambda: paddle.fft.fft2(x, s=(3,))),
            raised(lambda: paddle.fft.fftfreq(0)), raised(lambda: paddle.fft.rfft(x), ValueError, TypeError, RuntimeError)]


@case("paddle.signal.stft", "paddle.Tensor.stft")
def stft():
    x, w = rand(2, 40), rand(8)
    return (paddle.signal.stft(x, 16), paddle.signal.stft(x, 16, 5, 8, w), x[0].stft(16, center=False),
            paddle.signal.stft(x, 15, pad_mode="constant", normalized=True), paddle.signal.stft(x, 16, onesided=False))


@case("paddle.signal.istft", "paddle.Tensor.istft")
def istft():
    x, z = rand(2, 9, 6, dtype="complex64"), rand(1, 16, 5, dtype="complex64")
    w = rand(16, low=0.5, high=1.0)
    return (paddle.signal.istft(x, 16), paddle.signal.istft(x, 16, 4, 16, w), x.istft(16, center=False),
            paddle.signal.istft(x, 16, length=20, normalized=True), paddle.signal.istft(z, 16, onesided=False),
            paddle.signal.istft(z, 16, onesided=False, return_complex=True))


@case("paddle.signal.stft", "paddle.signal.istft", grad=False)
def round_trip():
    x = rand(3, 64, dtype="float64")
    w = paddle.to_tensor([0.2, 0.5, 0.9, 1.0, 1.0, 0.9, 0.5, 0.2], dtype="float64")
    return paddle.signal.istft(paddle.signal.stft(x, 8, 2, window=w), 8, 2, window=w)
