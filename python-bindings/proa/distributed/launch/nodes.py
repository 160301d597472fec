"""Launchers of several nodes meet at node 0's, which tells all of them where the ranks of each node are, and the job's secret.
A message is a line of JSON."""
import hmac
import json
import os
import secrets
import socket
import time

_LINE = 1 << 20  # bytes of a message
_HELLO_SECONDS = 5


def _send(connection, message):
    connection.sendall(json.dumps(message).encode() + b"\n")


def _receive(connection):
    """The next message, a dict; ValueError if there is none."""
    with connection.makefile("rb") as lines:
        line = lines.readline(_LINE)
    try:
        message = json.loads(line) if line.endswith(b"\n") else None
    except RecursionError:
        message = None
    if not isinstance(message, dict):
        raise ValueError("no message")
    return message


def _address(text):
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise SystemExit(f"launch: --master is {text!r}; expected host:port, of node 0's launcher")
    return host.strip("[]"), int(port)


def _joined(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Meeting:
    """One launcher's part. All agree on the number of nodes, the name of the job and, where it is set, PROA_TOKEN."""

    def __init__(self, master, count, node, job, seconds):
        self.host, self.port = _address(master)
        if not 0 <= node < count:
            raise SystemExit(f"launch: --rank is {node}; with --master expected this node's number, 0 to {count - 1}")
        self.count, self.node, self.until = count, node, time.monotonic() + seconds
        self.hello = {"job": job, "token": os.getenv("PROA_TOKEN", ""), "nodes": count}

    def meet(self, ports, host):
        """(each node's endpoints, the secret); ports: of this node's ranks, host: this node's address, "" for that by which it
        reaches node 0."""
        return self._gather(ports, host) if self.node == 0 else self._join(ports, host)

    def _refusal(self, message, there):
        """Why a launcher's first message is refused; None: it is not."""
        given, own = (json.dumps([m.get("job"), m.get("token")]).encode() for m in (message, self.hello))
        if not hmac.compare_digest(given, own):
            return "another job, or another PROA_TOKEN"
        node, ports = message.get("node"), message.get("ports")
        if message.get("nodes") != self.count or type(node) is not int or not 0 < node < self.count:
            return f"node {node} of {message.get('nodes')} in a job of {self.count} nodes"
        if node in there:
            return f"node {node} is here already"
        fine = isinstance(ports, list) and ports and all(type(p) is int and 0 < p < 65536 for p in ports)
        fine = fine and isinstance(message.get("host"), str)
        return None if fine else "no ranks"

    def _listen(self):
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=128)
        except OSError as e:
            raise SystemExit(f"launch: cannot listen at {self.host}:{self.port}: {e.strerror}; --master is an address of node 0") from None

    def _gather(self, ports, host):
        """Node 0's part."""
        there = {}
        with self._listen() as server:
            while len(there) < self.count - 1:
                server.settimeout(max(0.001, self.until - time.monotonic()))
                try:
                    connection, peer = server.accept()
                except TimeoutError:
                    missing = ", ".join(str(n) for n in range(1, self.count) if n not in there)
                    raise SystemExit(f"launch: these nodes have not come to {self.host}:{self.port} in time: {missing}") from None
                connection.settimeout(_HELLO_SECONDS)
                try:
                    message = _receive(connection)
                    why = self._refusal(message, there)
                    if why:
                        _send(connection, {"refused": why})
                except (ValueError, OSError):
                    why = "no message"
                if why:
                    connection.close()
                else:
                    there[message["node"]] = (connection, [_joined(message["host"] or peer[0], p) for p in message["ports"]])
        nodes = [[_joined(host or self.host, p) for p in ports], *(there[n][1] for n in range(1, self.count))]
        secret = secrets.token_hex(16)
        for connection, _ in there.values():
            with connection:
                _send(connection, {"nodes": nodes, "secret": secret})
        return nodes, secret

    def _join(self, ports, host):
        """Another node's part."""
        while True:
            try:
                with socket.create_connection((self.host, self.port), timeout=1) as connection:
                    _send(connection, {**self.hello, "node": self.node, "ports": list(ports), "host": host})
                    connection.settimeout(max(0.001, self.until - time.monotonic()))
                    answer = _receive(connection)
                if "refused" in answer:
                    raise SystemExit(f"launch: {self.host}:{self.port} has refused this node: {answer['refused']}")
                return answer["nodes"], answer["secret"]
            except (ValueError, OSError):
                if time.monotonic() > self.until:
                    raise SystemExit(f"launch: node 0's launcher has not answered in time at {self.host}:{self.port}; is it "
                                     "running?") from None
                time.sleep(0.1)
