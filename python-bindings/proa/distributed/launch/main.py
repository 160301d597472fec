"""The launcher: starts one process per rank of this node, with a log each; on one node serves the store at which they meet; ends
all when one fails, and starts all again up to --max_restart times. Jobs with parameter servers: servers.py."""
import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from ... import _core
from ..._alias import is_installed
from ..spawn import free_ports, rank_environment
from .nodes import Meeting

_GRACE = 10  # seconds from SIGTERM to SIGKILL

_SERVER_OPTIONS = ("--servers", "--workers", "--heter_workers", "--server_num", "--worker_num", "--heter_worker_num", "--http_port",
                   "--trainers", "--trainer_num")
_SERVER_HELP = {"--servers": "a job with parameter servers: their host:port,…; those of this node are started",
                "--workers": "the workers' host:port,…", "--server_num": "number of servers, on this node", "--worker_num": "number of workers"}


def _parser():
    p = argparse.ArgumentParser(prog="launch", description=__doc__, allow_abbrev=False)
    add = p.add_argument
    add("--nproc_per_node", type=int, help="ranks on this node; default: the devices given, or one a CPU core")
    add("--log_dir", default="log", help='folder of workerlog.N; "" for none')
    add("--ips", "--cluster_node_ips", default="127.0.0.1", help="addresses of the nodes, with commas between")
    add("--gpus", "--selected_gpus", "--devices", "--xpus", "--npus", default="", help="device numbers, one a rank")
    add("--master", default="", help="host:port at which launchers of --nnodes nodes meet, served by node 0's; with --ips, ranks")
    add("--nnodes", default="1", help="number of nodes")
    add("--rank", "--node_rank", type=int, default=-1, help="number of this node")
    add("--host", default="", help="address of this node")
    add("--job_id", default="default", help="name of the job")
    add("--run_mode", default="collective", choices=["collective", "ps"], help="collective, or ps: with parameter servers")
    add("--max_restart", "--max_restarts", type=int, default=0, help="times that failed ranks are started again")
    add("--start_port", type=int, default=int(os.getenv("FLAGS_START_PORT", "6070")),
        help="with several nodes: port of the first rank of each")
    add("--log_level", default="INFO")
    for option in _SERVER_OPTIONS:
        add(option, help=_SERVER_HELP.get(option, argparse.SUPPRESS))
    add("script")
    add("script_args", nargs=argparse.REMAINDER)
    return p


def _devices(options):
    return [d for d in options.gpus.split(",") if d]


def _places(options):
    """(each node's endpoints, one a rank; this node's number; the ranks' secret, "" if this launcher does not know it)"""
    local = options.nproc_per_node or len(_devices(options)) or len(os.sched_getaffinity(0))
    hosts, count = [ip for ip in options.ips.split(",") if ip], int(options.nnodes.split(":")[0])
    if len(hosts) > 1:
        node = options.rank if options.rank >= 0 else hosts.index(options.host or os.getenv("POD_IP", hosts[0]))
        return [[f"{host}:{options.start_port + i}" for i in range(local)] for host in hosts], node, ""
    ports = free_ports(local)
    if count == 1:
        return [[f"{hosts[0]}:{port}" for port in ports]], 0, secrets.token_hex(16)
    if not options.master:
        raise SystemExit("launch: several nodes need --master, host:port at which their launchers meet, or --ips, the addresses of all of "
                         "them in the order of their numbers")
    seconds = float(os.getenv("PROA_TIMEOUT") or 300)
    nodes, secret = Meeting(options.master, count, options.rank, options.job_id, seconds).meet(ports, options.host)
    return nodes, options.rank, secret


class _Ranks:
    """The processes of this node, once."""

    def __init__(self, options, nodes, node, incarnation, token):
        """nodes: the endpoints of each node's ranks."""
        self.options, self.incarnation = options, incarnation
        devices, local, endpoints = _devices(options), len(nodes[node]), sum(nodes, [])
        self.first = sum(map(len, nodes[:node]))
        self.processes, self.logs = [], []
        self.folder = tempfile.mkdtemp(prefix="proa_launch_")
        self.failure = os.path.join(self.folder, "first")
        for i in range(local):
            rank = self.first + i
            environment = {**os.environ, **rank_environment(rank, endpoints), "PADDLE_RANK_IN_NODE": str(i),
                           "PADDLE_JOB_ID": options.job_id, "PROA_INCARNATION": str(incarnation),
                           "PADDLE_RESTART_COUNT": str(incarnation), "PADDLE_NNODES": str(len(nodes)),
                           "PADDLE_LOCAL_SIZE": str(local), "PROA_FAILURE_FILE": self.failure}
            for name in ("http_proxy", "https_proxy", "PROA_SIZE", "PROA_RANK", "MASTER_ADDR", "MASTER_PORT"):
                environment.pop(name, None)
            if devices:
                environment["FLAGS_selected_gpus"] = devices[i % len(devices)]
            self._store(environment, len(nodes) == 1, token)
            self._start(i, environment)

    def _store(self, environment, alone, token):
        if alone:
            port = _core.store_serve("127.0.0.1", 0, f"{self.options.job_id}/{self.incarnation}/{token}") \
                if not self.processes else self.port
            self.port = port
            environment.update(PROA_STORE=f"tcp://127.0.0.1:{port}", PROA_STORE_SERVED="1", PROA_TOKEN=token)
        elif token:
            environment.update(PROA_TOKEN=token)
            environment.pop("PADDLE_MASTER", None)
        elif self.options.master:
            environment["PADDLE_MASTER"] = self.options.master

    def _start(self, i, environment):
        log = None
        if self.options.log_dir:
            os.makedirs(self.options.log_dir, exist_ok=True)
            path = os.path.join(self.options.log_dir, f"workerlog.{i}")
            log = open(path, "ab")
            self.logs.append((path, log.tell()))
            log.write(f"LAUNCH rank {environment['PADDLE_TRAINER_ID']}, start {self.incarnation}\n".encode())
            log.flush()
        script = self.options.script
        alias = ["-m", "proa"] if is_installed() else []  # `python -m proa -m paddle.distributed.launch`
        command = [sys.executable, "-u", *alias, script] if script.endswith(".py") else [script]
        self.processes.append(subprocess.Popen(command + self.options.script_args, env=environment, stdout=log,
                                               stderr=subprocess.STDOUT if log else None))
        if log:
            log.close()

    def poll(self):
        """None while ranks run; 0, or the number of the first that failed + 1."""
        codes = [p.poll() for p in self.processes]
        killed = [i for i, c in enumerate(codes) if c and c < 0]
        failed = killed or self._first() or [i for i, c in enumerate(codes) if c]
        if any(codes):
            return failed[0] + 1
        return None if None in codes else 0

    def _first(self):
        """Whom an exception ended first, as a list."""
        try:
            with open(self.failure) as f:
                rank = int(f.read()) - self.first
        except (OSError, ValueError):
            return []
        return [rank] if 0 <= rank < len(self.processes) else []

    def forward(self, number):
        """Sends a signal on."""
        for p in self.processes:
            if p.poll() is None:
                p.send_signal(number)

    def end(self):
        """Ends whoever still runs."""
        self.forward(signal.SIGTERM)
        until = time.monotonic() + _GRACE
        for p in self.processes:
            try:
                p.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        _core.store_stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tell(self, i):
        """Prints the failing rank's exit code and the end of its log."""
        code = self.processes[i].returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        print(f"ABORT!!! Out of all {len(self.processes)} trainers, the trainer process with rank=[{self.first + i}] was "
              f"aborted ({how}). Please check its log.", file=sys.stderr)
        if self.logs:
            path, at = self.logs[i]
            with open(path, "rb") as f:
                f.seek(at)
                text = f.read().decode(errors="replace").splitlines()[-40:]
            print(f"----- {path} -----", *text, sep="\n", file=sys.stderr)

    def echo(self, at):
        """Rank 0's log on our output, from where it was read to."""
        if not self.logs or self.first:
            return at
        path, begin = self.logs[0]
        with open(path, "rb") as f:
            f.seek(at or begin)
            data = f.read()
            at = f.tell()
        sys.stdout.write(data.decode(errors="replace"))
        sys.stdout.flush()
        return at


def _watch(ranks, stopped):
    at = 0
    while True:
        outcome = ranks.poll()
        at = ranks.echo(at)
        if outcome is not None or stopped:
            return outcome
        time.sleep(0.05)


def main(arguments=None):
    """Runs a job; returns its exit code."""
    options = _parser().parse_args(arguments)
    given = [o for o in _SERVER_OPTIONS if getattr(options, o[2:]) is not None]
    if given or options.run_mode == "ps":
        from .servers import main as with_servers
        return with_servers(options)
    nodes, node, token = _places(options)
    stopped = []

    def on_signal(number, frame):
        stopped.append(number)

    before = {n: signal.signal(n, on_signal) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        for incarnation in range(options.max_restart + 1):
            ranks = _Ranks(options, nodes, node, incarnation, token)
            try:
                outcome = _watch(ranks, stopped)
            finally:
                ranks.end()
            if stopped:
                return 128 + stopped[0]
            if not outcome:
                return 0
            ranks.tell(outcome - 1)
            if incarnation < options.max_restart:
                print(f"launch: starting all ranks again ({incarnation + 1} of {options.max_restart})", file=sys.stderr)
        return 1
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)


def launch():
    """The command fleetrun."""
    sys.exit(main())
