"""Process groups (new_group, get_group), and init_parallel_env, which joins the job."""
import atexit
import os
import sys
import time
import warnings

from .. import _core

_AGAIN = 30.0  # seconds for the store of a job that ended to be gone


class _State:
    groups = {}  # by id
    started = False


class ParallelEnv:
    """The launcher's settings for this process, from its environment."""

    def __init__(self):
        self._rank = int(os.getenv("PADDLE_TRAINER_ID", "0"))
        self._world_size = int(os.getenv("PADDLE_TRAINERS_NUM", "1"))
        self._device_type = os.getenv("PADDLE_XCCL_BACKEND", "")
        kinds = [self._device_type] if self._device_type else ["gpu", "xpu"]
        selected = next(filter(None, (os.getenv(f"FLAGS_selected_{kind}s") for kind in kinds)), "0")
        self._device_id = int(selected.split(",")[0])
        self._trainer_endpoints = (os.getenv("PADDLE_TRAINER_ENDPOINTS") or "").split(",")
        self._current_endpoint = os.getenv("PADDLE_CURRENT_ENDPOINT", "")
        self._nrings = int(os.getenv("FLAGS_nccl_nrings", "1"))
        self._pg_timeout = int(os.getenv("PADDLE_PG_TIMEOUT", "1800000"))

    rank = local_rank = property(lambda self: self._rank)
    world_size = nranks = property(lambda self: self._world_size)
    device_id = dev_id = property(lambda self: self._device_id)
    device_type = property(lambda self: self._device_type)
    current_endpoint = property(lambda self: self._current_endpoint)
    trainer_endpoints = property(lambda self: self._trainer_endpoints)
    nrings = property(lambda self: self._nrings)
    pg_timeout = property(lambda self: self._pg_timeout)


class Group:
    """Some of the world's ranks, in ascending order. rank is this process's number within it, −1 for outsiders."""

    def __init__(self, handle, id, rank, engine, ranks):
        self._handle, self._id, self._rank, self._engine = handle, id, rank, engine
        self._ranks = list(ranks)

    rank = property(lambda self: self._rank)
    ranks = property(lambda self: self._ranks)
    nranks = world_size = property(lambda self: len(self._ranks))
    id = property(lambda self: self._id)
    name = property(lambda self: f"_default_pg{self._id}")
    process_group = property(lambda self: self)
    backend = property(lambda self: "GLOO")

    def is_member(self):
        """Whether this process belongs to it, and it has others."""
        return self._rank >= 0 and len(self._ranks) > 1

    def get_group_rank(self, rank):
        """The number within the group of a rank of the world; −1 if it is no member."""
        return self._ranks.index(rank) if rank in self._ranks else -1

    get_global_rank = property(lambda self: lambda rank: self._ranks[rank])

    def __repr__(self):
        return f"rank: {self._rank}, nranks: {self.nranks}, id: {self._id}, ranks: {self._ranks}, engine: {self._engine}"


def _enter(described, ranks):
    group = Group(*described, ranks)
    _State.groups[group.id] = group
    return group


def world():
    """Group 0: before init_parallel_env, of one process."""
    if 0 not in _State.groups:
        _enter(_core.world_group(), range(_core.dist_place()[1]))
    return _State.groups[0]


def group_of(group, who):
    """The Group that an argument stands for: None, an id (Paddle 2.0) or a Group."""
    if group is None or isinstance(group, int) and group == 0:
        return world()
    if isinstance(group, int):
        return get_group(group)
    if not isinstance(group, Group):
        raise TypeError(f"{who}: group must be a Group of new_group, got {type(group).__name__}")
    return group


def _check_environment():
    for name in ("PADDLE_TRAINER_ID", "PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ENDPOINTS"):
        if not os.getenv(name):
            raise ValueError(f"paddle.distributed initialize error, environment variable {name} is needed, but not set; "
                             "start the script with python -m proa.distributed.launch, or use spawn")


def init_parallel_env():
    """Joins the job that the launcher's environment describes (PADDLE_*, torchrun's, MPI's or Slurm's variables); returns
    the world's group.

    >>> import proa as paddle
    >>> paddle.distributed.get_world_size()
    1
    """
    if _State.started:
        return world()
    if "PADDLE_TRAINERS_NUM" in os.environ and "PROA_SIZE" not in os.environ and ParallelEnv().world_size > 1:
        _check_environment()
    _core.dist_start(None, None, 0, 0, 0, None)
    _State.groups.clear()
    _State.started = True
    if _core.dist_place()[1] < 2:
        warnings.warn("Currently not a parallel execution environment, `paddle.distributed.init_parallel_env` will not do "
                      "anything.")
    else:
        atexit.register(_leave)
        _tell_failure()
    return world()


def join_workers(role_maker):
    """The workers of a job with parameter servers as ranks of the world, when they first call one another. All of them call it."""
    ranks = role_maker._worker_num()
    if _State.started or ranks < 2 or not role_maker._get_pserver_endpoints():
        return
    if not role_maker._is_worker():
        raise RuntimeError("fleet: servers take no part in calls between workers; guard the call by fleet.is_worker()")
    endpoints, store = role_maker._get_trainer_endpoints(), None
    if "PROA_STORE" not in os.environ:
        if len(endpoints) != ranks:
            raise ValueError(f"fleet: {ranks} workers meet at the first one's address, and {len(endpoints)} addresses are known; give the role "
                             "maker all worker_endpoints, or set PADDLE_TRAINER_ENDPOINTS")
        store = "tcp://" + endpoints[0]
    _core.dist_start(store, None, role_maker._worker_index(), ranks, 0, None)
    _State.groups.clear()
    _State.started = True
    atexit.register(_leave)


_joined = {}  # endpoint → how often this process joined a job there


def join_at(endpoint, rank, size):
    """Joins a job of `size` processes that meet at endpoint, "ip:port", as `rank`. Processes may leave a job and join the next one there:
    one that comes while the last one's store is still up waits for its end."""
    _joined[endpoint] = _joined.get(endpoint, 0) + 1
    until = time.monotonic() + _AGAIN
    while True:
        try:
            _core.dist_start(f"tcp://{endpoint}", f"job{_joined[endpoint]}", rank, size, 0, None)
            break
        except (RuntimeError, ValueError) as e:
            if "refused" not in str(e) or time.monotonic() > until:
                _joined[endpoint] -= 1
                raise
            time.sleep(0.05)
    _State.groups.clear()
    _State.started = True
    atexit.register(_leave)


def _tell_failure():
    """The first rank that an exception ends leaves its number where the launcher asked for it: others fail because of it."""
    path, before = os.getenv("PROA_FAILURE_FILE"), sys.excepthook
    if not path:
        return

    def hook(*raised):
        try:
            with open(path, "x") as f:
                f.write(os.environ["PADDLE_TRAINER_ID"])
        except OSError:
            pass
        before(*raised)

    sys.excepthook = hook


def _leave():
    if _State.started:
        _State.groups.clear()
        _State.started = False
        _core.dist_stop()


def is_initialized():
    """Whether init_parallel_env was called."""
    return _State.started


def is_available():
    """Whether this build can communicate: always."""
    return True


def destroy_process_group(group=None):
    """Ends a group; None: all of them, after which init_parallel_env may join again."""
    if group is None or group_of(group, "destroy_process_group").id == 0:
        atexit.unregister(_leave)
        _leave()
        return
    _core.group_end(group._handle)
    del _State.groups[group.id]


def get_rank(group=None):
    """This process's number in the group; −1 if it is no member."""
    if group is None and not _State.started:
        return ParallelEnv().rank
    return group_of(group, "get_rank").rank


def get_world_size(group=None):
    """The number of processes of the group; −1 for who is no member."""
    if group is None and not _State.started:
        return ParallelEnv().world_size
    group = group_of(group, "get_world_size")
    return group.nranks if group.rank >= 0 else -1


def get_backend(group=None):
    """The name that Paddle has for what moves bytes between CPUs."""
    return group_of(group, "get_backend").backend


def new_group(ranks=None, backend=None, timeout=None):
    """A group of these ranks of the world (None: all). All processes call it, in the same order, members or not."""
    size = _core.dist_place()[1]
    ranks = sorted(range(size) if ranks is None else ranks)
    if backend not in (None, "gloo", "nccl", "auto"):
        raise ValueError(f"new_group: backend {backend!r} is none of gloo, nccl, auto")
    return _enter(_core.new_group(ranks), ranks)


def get_group(id=0):
    """The group of that id."""
    if id == 0:
        return world()
    if id not in _State.groups:
        raise ValueError(f"get_group: there is no group {id}; there are {sorted({0, *_State.groups})}")
    return _State.groups[id]
