"""paddle.fluid: the API of Paddle 1.x and 2.0, mostly as aliases of paddle's; paddle.base, as 2.6 calls it, is the same. Modules are
imported at first use."""
from .. import regularizer as _regularizer
from .._core import CPUPlace, CUDAPinnedPlace, CUDAPlace, CustomPlace, XPUPlace
from ..framework.mode import enable_static as disable_dygraph, disable_static as enable_dygraph

enable_imperative, disable_imperative = enable_dygraph, disable_dygraph
from ..framework.param_attr import ParamAttr, WeightNormParamAttr
from ..static.scope import ScopeTensor as LoDTensor

Tensor = LoDTensor
LoDTensorArray = list

_MODULES = """average backward clip compiler contrib core data_feed_desc data_feeder dataset default_scope_funcs dygraph dygraph_utils executor
framework generator initializer input io layer_helper layer_helper_base layers lod_tensor log_helper metrics nets op optimizer
param_attr profiler reader regularizer transpiler unique_name wrapped_decorator""".split()
_NAMES = {}
for _module, _names in {
        ".framework": """Program Variable data cpu_places cuda_pinned_places cuda_places default_main_program
                         default_startup_program device_guard get_flags in_dygraph_mode in_dynamic_or_pir_mode in_pir_mode
                         is_compiled_with_cinn is_compiled_with_cuda is_compiled_with_rocm is_compiled_with_xpu name_scope program_guard require_version set_flags""",
        ".executor": "Executor global_scope scope_guard", ".core": "Scope",
        ".backward": "append_backward gradients", ".data_feeder": "DataFeeder",
        ".dataset": "DatasetFactory InMemoryDataset QueueDataset", ".data_feed_desc": "DataFeedDesc",
        ".lod_tensor": "create_lod_tensor create_random_int_lodtensor", ".input": "embedding one_hot",
        ".compiler": "BuildStrategy CompiledProgram ExecutionStrategy ParallelExecutor",
        ".transpiler": "DistributeTranspiler DistributeTranspilerConfig memory_optimize release_memory",
        ".dygraph": """BatchNorm BilinearTensorProduct Conv2D Conv2DTranspose Conv3D Conv3DTranspose Dropout Embedding Flatten
                       GRUUnit GroupNorm InstanceNorm Layer LayerNorm Linear NCE PRelu Pool2D SpectralNorm load_dygraph
                       save_dygraph""",
        ".initializer": "set_global_initializer", ".io": "load load_program_state save set_program_state"}.items():
    _NAMES.update(dict.fromkeys(_names.split(), _module))


def __getattr__(name):
    import importlib
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _NAMES:
        raise AttributeError(f"module 'paddle.fluid' has no attribute {name!r}")
    value = getattr(importlib.import_module(_NAMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_MODULES, *_NAMES})
