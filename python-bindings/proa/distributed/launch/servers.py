"""Jobs with parameter servers: the launcher starts this node's servers and workers, waits for the workers, and then ends the servers,
which never end by themselves."""
import os
import secrets
import signal
import socket
import subprocess
import sys
import time

from ... import _core
from ..._alias import is_installed
from ..spawn import free_ports

_GRACE = 10  # seconds from SIGTERM to SIGKILL


def _listed(text):
    return [e.strip() for e in (text or "").split(",") if e.strip()]


def _endpoints(given, number, other, what, alone):
    """A role's endpoints: those given, or free ports of this node; alone: one without being asked."""
    if given:
        found = _listed(given)
        for endpoint in found:
            host, colon, port = endpoint.rpartition(":")
            if not (host and colon and port.isdigit()):
                raise SystemExit(f"launch: --{what} has {endpoint!r}; expected host:port, with commas between")
        return found
    if number is None and not other and not alone:
        raise SystemExit(f"launch: a job with servers and workers needs --{what} or its number too")
    return [f"127.0.0.1:{port}" for port in free_ports(int(number or 1))]


def _here():
    """Addresses of this node."""
    names = {"127.0.0.1", "localhost", socket.gethostname(), os.getenv("POD_IP", "127.0.0.1")}
    try:
        names.update(info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None))
    except OSError:
        pass
    return names


class _Job:
    """The processes of this node."""

    def __init__(self, options, servers, workers):
        self.options, self.servers, self.workers = options, servers, workers
        self.processes = []  # (what, number, process, log's path)
        self.stored = False
        local = _here()
        one_node = all(e.rpartition(":")[0] in local for e in servers + workers)
        token = os.getenv("PROA_TOKEN") or (secrets.token_hex(16) if one_node else "")
        common = {**os.environ, "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(servers), "PADDLE_TRAINER_ENDPOINTS": ",".join(workers),
                  "PADDLE_TRAINERS_NUM": str(len(workers)), "PADDLE_JOB_ID": options.job_id, "PROA_TOKEN": token, "PADDLE_WITH_GLOO": "1"}
        for name in ("http_proxy", "https_proxy", "PROA_SIZE", "PROA_RANK", "MASTER_ADDR", "MASTER_PORT"):
            common.pop(name, None)
        for i, endpoint in enumerate(servers):
            self._start("server", i, endpoint, {**common, "TRAINING_ROLE": "PSERVER"}, local)
        if one_node and len(workers) > 1:
            port = _core.store_serve("127.0.0.1", 0, f"{options.job_id}/0/{token}")
            self.stored = True
            common.update(PROA_STORE=f"tcp://127.0.0.1:{port}", PROA_STORE_SERVED="1")
        for i, endpoint in enumerate(workers):
            self._start("worker", i, endpoint, {**common, "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(i),
                                                "PADDLE_CURRENT_ENDPOINT": endpoint}, local)

    def _start(self, what, i, endpoint, environment, local):
        host, _, port = endpoint.rpartition(":")
        if host not in local:
            return
        environment.update(POD_IP=host, PADDLE_PORT=port)
        path, log = None, None
        number = len([p for p in self.processes if p[0] == what])  # within this node
        if self.options.log_dir:
            os.makedirs(self.options.log_dir, exist_ok=True)
            path = os.path.join(self.options.log_dir, f"{what}log.{number}")
            log = open(path, "wb")
        script = self.options.script
        alias = ["-m", "proa"] if is_installed() else []
        command = [sys.executable, "-u", *alias, script] if script.endswith(".py") else [script]
        process = subprocess.Popen(command + self.options.script_args, env=environment, stdout=log,
                                   stderr=subprocess.STDOUT if log else None)
        if log:
            log.close()
        self.processes.append((what, i, process, path))

    def poll(self):
        """None while workers run (without workers: servers); 0 at their good end; otherwise the entry that failed."""
        of_workers = [p for p in self.processes if p[0] == "worker"] or self.processes
        for entry in sorted(self.processes, key=lambda p: p[2].poll() is None or p[2].poll() >= 0):  # killed ones caused the rest
            if entry[2].poll() or entry[0] == "server" and entry[2].poll() == 0 and any(p[2].poll() is None for p in of_workers):
                return entry
        return 0 if all(p[2].poll() == 0 for p in of_workers) else None

    def end(self):
        """Ends whoever still runs."""
        for *_, process, _ in self.processes:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + _GRACE
        for *_, process, _ in self.processes:
            try:
                process.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.stored:
            _core.store_stop()

    def echo(self, at):
        """Worker 0's log on our output, from where it was read to."""
        path = next((p[3] for p in self.processes if p[0] == "worker" and p[1] == 0), None)
        if path is None:
            return at
        with open(path, "rb") as f:
            f.seek(at)
            data = f.read()
        sys.stdout.write(data.decode(errors="replace"))
        sys.stdout.flush()
        return at + len(data)

    def tell(self, entry):
        """Prints how a process failed, and the end of its log."""
        what, i, process, path = entry
        code = process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        print(f"ABORT!!! {what} {i} was aborted ({how}). Please check its log.", file=sys.stderr)
        if path:
            with open(path, errors="replace") as f:
                print(f"----- {path} -----", *f.read().splitlines()[-40:], sep="\n", file=sys.stderr)


def main(options):
    """Runs a job with servers; returns its exit code."""
    if options.heter_workers or options.heter_worker_num:
        raise SystemExit("launch: heterogeneous workers (--heter_workers) are missing; start servers and workers only")
    given, number = options.workers or options.trainers, options.worker_num or options.trainer_num
    alone = options.run_mode == "ps"
    servers = _endpoints(options.servers, options.server_num, given or number, "servers", alone)
    workers = _endpoints(given, number, options.servers or options.server_num, "workers", alone)
    stopped, at = [], 0
    before = {n: signal.signal(n, lambda number, frame: stopped.append(number)) for n in (signal.SIGTERM, signal.SIGINT)}
    job = _Job(options, servers, workers)
    try:
        outcome = None
        while outcome is None and not stopped:
            time.sleep(0.05)
            outcome = job.poll()
            at = job.echo(at)
    finally:
        job.end()
        for n, handler in before.items():
            signal.signal(n, handler)
    if stopped:
        return 128 + stopped[0]
    if outcome == 0:
        return 0
    job.tell(outcome)
    return 1
