"""Affine and perspective images: PIL's and cv2's own for their kinds, a sampled grid for tensors."""
import math
import numbers

from ... import _core
from ...nn.functional import grid_sample
from ...tensor import concat, linspace, ones, ones_like
from ...utils.lazy_import import try_import
from .functional import _PIL_FILTERS, _kind


def _matrix(center, angle, translate, scale, shear):
    """Affine map from pixels of the result to pixels of the source: two rows of three numbers."""
    turn, sx, sy = (math.radians(v) for v in (angle, *shear))
    a = math.cos(turn - sy) / math.cos(sy)
    b = -a * math.tan(sx) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -c * math.tan(sx) + math.cos(turn)
    m = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    for row in (0, 3):
        m[row + 2] = m[row] * (-center[0] - translate[0]) + m[row + 1] * (-center[1] - translate[1]) + center[row // 3]
    return m


def _cv2(who):
    cv2 = try_import("cv2", f"{who}: cv2 is needed for arrays; pip install opencv-python")
    return cv2, {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC,
                 "area": cv2.INTER_AREA, "lanczos": cv2.INTER_LANCZOS4}


def _with_channel(out, img):
    return out[:, :, None] if img.ndim == 3 and img.shape[2] == 1 else out


def _base(width, height, start_x, start_y):
    """[height · width, 3]: x, y and 1 of every pixel's middle."""
    x = linspace(start_x, start_x + width - 1, width).reshape([1, width, 1]).expand([height, width, 1])
    y = linspace(start_y, start_y + height - 1, height).reshape([height, 1, 1]).expand([height, width, 1])
    return concat([x, y, ones([height, width, 1])], axis=-1).reshape([height * width, 3])


def _sample(img, grid, mode, fill):
    """The tensor [c, h, w] at the grid's places; fill where they lie outside (None: zeros)."""
    img = img.unsqueeze(0)
    if fill is None:
        return grid_sample(img, grid, mode=mode, padding_mode="zeros", align_corners=False).squeeze(0)
    seen = ones_like(img[:, :1])
    out = grid_sample(concat([img, seen], axis=1), grid, mode=mode, padding_mode="zeros", align_corners=False)
    out, seen = out[:, :-1], out[:, -1:]
    values = list(fill) if isinstance(fill, (list, tuple)) else [fill]
    color = _core.to_tensor([float(v) for v in values]).astype(out.dtype).reshape([1, len(values), 1, 1])
    if mode == "nearest":
        seen = (seen >= 0.5).astype(out.dtype)
    return (out * seen + (1.0 - seen) * color).squeeze(0)


def _affine_grid(matrix, width, height, out_width, out_height):
    rows = _core.to_tensor(matrix).reshape([2, 3])
    scaled = rows.transpose([1, 0]) / _core.to_tensor([0.5 * width, 0.5 * height])
    base = _base(out_width, out_height, 0.5 - 0.5 * out_width, 0.5 - 0.5 * out_height)
    return base.matmul(scaled).reshape([1, out_height, out_width, 2])


def rotated_tensor(img, angle, interpolation, expand, center, fill):
    """functional.rotate for a tensor [c, h, w]."""
    height, width = img.shape[-2:]
    turn = math.radians(-angle % 360)
    c, s = math.cos(turn), math.sin(turn)
    x, y = (0.0, 0.0) if center is None else (center[0] - width * 0.5, center[1] - height * 0.5)
    matrix = [c, s, x - c * x - s * y, -s, c, y + s * x - c * y]
    out_width, out_height = width, height
    if expand:
        corners = [(a * width * 0.5, b * height * 0.5) for a in (-1, 1) for b in (-1, 1)]
        xs = [matrix[0] * a + matrix[1] * b + matrix[2] for a, b in corners]
        ys = [matrix[3] * a + matrix[4] * b + matrix[5] for a, b in corners]
        out_width, out_height = (math.ceil(round(max(v), 4)) - math.floor(round(min(v), 4)) for v in (xs, ys))
    return _sample(img, _affine_grid(matrix, width, height, out_width, out_height), interpolation, fill)


def affine(img, angle, translate, scale, shear, interpolation="nearest", fill=0, center=None):
    """The image turned by angle (degrees, clockwise), moved by translate pixels, scaled, and sheared by one or two angles,
    round center (its middle). As in Paddle, PIL images have zeros for fill, and arrays lie
    where cv2's own matrix puts them, which is not quite where PIL does."""
    kind = _kind(img, "affine")
    if not isinstance(angle, (int, float)):
        raise TypeError(f"affine: angle must be a number, got {type(angle).__name__}")
    if not isinstance(translate, (list, tuple)):
        raise TypeError(f"affine: translate must be a list or tuple, got {type(translate).__name__}")
    if len(translate) != 2:
        raise ValueError(f"affine: translate must have two numbers, got {translate!r}")
    if scale <= 0:
        raise ValueError(f"affine: scale must be positive, got {scale}")
    shear = [shear, 0.0] if isinstance(shear, numbers.Number) else list(shear)
    shear = shear * 2 if len(shear) == 1 else shear
    if len(shear) != 2:
        raise ValueError(f"affine: shear must be one angle or two, got {shear!r}")
    if kind == "pil":
        middle = center or [v * 0.5 for v in img.size]
        matrix = _matrix(middle, angle, translate, scale, shear)
        return img.transform(img.size, 0, matrix, _PIL_FILTERS[interpolation])
    if kind == "tensor":
        height, width = img.shape[-2:]
        # the sides are exchanged in Paddle, too
        middle = [0.0, 0.0] if center is None else [center[0] - height * 0.5, center[1] - width * 0.5]
        grid = _affine_grid(_matrix(middle, angle, translate, scale, shear), width, height, width, height)
        return _sample(img, grid, interpolation, (fill,) * 3 if isinstance(fill, int) else fill)
    import numpy as np
    cv2, modes = _cv2("affine")
    height, width = img.shape[:2]
    turn = cv2.getRotationMatrix2D(center or (height * 0.5, width * 0.5), angle, scale)
    matrix = np.stack([turn[0] + math.tan(math.radians(shear[1])) * turn[1],
                       turn[1] + math.tan(math.radians(shear[0])) * turn[0]])
    matrix[:, 2] = translate
    color = (fill,) * 3 if isinstance(fill, int) else fill
    out = cv2.warpAffine(img, matrix, dsize=(width, height), flags=modes[interpolation], borderValue=color)
    return _with_channel(out, img)


def _perspective_numbers(start, end):
    """The eight numbers that take the end points to the start points."""
    import numpy as np
    rows = []
    for (x, y), (u, v) in zip(end, start):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    return np.linalg.lstsq(np.array(rows, "float64"), np.array(start, "float64").reshape(8), rcond=None)[0].tolist()


def perspective(img, startpoints, endpoints, interpolation="nearest", fill=0):
    """The image as its four startpoints come to lie on the endpoints (x, y: top left, top right, bottom right, left).
    PIL images have zeros for fill, as in Paddle."""
    kind = _kind(img, "perspective")
    if kind == "array":
        import numpy as np
        cv2, modes = _cv2("perspective")
        matrix = cv2.getPerspectiveTransform(np.array(startpoints, "float32"), np.array(endpoints, "float32"))
        height, width = img.shape[:2]
        out = cv2.warpPerspective(img, matrix, dsize=(width, height), flags=modes[interpolation], borderValue=fill)
        return _with_channel(out, img)
    numbers_ = _perspective_numbers(startpoints, endpoints)
    if kind == "pil":
        return img.transform(img.size, 2, numbers_, _PIL_FILTERS[interpolation])
    height, width = img.shape[-2:]
    base = _base(width, height, 0.5, 0.5)
    top = _core.to_tensor(numbers_[:6]).reshape([2, 3]).transpose([1, 0]) / _core.to_tensor([0.5 * width, 0.5 * height])
    below = _core.to_tensor([*numbers_[6:], 1.0]).reshape([3, 1])
    grid = (base.matmul(top) / base.matmul(below) - 1.0).reshape([1, height, width, 2])
    return _sample(img, grid, interpolation, fill)
