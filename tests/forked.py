"""Programs that run in forks of a server which has done their imports (forked_server.py)."""
import atexit
import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import time


def _reply(server):
    line = server.stdout.readline()
    if not line:
        raise RuntimeError(f"the server ended with {server.wait()}: {' '.join(map(str, server.args))} says why")
    return int(line)


class Forked:
    """The servers that a command starts: one for each choice of variables that begin with `at_start`, which imports read."""

    def __init__(self, command, at_start):
        self.command, self.at_start, self.servers = command, at_start, {}
        atexit.register(self._end)

    def _end(self):
        for server in self.servers.values():
            server.stdin.close()
            server.wait()

    def _server(self, env):
        """The server of programs in this environment, started when the first comes."""
        key = tuple(sorted((k, v) for k, v in env.items() if k.startswith(self.at_start)))
        server = self.servers.get(key)
        if server is None or server.poll() is not None:
            server = self.servers[key] = subprocess.Popen(self.command, env=env, bufsize=0, stdin=subprocess.PIPE,
                                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return server

    def run(self, words, env, cwd=None, timeout=300):
        """Returns and raises as subprocess.run(…, text=True, capture_output=True) does."""
        words = [str(w) for w in words]
        server = self._server(env)
        with tempfile.TemporaryDirectory() as folder:
            out, err = pathlib.Path(folder, "out"), pathlib.Path(folder, "err")
            wanted = {"argv": words, "env": env, "cwd": str(cwd or os.getcwd()), "out": str(out), "err": str(err)}
            server.stdin.write(json.dumps(wanted).encode() + b"\n")
            pid = _reply(server)
            late = not select.select([server.stdout], [], [], timeout)[0]
            if late:
                with contextlib.suppress(ProcessLookupError):  # it may have ended since
                    os.kill(pid, signal.SIGQUIT)  # forked_server.py: it writes where it is
                    time.sleep(0.5)
                    os.killpg(pid, signal.SIGKILL)
            done = subprocess.CompletedProcess([*self.command, *words], _reply(server), out.read_text(errors="replace"),
                                               err.read_text(errors="replace"))
        if late:
            error = subprocess.TimeoutExpired(done.args, timeout, done.stdout, done.stderr)
            error.add_note(done.stderr[-3000:])
            raise error
        return done
