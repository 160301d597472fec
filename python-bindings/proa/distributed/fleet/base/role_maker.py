"""Role makers: a process's rank, number of ranks and endpoints, from the launcher's environment or the script."""
import os

from ...group import ParallelEnv


class Role:
    """Roles of a process."""

    WORKER, SERVER, HETER_WORKER, ALL, COORDINATOR = 1, 2, 3, 4, 5


def _endpoints(name):
    return [e for e in os.getenv(name, "").split(",") if e]


class RoleMakerBase:
    """Base of role makers: a process's role, index and endpoints."""

    def __init__(self, is_collective=False, **kwargs):
        self._is_collective = is_collective
        self._role, self._current_id = Role.WORKER, 0
        self._worker_endpoints, self._server_endpoints = [], []
        self._worker_number = None

    def _generate_role(self):
        """Nothing is asked of the network."""

    _ensure_role_generated = _generate_role

    def _is_worker(self):
        return self._role == Role.WORKER

    def _is_server(self):
        return self._role == Role.SERVER

    def _is_first_worker(self):
        return self._is_worker() and self._current_id == 0

    def _worker_index(self):
        return self._current_id

    def _server_index(self):
        return self._current_id

    def _role_id(self):
        return self._current_id

    def _worker_num(self):
        return self._worker_number if self._worker_number is not None else max(len(self._worker_endpoints), 1)

    def _server_num(self):
        return len(self._server_endpoints)

    def _get_trainer_endpoints(self):
        return self._worker_endpoints

    def _get_pserver_endpoints(self):
        return self._server_endpoints

    def _node_num(self):
        return len({e.partition(":")[0] for e in self._worker_endpoints}) or 1

    is_worker, is_server, is_first_worker = _is_worker, _is_server, _is_first_worker
    worker_index, server_index, worker_num, server_num = _worker_index, _server_index, _worker_num, _server_num
    role_id, get_trainer_endpoints, get_pserver_endpoints = _role_id, _get_trainer_endpoints, _get_pserver_endpoints

    def to_string(self):
        """Role, number and endpoints as text."""
        return (f"role: {self._role}, current_id: {self._current_id}, worker_endpoints: {self._worker_endpoints}, "
                f"server_endpoints: {self._server_endpoints}")


class PaddleCloudRoleMaker(RoleMakerBase):
    """The role that the environment describes: PADDLE_* as launch sets them."""

    def __init__(self, is_collective=False, **kwargs):
        super().__init__(is_collective, **kwargs)
        self._worker_endpoints = _endpoints("PADDLE_TRAINER_ENDPOINTS")
        if is_collective:
            env = ParallelEnv()
            self._current_id, self._worker_number = env.rank, env.world_size
            return
        self._server_endpoints = _endpoints("PADDLE_PSERVERS_IP_PORT_LIST")
        self._worker_number = int(os.getenv("PADDLE_TRAINERS_NUM", "1"))
        role = os.getenv("TRAINING_ROLE", "TRAINER")
        if role == "TRAINER":
            self._current_id = int(os.getenv("PADDLE_TRAINER_ID", "0"))
        elif role == "PSERVER":
            self._role = Role.SERVER
            me = f"{os.getenv('POD_IP', '127.0.0.1')}:{os.getenv('PADDLE_PORT', '')}"
            if me not in self._server_endpoints:
                raise ValueError(f"PaddleCloudRoleMaker: POD_IP and PADDLE_PORT say {me}, which is none of "
                                 f"PADDLE_PSERVERS_IP_PORT_LIST {self._server_endpoints}")
            self._current_id = self._server_endpoints.index(me)
        elif role == "HETER_TRAINER":
            self._role = Role.HETER_WORKER
        else:
            raise ValueError(f"PaddleCloudRoleMaker: TRAINING_ROLE must be TRAINER, PSERVER or HETER_TRAINER, got {role!r}")


class UserDefinedRoleMaker(PaddleCloudRoleMaker):
    """The role that the script says: current_id, role, worker_endpoints or worker_num, server_endpoints."""

    def __init__(self, is_collective=False, init_gloo=False, **kwargs):
        RoleMakerBase.__init__(self, is_collective)
        self._worker_endpoints = list(kwargs.get("worker_endpoints") or [])
        self._server_endpoints = list(kwargs.get("server_endpoints") or [])
        self._worker_number = kwargs.get("worker_num", len(self._worker_endpoints)) or 1
        self._current_id, self._role = kwargs.get("current_id", 0), kwargs.get("role", Role.WORKER)
