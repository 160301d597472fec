"""paddle.amp.debugging: NaN and infinity in the results of ops, and how often ops were called by dtype."""
import contextlib
import enum
import functools
import os
import random

from .. import _core
from ..fluid.framework import dygraph_only
from ..framework import mode, seed
from ..framework.dtype import dtype_name
from ..framework.random import get_rng_state
from ..utils.flags import get_flags, set_flags

__all__ = ["DebugMode", "TensorCheckerConfig", "check_numerics", "enable_operator_stats_collection",
           "disable_operator_stats_collection", "collect_operator_stats", "enable_tensor_checker",
           "disable_tensor_checker", "compare_accuracy", "check_layer_numerics"]

_SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_COLUMNS = {"float16": 0, "bfloat16": 1, "float32": 2}
_OTHER = 3
_FP16_MAX = 65504.0
_SEED_MAX = 2**32 - 1
_FALLBACK_SEED = 123


class DebugMode(enum.Enum):
    """The results that are reported: those with NaN or infinity, as errors or not; also float32 beyond float16's range; all."""
    CHECK_NAN_INF_AND_ABORT = 0
    CHECK_NAN_INF = 1
    CHECK_ALL_FOR_OVERFLOW = 2
    CHECK_ALL = 3


# ---- one tensor --------------------------------------------------------------------------

def _where(device, op, name, dtype):
    return f"[device={device}, op={op}, tensor={name}, dtype={_SHORT.get(dtype, dtype)}]"


def _line(where, numel, numbers, level, dtype):
    """The log's line on a tensor, and whether it is bad; None: nothing to report at this level."""
    nan, inf, zero, most, least, mean = numbers
    values = f"num_zero={zero}, max={most:e}, min={least:e}, mean={mean:e}"
    if nan or inf:
        return f"[PRECISION] [ERROR] in {where}, numel={numel}, num_nan={nan}, num_inf={inf}, {values}", True
    beyond = dtype == "float32" and (abs(most) > _FP16_MAX or abs(least) > _FP16_MAX)
    if level >= DebugMode.CHECK_ALL.value or level >= DebugMode.CHECK_ALL_FOR_OVERFLOW.value and beyond:
        return f"[PRECISION] in {where}, numel={numel}, {values}", False
    return None


def _failure(where, numbers):
    nan, inf, zero = numbers[:3]
    return f"There are NAN or INF (num_nan={nan}, num_inf={inf}, num_zero={zero}) in {where}."


def _numbers_of(tensor, op, name, level):
    """(nan, inf, zero, max, min, mean) of a tensor, reported as the level says."""
    dtype = dtype_name(tensor.dtype)
    numbers = _core.numerics(tensor)
    if numbers is None:
        raise RuntimeError(f"check_numerics: tensor must be floating-point or complex, got {dtype}")
    place = tensor.place
    where = _where("cpu" if place.is_cpu_place() else place._device_name(), op, name, dtype)
    line = _line(where, tensor.size, numbers, level, dtype)
    if line is not None:
        print(line[0])
        if line[1] and level == DebugMode.CHECK_NAN_INF_AND_ABORT.value:
            raise RuntimeError("(PreconditionNotMet) " + _failure(where, numbers))
    return numbers


def check_numerics(tensor, op_type, var_name, debug_mode=DebugMode.CHECK_NAN_INF_AND_ABORT):
    """Counts what a tensor holds, and reports it as debug_mode says, under the names given.

    Returns stats, int64 [number of NaN, of infinite values, of zeros], and values, float32 [max, min, mean].
    RuntimeError in mode CHECK_NAN_INF_AND_ABORT if there are NaN or infinite values.
    """
    level = debug_mode.value
    if not isinstance(tensor, _core.Tensor):
        raise ValueError(f"(InvalidArgument) check_numerics(): argument 'tensor' (position 0) must be Tensor, but got "
                         f"{'None' if tensor is None else type(tensor).__name__}")
    for position, text in ((2, op_type), (3, var_name)):
        if not isinstance(text, str):
            raise ValueError(f"(InvalidArgument) check_numerics(): argument (position {position}) must be str, but got "
                             f"{type(text).__name__}")

    def counted(value):
        numbers = _numbers_of(value, op_type, var_name, level)
        return _core.to_tensor(list(numbers[:3]), dtype="int64"), _core.to_tensor(list(numbers[3:]), dtype="float32")
    if mode.building():
        from ..static.host import call_in_run
        return tuple(call_in_run(lambda value: counted(value._value()), [tensor], [("int64", [3]), ("float32", [3])]))
    return counted(tensor)


def check_layer_numerics(func):
    """Decorates a layer's forward: while it runs, a result with NaN or infinity is a RuntimeError that names the op. The
    first argument must be a tensor, and gets a gradient."""
    @functools.wraps(func)
    def wrapper(self, *args, **kwargs):
        if not args:
            raise RuntimeError("No elements found in args.")
        if not isinstance(args[0], _core.Tensor):
            raise RuntimeError("First input of this layer must be tensor.")
        args[0].stop_gradient = False
        with _checking(_Watch(DebugMode.CHECK_NAN_INF_AND_ABORT.value, None, None, None)):
            return func(self, *args, **kwargs)
    return wrapper


# ---- every op's results ------------------------------------------------------------------

class _Watch:
    """One setting of the check: which ops, which level, and the folder of the log."""

    def __init__(self, level, output_dir, checked, skipped):
        self.level, self.output_dir = level, output_dir
        self.only = None if checked is None else frozenset(checked)
        self.but = frozenset(skipped or ())

    def wants(self, op):
        return (self.only is None or op in self.only) and op not in self.but

    def report(self, op, dtype, device, numel, numbers):
        where = _where(device, op, "", dtype)
        line = _line(where, numel, numbers, self.level, dtype)
        if line is None:
            return None
        if self.output_dir is None:
            print(line[0])
        else:
            os.makedirs(self.output_dir, exist_ok=True)
            with open(os.path.join(self.output_dir, f"worker_{device}"), "a", encoding="utf-8") as log:
                log.write(line[0] + "\n")
        abort = line[1] and self.level == DebugMode.CHECK_NAN_INF_AND_ABORT.value
        return _failure(where, numbers) if abort else None


_active = {"watch": None, "counts": None}
_counted = {}  # by the last collection


def _count(op, dtype):
    _active["counts"].setdefault(op, [0, 0, 0, 0])[_COLUMNS.get(dtype, _OTHER)] += 1


def _install(**what):
    """Opens the watch door for what is asked for, and closes it when nothing is."""
    _active.update(what)
    watch = _active["watch"]
    _core.inspect_calls(None if _active["counts"] is None else _count, watch and watch.wants, watch and watch.report)


@contextlib.contextmanager
def _checking(watch):
    before, flag = _active["watch"], get_flags("FLAGS_check_nan_inf")
    _watch(watch)
    try:
        yield
    finally:
        set_flags(flag)
        _install(watch=before)


def _watch(watch):
    set_flags({"FLAGS_check_nan_inf": watch is not None})
    _install(watch=watch)


def follow_flags():
    """Checks as FLAGS_check_nan_inf and its level say, which were set by hand."""
    flags = get_flags(["FLAGS_check_nan_inf", "FLAGS_check_nan_inf_level"])
    on, level = flags.values()
    _install(watch=_Watch(level, None, None, None) if on and level else None)


def _op_names(what, names):
    if names is not None and not isinstance(names, (list, tuple)):
        raise ValueError(f"{what} must be list or tuple, got {type(names).__name__}")


class TensorCheckerConfig:
    """The settings of enable_tensor_checker: the ops whose results are looked at (checked_op_list, skipped_op_list, by Paddle's names of
    operators; gradients end in _grad), what is reported (debug_mode), where (output_dir; None: on stdout), and in which
    calls of enable_tensor_checker (debug_step=[first, end]). enable also sets all seeds.

    stack_height_limit must be an int, and means nothing here: Python's own traceback names the call.
    """
    current_step_id = 0

    def __init__(self, enable, debug_mode=DebugMode.CHECK_NAN_INF_AND_ABORT, output_dir=None, checked_op_list=None,
                 skipped_op_list=None, debug_step=None, stack_height_limit=1):
        self.enable, self.debug_mode, self.output_dir = enable, debug_mode, output_dir
        self.checked_op_list, self.skipped_op_list = checked_op_list, skipped_op_list
        self.debug_step, self.stack_height_limit = debug_step, stack_height_limit
        self.start_step = self.end_step = None
        self.seed = _FALLBACK_SEED
        if debug_step is not None:
            if not isinstance(debug_step, (tuple, list)):
                raise ValueError(f"debug_step must be list or tuple, got {type(debug_step).__name__}")
            if len(debug_step) != 2 or debug_step[1] <= debug_step[0]:
                raise AssertionError(f"debug_step must be two numbers, the second greater, got {debug_step}")
            self.start_step, self.end_step = max(debug_step[0], 0), debug_step[1]
        self.initial_seed = get_rng_state()[0].current_seed()
        if debug_mode.name not in DebugMode.__members__:
            raise ValueError("debug_mode in DebugMode", debug_mode, DebugMode.__members__)
        _op_names("checked_op_list", checked_op_list)
        _op_names("skipped_op_list", skipped_op_list)
        if enable:
            self._set_seed(enable)

    def _set_seed(self, flag):
        import numpy as np
        self.seed = self.initial_seed
        if not 0 <= self.seed <= _SEED_MAX:
            print("[Warnning: Seed must be between 0 and 2**32 - 1")
            self.seed = _FALLBACK_SEED
        seed(self.seed)
        np.random.seed(self.seed)
        random.seed(self.seed)
        print("AMP Debugging TensorCheckerConfig: seed ", self.seed)
        set_flags({"FLAGS_cpu_deterministic": flag})
        print("AMP Debugging TensorCheckerConfig: FLAGS_cpu_deterministic is ", flag)

    def update_and_check_step_id(self):
        """Counts a step; whether it is one to check."""
        if not self.enable:
            return False
        if self.start_step is None or self.end_step is None:
            return True
        step = TensorCheckerConfig.current_step_id
        if step >= self.end_step:
            return False
        TensorCheckerConfig.current_step_id += 1
        return step >= self.start_step

    def start_check_nan_inf(self):
        """Checks results from now on."""
        if not self.enable:
            return
        if not isinstance(self.stack_height_limit, int):
            raise ValueError(f"stack_height_limit must be int, got {type(self.stack_height_limit).__name__}")
        set_flags({"FLAGS_check_nan_inf_level": self.debug_mode.value})
        _watch(_Watch(self.debug_mode.value, self.output_dir, self.checked_op_list, self.skipped_op_list))

    def stop_check_nan_inf(self):
        """Checks no more."""
        _watch(None)


def enable_tensor_checker(checker_config):
    """Checks every op's results as the config says, or stops checking where this step is none to check."""
    if checker_config.update_and_check_step_id():
        checker_config.start_check_nan_inf()
    else:
        checker_config.stop_check_nan_inf()


def disable_tensor_checker():
    """Checks results no more."""
    _watch(None)


# ---- calls by dtype ----------------------------------------------------------------------

def _print_operator_stats(op_count_dict):
    """The table of {op: calls in fp16, bf16, fp32, others}, a list or a text with commas each."""
    print(f"<{' op list ':-^120}>")
    print(f"<{' Op Name ':-^40}", f"{' FP16 Calls ':-^17}", f"{' BF16 Calls ':-^17}", f"{' FP32 Calls':-^17}",
          f"{' Other Calls ':-^17}>", sep=" | ")
    for op, calls in sorted((op_count_dict or {}).items()):
        if not isinstance(calls, (list, str)):
            raise ValueError(f"Input {calls} is expected to be a list of str, but recieved {type(calls)}.")
        calls = calls.split(",") if isinstance(calls, str) else calls
        print(f"  {op:<40}|  " + "|  ".join(f"{n:<17}" for n in calls[:4]))
    text = f" op count: {len(op_count_dict or {})} "
    print(f"<{text:-^120}>\n")


@dygraph_only
def enable_operator_stats_collection():
    """Counts the ops that are called from now on, by the dtype that they compute in."""
    _counted.clear()
    set_flags({"FLAGS_low_precision_op_list": 1})
    _install(counts=_counted)


@dygraph_only
def disable_operator_stats_collection():
    """Ends the counting and prints the table; nothing if there was none."""
    counts = _active["counts"]
    if counts is None:
        return
    _install(counts=None)
    set_flags({"FLAGS_low_precision_op_list": 0})
    _print_operator_stats(counts)


@dygraph_only
@contextlib.contextmanager
def collect_operator_stats():
    """Counts the ops of the block, and prints the table at its end."""
    enable_operator_stats_collection()
    yield
    disable_operator_stats_collection()


def compare_accuracy(dump_path, another_dump_path, output_filename, loss_scale=1, dump_all_tensors=False):
    """Compares the logs of two runs, as TensorCheckerConfig's output_dir has them, the first in float32: a sheet a worker
    in the workbook output_filename, with values that float16 cannot hold in red. Needs the package xlsxwriter."""
    if dump_all_tensors is not False:
        raise AssertionError("compare_accuracy: dump_all_tensors must be False; it is not supported")
    from .accuracy_compare import compare_accuracy as compare
    compare(dump_path, another_dump_path, output_filename, loss_scale, dump_all_tensors=False)
