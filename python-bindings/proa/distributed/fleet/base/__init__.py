"""Parts of fleet: DistributedStrategy, role makers, topologies."""
from .distributed_strategy import DistributedStrategy
from .role_maker import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from .topology import CommunicateTopology, HybridCommunicateGroup, ParallelMode

__all__ = ["CommunicateTopology", "DistributedStrategy", "HybridCommunicateGroup", "PaddleCloudRoleMaker", "ParallelMode", "Role",
           "UserDefinedRoleMaker"]
