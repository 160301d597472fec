"""paddle.distributed.rpc: functions that run on other workers of the job."""
from .rpc import (get_all_worker_infos, get_current_worker_info, get_worker_info, init_rpc, rpc_async, rpc_sync,
                  shutdown)

__all__ = ["get_all_worker_infos", "get_current_worker_info", "get_worker_info", "init_rpc", "rpc_async", "rpc_sync", "shutdown"]
