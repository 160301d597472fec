"""init_rpc, rpc_sync, rpc_async and what tells of workers."""
import os
import secrets
import socket

from ... import _core
from .. import group as _group
from ..communication import barrier
from ..objects import all_gather_object
from .agent import Agent, WorkerInfo

_DEFAULT_RPC_TIMEOUT = -1


class _State:
    agent, name, joined = None, None, False


class FutureWrapper:
    """The result of rpc_async, which wait() gives."""

    def __init__(self, future, timeout):
        self._future, self._timeout = future, timeout

    def wait(self):
        """The function's result, or its exception."""
        return self._future.result()

    def done(self):
        """Whether wait would return at once."""
        return self._future.done()


def _number(given, variable, what):
    value = os.getenv(variable) if given is None else given
    if value is None:
        raise ValueError(f"init_rpc: {what} must be given, or {variable} be set")
    return int(value)


def _join(rank, size, master):
    """Joins the job where the workers meet, unless this process is in it already."""
    if size < 2 or _group.is_initialized():
        if size > 1 and _core.dist_place() != (rank, size):
            raise ValueError(f"init_rpc: this process is rank {_core.dist_place()[0]} of {_core.dist_place()[1]} of its job, and init_rpc says "
                             f"{rank} of {size}")
        return False
    if master is None:
        _group.init_parallel_env()
    else:
        _group.join_at(master, rank, size)
    return True


def _address(master):
    """(ip, port) to listen at: PADDLE_WORKER_ENDPOINT, or any port of the interface towards the meeting place."""
    given = os.getenv("PADDLE_WORKER_ENDPOINT")
    if given:
        host, _, port = given.rpartition(":")
        return host, int(port)
    host = (master or os.getenv("PADDLE_MASTER") or os.getenv("MASTER_ADDR") or "127.0.0.1").rpartition("/")[2]
    host = host.rpartition(":")[0] or host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # sends nothing: asks which interface leads there
        return probe.getsockname()[0], 0


def init_rpc(name, rank=None, world_size=None, master_endpoint=None):
    """Makes this process the worker `name` of world_size; returns when all are here. They meet at master_endpoint, "ip:port", an address
    of rank 0's host, or where the launcher says; there they get the secret by which they know one another. Workers run each other's
    functions: all of them must be trusted.

    >>> from proa.distributed import rpc
    >>> rpc.init_rpc("worker0", rank=0, world_size=1)
    >>> rpc.rpc_sync("worker0", max, args=(2, 3))
    3
    >>> rpc.shutdown()
    """
    if _State.agent is not None:
        raise RuntimeError(f"init_rpc: this process is worker {_State.name} already; call shutdown() first")
    if not isinstance(name, str) or not name:
        raise TypeError(f"init_rpc: name must be a string, got {name!r}")
    rank, size = _number(rank, "PADDLE_TRAINER_ID", "rank"), _number(world_size, "PADDLE_TRAINERS_NUM", "world_size")
    if not 0 <= rank < size:
        raise ValueError(f"init_rpc: rank must be in [0, {size}), world_size's, got {rank}")
    master = master_endpoint or os.getenv("PADDLE_MASTER_ENDPOINT")
    _State.joined = _join(rank, size, master)
    found = [secrets.token_bytes(32)]
    if size > 1:
        found = []
        all_gather_object(found, secrets.token_bytes(32) if rank == 0 else b"")
    agent = Agent(name, rank, *_address(master), found[0])
    ip = agent._listener.getsockname()[0]
    found = [[name, rank, ip, agent.port]]
    if size > 1:
        found = []
        all_gather_object(found, [name, rank, ip, agent.port])
    names = [entry[0] for entry in found]
    if len(set(names)) != size:
        agent.close()
        raise ValueError(f"init_rpc: workers must have different names, got {names}")
    agent.meet([WorkerInfo(*entry) for entry in found])
    if size > 1:
        barrier()  # nobody is called before worker 0 would notice its end
    _State.agent, _State.name = agent, name


def _agent(who):
    if _State.agent is None:
        raise RuntimeError(f"{who}: call init_rpc first")
    return _State.agent


def rpc_async(to, fn, args=None, kwargs=None, timeout=_DEFAULT_RPC_TIMEOUT):
    """A future of fn(*args, **kwargs) on the worker `to`; function, arguments and result are pickled. timeout: seconds; not positive:
    until the worker answers or is gone."""
    agent = _agent("rpc_async")
    info = get_worker_info(to)
    if not callable(fn):
        raise TypeError(f"rpc_async: fn must be callable, got {type(fn).__name__}")
    limit = timeout if timeout is not None and timeout > 0 else None
    return FutureWrapper(agent.call(info, fn, tuple(args or ()), dict(kwargs or {}), limit), limit)


def rpc_sync(to, fn, args=None, kwargs=None, timeout=_DEFAULT_RPC_TIMEOUT):
    """fn(*args, **kwargs) on the worker `to`. What it raises there is raised here; a worker that is gone is a RuntimeError that names it,
    one that does not answer in time a TimeoutError."""
    return rpc_async(to, fn, args, kwargs, timeout).wait()


def shutdown():
    """Waits for this worker's calls, until all workers have called it, and ends."""
    agent = _agent("shutdown")
    try:
        agent.leave()
    finally:
        agent.close()
        _State.agent = _State.name = None
        if _State.joined:
            _State.joined = False
            _group.destroy_process_group()


def get_worker_info(name):
    """The worker of that name: name, rank, ip and port."""
    infos = _agent("get_worker_info").infos
    if name not in infos:
        raise ValueError(f"rpc: there is no worker {name!r}; there are {sorted(infos)}")
    return infos[name]


def get_all_worker_infos():
    """All workers, in the order of ranks."""
    return sorted(_agent("get_all_worker_infos").infos.values(), key=lambda info: info.rank)


def get_current_worker_info():
    """This worker."""
    return get_worker_info(_State.name) if _agent("get_current_worker_info") else None
