"""paddle.incubate.autotune: which choices are tuned by measuring."""
import json
import warnings

from ..io.reader import set_autotune_config
from ..utils.flags import set_flags

__all__ = ["set_config"]


def _entry(config, part, key, kind):
    """An entry of a part of the configuration if it is of the kind, with a warning if it is not; None: there is none."""
    value = config[part].get(key)
    if value is not None and not isinstance(value, kind):
        warnings.warn(f"set_config: {key} of {part} should be {kind.__name__}, got {type(value).__name__}; the default is used", stacklevel=3)
        return None
    return value


def set_config(config=None):
    """Turns tuning on or off: a dict by part ('kernel', 'layout', 'dataloader'), or the path of a JSON file with one; None
    turns all on.

    dataloader {'enable': bool, 'tuning_steps': int}: loaders made from now on measure which num_workers is the fastest.
    kernel {'enable': bool, 'tuning_range': [first, last]} sets FLAGS_use_autotune and layout nothing: kernels and layouts
    are chosen by their cost in any case.
    """
    if config is None:
        set_flags({"FLAGS_use_autotune": True})
        set_autotune_config(True)
        return
    if isinstance(config, str):
        try:
            with open(config, encoding="utf-8") as file:
                config = json.load(file)
        except (OSError, ValueError) as e:
            print(f"Load config error: {e}")
            warnings.warn("set_config: the default configuration is used", stacklevel=2)
            config = {}
    config = config if isinstance(config, dict) else {}
    if "kernel" in config:
        enable, span = _entry(config, "kernel", "enable", bool), _entry(config, "kernel", "tuning_range", list)
        if enable is not None:
            set_flags({"FLAGS_use_autotune": enable})
        if span is not None and len(span) != 2:
            raise AssertionError(f"set_config: tuning_range must be [first, last], got {span}")
    if "layout" in config:
        _entry(config, "layout", "enable", bool)
    if "dataloader" in config:
        enable, steps = _entry(config, "dataloader", "enable", bool), _entry(config, "dataloader", "tuning_steps", int)
        if steps is None:
            set_autotune_config(bool(enable))
        else:
            set_autotune_config(bool(enable), steps)
