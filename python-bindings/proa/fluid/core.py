"""fluid.core: stand-in for Paddle's C++ extension module, with the names that scripts use of it."""
from .. import _core, _legacy_C_ops as ops
from .._core import CPUPlace, CUDAPinnedPlace, CUDAPlace, CustomPlace, NPUPlace, XPUPlace
from ..device import (get_cudnn_version, is_compiled_with_cuda, is_compiled_with_ipu, is_compiled_with_npu,
                      is_compiled_with_rocm, is_compiled_with_xpu)
from ..framework.cipher import Cipher, CipherFactory, CipherUtils
from ..framework.random import default_generator
from ..inference.quantizer import MkldnnQuantizerConfig, PaddleTensor
from ..static.graph import Graph
from ..static.scope import Scope, ScopeTensor as LoDTensor, _switch_scope
from .op import OpProtoHolder

Tensor = LoDTensor
VarBase = _core.Tensor
eager = type("eager", (), {"Tensor": _core.Tensor, "EagerParamBase": _core.Tensor, "ops": ops})
LoDTensorArray = list
Place = type(CPUPlace())
EnforceNotMet = RuntimeError
kEmptyVarName = "@EMPTY@"


class EOFException(Exception):
    """A reader has no more data."""


class VarDesc:
    """Descriptions of variables."""

    VarType = _core.dtype


class op_proto_and_checker_maker:
    """Names of the attributes that every operator has."""

    class OpRole:
        Forward, Backward, Optimize, RPC, Dist, LRSched, Loss = 0, 1, 2, 4, 8, 16, 256

    kOpRoleAttrName = staticmethod(lambda: "op_role")
    kOpRoleVarAttrName = staticmethod(lambda: "op_role_var")
    kOpNameScopeAttrName = staticmethod(lambda: "op_namescope")
    kOpCreationCallstackAttrName = staticmethod(lambda: "op_callstack")
    kOpDeviceAttrName = staticmethod(lambda: "op_device")


def grad_var_suffix():
    """The suffix of gradients' names."""
    return "@GRAD"


def default_cpu_generator():
    """The generator that paddle.seed seeds."""
    return default_generator


def get_low_precision_op_list():
    """{operator: its calls in float16, bfloat16, float32 and others} of amp.debugging's last collection."""
    from ..amp.debugging import _counted
    return {op: ",".join(map(str, calls)) for op, calls in sorted(_counted.items())}


def clear_low_precision_op_list():
    """Forgets get_low_precision_op_list's calls."""
    from ..amp.debugging import _counted
    _counted.clear()


def get_cuda_device_count():
    return 0


def is_float16_supported(place):
    return True


is_bfloat16_supported = is_float16_supported


def op_support_gpu(op_type):
    """Whether an operator runs on a GPU here."""
    return False


def supports_bfloat16():
    return True


supports_bfloat16_fast = supports_bfloat16


# Types without a gradient kernel of their own in Paddle: it is an operator of another type, as a cast's is a cast, or there is none.
_GRADIENT_IS_ANOTHER = frozenset("""as_complex as_real assign bernoulli c_allgather c_allreduce_max c_allreduce_min
c_allreduce_prod c_allreduce_sum c_broadcast c_reducescatter cast conj cross_entropy2 cumsum dequantize_linear diag_v2
elementwise_mod exponential fake_channel_wise_dequantize_max_abs fake_channel_wise_quantize_abs_max
fake_channel_wise_quantize_dequantize_abs_max fake_dequantize_max_abs fake_quantize_abs_max
fake_quantize_dequantize_abs_max fake_quantize_dequantize_moving_average_abs_max fake_quantize_moving_average_abs_max
fake_quantize_range_abs_max fc fill_zeros_like2 flip grad_add increment minus moving_average_abs_max_scale
mp_allreduce_sum quantize_linear reverse roll scale sequence_reverse share_data sign split split_byref sum tile_like
transfer_layout unbind view_dtype""".split())


def _get_all_register_op_kernels(lib="all"):
    """Kernels by operator, those of gradients under <type>_grad."""
    from .op import _protos
    kernels = {op_type: ["data_type[float]"] for op_type in _protos()}
    kernels.update({f"{op_type}_grad": ["data_type[float]"] for op_type in _protos()
                    if op_type not in _GRADIENT_IS_ANOTHER and _core.has_gradient(op_type)})
    return kernels


def get_all_op_protos():
    from .op import get_all_op_protos as protos
    return protos()


class _Globals:
    """Paddle's flags as a dict: known ones are read and set, others are kept."""

    _kept = {}

    def __getitem__(self, name):
        from ..utils.flags import get_flags
        try:
            return get_flags([name])[name]
        except ValueError:
            return self._kept.get(name, False)

    def __setitem__(self, name, value):
        from ..utils.flags import set_flags
        try:
            set_flags({name: value})
        except ValueError:
            self._kept[name] = value

    def __contains__(self, name):
        return True

    def is_public(self, name):
        return True


_globals = _Globals()


def globals():
    """The flags."""
    return _globals


def _set_eager_deletion_mode(threshold, fraction, fast):
    """Memory is given back as soon as nothing holds it, whatever is set."""


def _cuda_synchronize(place):
    _core.synchronize()


def has_infer_inplace(op_type):
    """Whether an operator's output may take over its input's memory by its own declaration: plans decide that here."""
    return False


def has_grad_op_maker(op_type):
    """Whether an operator describes its gradient as an operator: gradients are made of operators by rules here."""
    return False


has_non_empty_grad_op_maker = has_grad_op_maker


def infer_no_need_buffer_slots(op_type, inputs, outputs, attrs):
    """Slots of a gradient operator whose elements it does not read: plans find out by themselves."""
    return set()


def get_op_info(op_type):
    return OpProtoHolder.instance().get_op_proto(op_type)


_PREDICTION = ("AnalysisConfig", "AnalysisPredictor", "create_paddle_predictor")


def __getattr__(name):
    if name in ("Operator", "Program"):
        from ..static import program
        return getattr(program, name)
    if name in _PREDICTION:
        from . import predictor
        return getattr(predictor, name)
    raise AttributeError(f"module 'paddle.fluid.core' has no attribute {name!r}")
