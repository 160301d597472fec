"""auto_cast and decorate. The casts happen in the core's convert door (dispatch layer); this file has argument checks,
the rules of where AMP takes effect, and the cast of whole models for O2."""
import contextlib
import warnings

from .. import _core
from .._errors import compared

_LEVELS = {"O0": 0, "OD": 1, "O1": 1, "O2": 2}
_on_cpu = {"float16": False, "bfloat16": True}


class _State:
    """AMP settings of the innermost auto_cast."""
    dtype = "float32"
    level = "O0"
    lists = (None, None)  # names moved to the white and to the black list
    last = "float32"  # the dtype of the auto_cast that was entered last, which a scaler outside goes by, as in Paddle
    given = None  # the arguments of the innermost


state = _State()


def amp_state():
    """The arguments of the innermost auto_cast, in effect or not, as a dict; None outside.

    >>> import proa as paddle
    >>> from proa.amp.auto_cast import amp_state
    >>> with paddle.amp.auto_cast(dtype="bfloat16"):
    ...     print(amp_state()["dtype"])
    bfloat16
    """
    return state.given


def allow_on_cpu(dtype, on=True):
    """Whether auto_cast, decorate and GradScaler take effect for dtype on a CPU. Proa's own."""
    if dtype not in _on_cpu:
        raise ValueError(f"allow_on_cpu: dtype must be 'float16' or 'bfloat16', got {dtype!r}")
    _on_cpu[dtype] = bool(on)


def takes_effect(dtype):
    """Both halves do on a device; on a CPU what allow_on_cpu says."""
    return dtype in _on_cpu and (_on_cpu[dtype] or _core.get_device() != "cpu")


def _check_lists(white, black):
    both = set(white or ()) & set(black or ())
    if both:
        raise ValueError(f"auto_cast: {sorted(both)} are in custom_white_list and in custom_black_list")


@contextlib.contextmanager
def amp_guard(enable=True, custom_white_list=None, custom_black_list=None, level='O1', dtype='float16',
              use_promote=True):
    """Inside, operations that gain from it run in dtype: at level O1 those of the white list, at O2 all but the
    black list's."""
    given = {"enable": enable, "custom_white_list": custom_white_list, "custom_black_list": custom_black_list, "level": level,
             "dtype": dtype, "use_promote": use_promote}
    level, dtype = level.upper(), dtype.lower()
    if level not in _LEVELS:
        raise ValueError(f"auto_cast: level must be 'O0', 'OD', 'O1' or 'O2', got {level!r}")
    if enable and dtype not in _on_cpu:
        raise ValueError(f"auto_cast: dtype must be 'float16' or 'bfloat16', got {dtype!r}")
    if enable and not takes_effect(dtype):
        warnings.warn(f"auto_cast: {dtype} has no effect on a CPU; use bfloat16")
        enable = False
    _check_lists(custom_white_list, custom_black_list)
    state.last = dtype
    asked = level if enable else "O0"
    before = state.dtype, state.level, state.lists, state.given
    token = _core.autocast_enter(_LEVELS[asked], dtype if dtype in _on_cpu else "bfloat16",
                                 custom_white_list or None, custom_black_list or None)
    state.dtype, state.level, state.given = (dtype if enable else "float32"), asked, given
    state.lists = custom_white_list, custom_black_list
    try:
        yield
    finally:
        state.dtype, state.level, state.lists, state.given = before
        _core.autocast_leave(token)


@contextlib.contextmanager
def suspended():
    """Inside, operations run in the precision of their inputs: for steps of optimizers that are called under auto_cast."""
    token = _core.autocast_enter(_LEVELS["O0"], "bfloat16", None, None)
    try:
        yield
    finally:
        _core.autocast_leave(token)


def auto_cast(enable=True, custom_white_list=None, custom_black_list=None, level='O1', dtype='float16',
              use_promote=True):
    """A context for mixed precision: see amp_guard.

    >>> import proa as paddle
    >>> x = paddle.ones([2, 2])
    >>> with paddle.amp.auto_cast(dtype="bfloat16"):
    ...     print(paddle.matmul(x, x).dtype)
    paddle.bfloat16
    """
    return amp_guard(enable, custom_white_list, custom_black_list, level, dtype, use_promote)


# ---- decorate -----------------------------------------------------------------------------


def _stays_float32(layer, dtype):
    from .. import nn
    if not getattr(layer, "_cast_to_low_precison", True):
        return True
    keep = ["BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "SyncBatchNorm"]
    if dtype == "float16":
        keep += ["LayerNorm", "InstanceNorm1D", "InstanceNorm2D", "InstanceNorm3D"]
    kinds = tuple(getattr(nn, name) for name in keep if hasattr(nn, name))
    return isinstance(layer, kinds)


def _exclude(models, excluded):
    from ..nn import Layer
    excluded = [] if excluded is None else excluded if isinstance(excluded, (list, tuple)) else [excluded]
    for item in excluded:
        if isinstance(item, Layer):
            layers = item.sublayers(include_self=True)
        elif isinstance(item, type) and issubclass(item, Layer):
            layers = [one for m in models for one in m.sublayers(include_self=True) if isinstance(one, item)]
        else:
            raise TypeError(f"decorate: excluded_layers must be Layers or their types, got {item!r}")
        for layer in layers:
            layer._cast_to_low_precison = False


class _SaveAs:
    """A state_dict hook: floating entries are saved in one dtype."""

    def __init__(self, dtype):
        self._dtype = dtype

    def __call__(self, state_dict):
        for key, value in state_dict.items():
            if "float" in str(value.dtype):
                cast = _core.cast(value, self._dtype)
                cast.name = value.name
                state_dict[key] = cast


def _all_of(who, kind, value, plural):
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if not isinstance(item, kind):
            raise (RuntimeError if isinstance(value, (list, tuple)) else TypeError)(
                f"decorate: {plural} must be {who}, got {type(item).__name__}")
    return items


def amp_decorate(models, optimizers=None, level='O1', dtype='float16', master_weight=None, save_dtype=None,
                 master_grad=False, excluded_layers=None):
    """For O2: casts the models to dtype, apart from norms and excluded_layers; their optimizers keep float32
    masters unless master_weight is False. O1 changes nothing."""
    if level not in ('O1', 'O2'):
        compared(level)
        raise ValueError(f"decorate: level must be 'O1' or 'O2', got {level!r}")
    if dtype not in _on_cpu:
        raise ValueError(f"decorate: dtype must be 'float16' or 'bfloat16', got {dtype!r}")
    result = models if optimizers is None else (models, optimizers)
    if level == 'O1' or not takes_effect(dtype):
        return result
    if save_dtype not in (None, 'float16', 'bfloat16', 'float32', 'float64'):
        raise ValueError(f"decorate: save_dtype must be a floating dtype's name, got {save_dtype!r}")
    from ..nn import Layer
    from ..optimizer import Optimizer
    each = _all_of("Layers", Layer, models, "models")
    _exclude(each, excluded_layers)
    for model in each:
        for layer in model.sublayers(include_self=True):
            if not _stays_float32(layer, dtype):
                layer._cast(dtype, floating_only=True)
    if optimizers is not None:
        for optimizer in _all_of("Optimizers", Optimizer, optimizers, "optimizers"):
            optimizer._multi_precision = master_weight is not False
    if save_dtype is not None:
        for model in each:
            for layer in model.sublayers(include_self=True):
                layer.register_state_dict_hook(_SaveAs(save_dtype))
    return result


def decorate(models, optimizers=None, level='O1', dtype='float16', master_weight=None, save_dtype=None,
             master_grad=False, excluded_layers=None):
    """See amp_decorate."""
    return amp_decorate(models, optimizers, level, dtype, master_weight, save_dtype, master_grad, excluded_layers)
