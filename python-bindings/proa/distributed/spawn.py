"""spawn: runs a function in several processes of this host, which find one another by PADDLE_* variables."""
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import traceback

_OPTIONS = {"start_method", "gpus", "xpus", "npus", "mlus", "ips", "backend", "print_config", "cluster_node_ips", "node_ip",
            "use_paddlecloud", "started_port", "selected_gpus", "selected_devices", "nprocs", "devices"}


def free_ports(n, host="127.0.0.1"):
    """Port numbers that nobody listens on now."""
    sockets = []
    try:
        for _ in range(n):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((host, 0))
            sockets.append(s)
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def rank_environment(rank, endpoints):
    """The variables of Paddle's launcher for one rank."""
    return {"PADDLE_TRAINER_ID": str(rank), "PADDLE_TRAINERS_NUM": str(len(endpoints)),
            "PADDLE_CURRENT_ENDPOINT": endpoints[rank], "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
            "PADDLE_RANK_IN_NODE": str(rank)}


def _run(func, args, environment, errors, results):
    for name in ("http_proxy", "https_proxy"):
        os.environ.pop(name, None)
    os.environ.update(environment)
    try:
        results.put(func(*args))
    except KeyboardInterrupt:
        pass
    except BaseException as e:
        if isinstance(e, SystemExit) and not e.code:
            return
        errors.put(traceback.format_exc())
        sys.exit(1)


class MultiprocessContext:
    """The processes of spawn."""

    def __init__(self, processes, error_queues, return_queues):
        self.processes, self.error_queues, self.return_queues = processes, error_queues, return_queues
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def join(self, timeout=None):
        """Waits for a process to end. True when all have; when one ended badly the others are ended, and its traceback
        is raised."""
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(self.sentinels, timeout):
            process = self.processes[self.sentinels[sentinel]]
            process.join()
            if process.exitcode and failed is None:
                failed = self.sentinels[sentinel]
            del self.sentinels[sentinel]
        if failed is None:
            return not self.sentinels
        failed = self._first_to_blame(failed)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()
        self._raise(failed)

    def _first_to_blame(self, failed):
        """The first process that ended by a signal, as it made others fail; `failed` if none did."""
        for i, process in enumerate(self.processes):
            if (process.exitcode or 0) < 0:
                return i
        return failed

    def _raise(self, i):
        code = self.processes[i].exitcode
        if not self.error_queues[i].empty():
            raise Exception(f"\n\n----------------------------------------------\nProcess {i} terminated with the following "
                            f"error:\n----------------------------------------------\n\n{self.error_queues[i].get()}")
        if code < 0:
            raise Exception(f"Process {i} terminated with signal {signal.Signals(-code).name}.")
        raise Exception(f"Process {i} terminated with exit code {code}.")


def spawn(func, args=(), nprocs=-1, join=True, daemon=False, **options):
    """Runs func(*args) in nprocs processes (−1: one a CPU core) that may call init_parallel_env. Returns their context:
    processes, return_queues, join()."""
    unknown = set(options) - _OPTIONS
    if unknown:
        raise ValueError(f"spawn: the config option ({sorted(unknown)[0]}) is not supported; there are "
                         f"{', '.join(sorted(_OPTIONS))}")
    if nprocs == -1:
        nprocs = max(1, len(os.sched_getaffinity(0)))
    if not isinstance(nprocs, int) or nprocs < 1:
        raise ValueError(f"spawn: nprocs must be at least 1, or -1, got {nprocs!r}")
    mp = multiprocessing.get_context(options.get("start_method", "spawn"))
    endpoints = [f"127.0.0.1:{port}" for port in free_ports(nprocs)]
    processes, errors, results = [], [], []
    for rank in range(nprocs):
        errors.append(mp.SimpleQueue())
        results.append(mp.SimpleQueue())
        process = mp.Process(target=_run, daemon=daemon, args=(func, args, rank_environment(rank, endpoints), errors[-1],
                                                               results[-1]))
        process.start()
        processes.append(process)
    context = MultiprocessContext(processes, errors, results)
    while join and not context.join():
        pass
    return context
