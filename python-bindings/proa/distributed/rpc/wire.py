"""Connections between workers: both ends prove that they know the job's secret (HMAC-SHA-256 over both ends' random bytes) before
anything else is read. Messages are frames of a length and bytes."""
import hmac
import secrets
import socket
import struct

_RANDOM, _PROOF = 32, 32
_LENGTH = struct.Struct("!Q")
_MOST = 1 << 40  # bytes of a frame: more is no message of ours
HANDSHAKE = 30.0  # seconds for a peer to prove itself


class Refused(Exception):
    """The other end does not know the secret."""


def _proof(secret, who, first, second):
    return hmac.new(secret, who + first + second, "sha256").digest()


def _exactly(sock, n):
    held = bytearray()
    while len(held) < n:
        more = sock.recv(min(n - len(held), 1 << 20))
        if not more:
            raise EOFError("the connection was closed")
        held += more
    return bytes(held)


def answer(sock, secret):
    """The listening end's part of the handshake."""
    sock.settimeout(HANDSHAKE)
    own = secrets.token_bytes(_RANDOM)
    sock.sendall(own)
    theirs = _exactly(sock, _RANDOM)
    if not hmac.compare_digest(_exactly(sock, _PROOF), _proof(secret, b"caller", own, theirs)):
        raise Refused
    sock.sendall(_proof(secret, b"listener", theirs, own))
    _settle(sock)


def introduce(sock, secret):
    """The calling end's part."""
    sock.settimeout(HANDSHAKE)
    theirs = _exactly(sock, _RANDOM)
    own = secrets.token_bytes(_RANDOM)
    sock.sendall(own + _proof(secret, b"caller", theirs, own))
    if not hmac.compare_digest(_exactly(sock, _PROOF), _proof(secret, b"listener", own, theirs)):
        raise Refused
    _settle(sock)


def _settle(sock):
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a host that vanished ends the wait
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def put(sock, data):
    """Sends a frame."""
    sock.sendall(_LENGTH.pack(len(data)))
    sock.sendall(data)


def get(sock):
    """The next frame; EOFError when the other end is gone."""
    n, = _LENGTH.unpack(_exactly(sock, _LENGTH.size))
    if n > _MOST:
        raise EOFError(f"a frame of {n} bytes")
    return _exactly(sock, n)
