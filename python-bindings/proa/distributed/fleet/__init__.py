"""paddle.distributed.fleet: joining a job, and distributed training of a model. Of the strategy's transforms of static
programs tensor_parallel and qat are missing (docs/limits.md)."""
from . import base, data_generator, metrics, utils
from .base.distributed_strategy import DistributedStrategy
from .base.role_maker import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from .base.topology import CommunicateTopology, HybridCommunicateGroup, ParallelMode
from .base.util_factory import UtilBase
from .data_generator import MultiSlotDataGenerator, MultiSlotStringDataGenerator
from .fleet import Fleet, fleet
from .utils.recompute import recompute, recompute_sequential


__all__ = ["CommunicateTopology", "DistributedStrategy", "Fleet", "HybridCommunicateGroup", "MultiSlotDataGenerator",
           "MultiSlotStringDataGenerator", "PaddleCloudRoleMaker", "Role", "UserDefinedRoleMaker", "UtilBase"]

_METHODS = [name for name in dir(Fleet) if not name.startswith("_") and name != "util"]
globals().update({name: getattr(fleet, name) for name in _METHODS})
util = fleet.util


def __getattr__(name):
    if name in ("dataset", "meta_parallel", "meta_optimizers", "layers"):
        import importlib
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'paddle.distributed.fleet' has no attribute {name!r}")
