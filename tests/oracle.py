"""Programs on real Paddle, for tests: run() is subprocess.run of its interpreter, without the two seconds that
`import paddle` takes each time (oracle_server.py)."""
import atexit
import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHON = pathlib.Path(os.environ.get("PROA_ORACLE", ROOT / ".venv-oracle/bin/python"))
AT_START = ("FLAGS_", "GLOG_", "OMP_", "PYTHONWARNINGS")  # variables that are read before a program's first line
# One thread: some kernels of Paddle 2.6.2 race between two (send_ue_recv, density_prior_box) and answer now this, now that.
ENVIRONMENT = {"GLOG_minloglevel": "3", "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
_servers = {}


def _server(env):
    """The server of programs in this environment, started when the first comes."""
    key = tuple(sorted((k, v) for k, v in env.items() if k.startswith(AT_START)))
    server = _servers.get(key)
    if server is None or server.poll() is not None:
        server = _servers[key] = subprocess.Popen([PYTHON, ROOT / "tests/oracle_server.py"], env=env, bufsize=0,
                                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return server


@atexit.register
def _end():
    for server in _servers.values():
        server.stdin.close()
        server.wait()


def _reply(server):
    line = server.stdout.readline()
    if not line:
        raise RuntimeError(f"real Paddle's interpreter ended with {server.wait()}: {PYTHON} -c 'import paddle' says why")
    return int(line)


def run(*words, cwd=None, timeout=300, **env):
    """Runs SCRIPT or -c CODE with arguments, in this environment with what env says besides, and without our package;
    what subprocess.run(…, text=True, capture_output=True) returns and raises."""
    words = [str(w) for w in words]
    env = {**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **ENVIRONMENT, **env}
    server = _server(env)
    with tempfile.TemporaryDirectory() as folder:
        out, err = pathlib.Path(folder, "out"), pathlib.Path(folder, "err")
        wanted = {"argv": words, "env": env, "cwd": str(cwd or os.getcwd()), "out": str(out), "err": str(err)}
        server.stdin.write(json.dumps(wanted).encode() + b"\n")
        pid = _reply(server)
        late = not select.select([server.stdout], [], [], timeout)[0]
        if late:
            with contextlib.suppress(ProcessLookupError):  # it may have ended since
                os.killpg(pid, signal.SIGKILL)
        done = subprocess.CompletedProcess([PYTHON, *words], _reply(server), out.read_text(errors="replace"), err.read_text(errors="replace"))
    if late:
        raise subprocess.TimeoutExpired(done.args, timeout, done.stdout, done.stderr)
    return done


def ask(*words, **options):
    """Runs, and returns what it printed; a program that fails fails the test."""
    done = run(*words, **options)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout
