"""A worker's agent: it runs what others ask for, and asks others. Requests are pickles of functions and arguments, so that whoever
knows the job's secret runs code here."""
import concurrent.futures
import pickle
import socket
import threading

from . import wire

_RUN, _LEAVE, _ALIVE = range(3)


class WorkerInfo:
    """A worker: name, rank, ip and port."""

    def __init__(self, name, rank, ip, port):
        self.name, self.rank, self.ip, self.port = name, rank, ip, port

    def __repr__(self):
        return f"{{name: {self.name}, rank: {self.rank}, ip: {self.ip}, port: {self.port}}}"

    def __eq__(self, other):
        return isinstance(other, WorkerInfo) and repr(self) == repr(other)

    __hash__ = None


class WorkerLost(RuntimeError):
    """A worker is gone: its connection closed, or nobody listens there."""


class Agent:
    """Listens for requests, and keeps connections to the workers that it asks."""

    def __init__(self, name, rank, ip, port, secret):
        self._secret, self._rank, self._name = secret, rank, name
        self._listener = socket.create_server((ip, port))
        self.port = self._listener.getsockname()[1]
        self.infos, self._idle, self._lock = {}, {}, threading.Condition()
        self._left, self._lost, self._pending, self._told = set(), {}, set(), set()
        self._pool = concurrent.futures.ThreadPoolExecutor(64, "proa_rpc")
        self._start(self._accept)

    @staticmethod
    def _start(target, *args):
        threading.Thread(target=target, args=args, daemon=True).start()

    def meet(self, infos):
        """Learns of all workers; from then on worker 0 notices when another ends."""
        self.infos = {info.name: info for info in infos}
        self._by_rank = {info.rank: info for info in infos}
        if self._rank:
            self._life = self._connect(self._by_rank[0], None)
            try:
                wire.put(self._life, pickle.dumps((_ALIVE, self._rank)))
                wire.get(self._life)  # worker 0 watches from now on
            except (OSError, EOFError) as e:
                raise self._gone(self._by_rank[0], e) from None

    # ---- requests of others ----

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:  # closed
                return
            self._start(self._serve, sock)

    def _serve(self, sock):
        try:
            wire.answer(sock, self._secret)
            while True:
                self._handle(sock, wire.get(sock))
        except (OSError, EOFError, wire.Refused):
            pass
        finally:
            sock.close()

    def _handle(self, sock, request):
        kind, *what = pickle.loads(request)
        if kind == _ALIVE:
            self._watch(sock, what[0])
        elif kind == _LEAVE:
            wire.put(sock, pickle.dumps(self._wait_for_all(what[0])))
            with self._lock:
                self._told.add(what[0])
                self._lock.notify_all()
        else:
            wire.put(sock, self._run(what[0]))

    @staticmethod
    def _run(packed):
        try:
            function, args, keywords = pickle.loads(packed)
            return pickle.dumps((True, function(*args, **keywords)))
        except BaseException as e:  # whatever it is, the caller gets it
            return _packed_error(e)

    def _watch(self, sock, rank):
        """Waits for the end of a worker's life: without a farewell it is lost."""
        wire.put(sock, b"")
        try:
            wire.get(sock)
        except (OSError, EOFError):
            pass
        with self._lock:
            if rank not in self._left:
                self._lost[rank] = self._by_rank[rank].name
            self._told.add(rank)  # it hears no answer any more
            self._lock.notify_all()
        raise EOFError

    def _wait_for_all(self, rank):
        """Notes that a worker leaves; returns when all do: an error's text, or None."""
        with self._lock:
            self._left.add(rank)
            self._lock.notify_all()
            while len(self._left) < len(self._by_rank):
                gone = [name for r, name in self._lost.items() if r not in self._left]
                if gone:
                    return f"shutdown: worker {gone[0]} ended without shutdown()"
                self._lock.wait()
        return None

    # ---- requests to others ----

    def _connect(self, info, timeout):
        try:
            sock = socket.create_connection((info.ip, info.port), timeout or wire.HANDSHAKE)
            wire.introduce(sock, self._secret)
            return sock
        except wire.Refused:
            raise PermissionError(f"rpc: what listens at {info.ip}:{info.port}, worker {info.name}'s address, does not know the job's "
                                  "secret") from None
        except TimeoutError:
            raise TimeoutError(f"rpc: worker {info.name} (rank {info.rank}, {info.ip}:{info.port}) does not answer") from None
        except (OSError, EOFError) as e:
            raise self._gone(info, e) from None

    @staticmethod
    def _gone(info, why):
        return WorkerLost(f"rpc: worker {info.name} (rank {info.rank}, {info.ip}:{info.port}) is gone ({why or type(why).__name__})")

    def _ask(self, info, request, timeout):
        """The reply's bytes, over a connection that nobody else uses meanwhile."""
        with self._lock:
            idle = self._idle.setdefault(info.name, [])
            sock = idle.pop() if idle else None
        sock = sock or self._connect(info, timeout)
        try:
            sock.settimeout(timeout)
            wire.put(sock, request)
            reply = wire.get(sock)
        except TimeoutError:
            sock.close()
            raise TimeoutError(f"rpc: worker {info.name} (rank {info.rank}) has not answered within {timeout} seconds") from None
        except (OSError, EOFError) as e:
            sock.close()
            raise self._gone(info, e) from None
        with self._lock:
            idle.append(sock)
        return reply

    def call(self, info, function, args, keywords, timeout):
        """A future of function(*args, **keywords) on a worker."""
        packed = pickle.dumps((function, args, keywords))  # here, so that what cannot be pickled is the caller's error
        future = self._pool.submit(self._call, info, packed, timeout)
        with self._lock:
            self._pending.add(future)
        future.add_done_callback(self._forget)
        return future

    def _forget(self, future):
        with self._lock:
            self._pending.discard(future)

    def _call(self, info, packed, timeout):
        good, value = pickle.loads(self._ask(info, pickle.dumps((_RUN, packed)), timeout))
        if good:
            return value
        kind, text, error = value
        if error is not None:
            raise pickle.loads(error)
        raise RuntimeError(f"rpc: worker {info.name} raised {kind}: {text}")

    # ---- the end ----

    def leave(self):
        """Waits for what this worker has asked for, and until all others leave, too."""
        concurrent.futures.wait(list(self._pending))
        if self._rank:
            failure = pickle.loads(self._ask(self._by_rank[0], pickle.dumps((_LEAVE, self._rank)), None))
        else:
            failure = self._wait_for_all(0)
            with self._lock:  # before this process ends, the others have their answers
                self._lock.wait_for(lambda: self._left - {0} <= self._told | set(self._lost), wire.HANDSHAKE)
        self.close()
        if failure:
            raise WorkerLost(failure)

    def close(self):
        """Ends listening and all connections."""
        with self._lock:
            socks = [s for idle in self._idle.values() for s in idle]
            self._idle.clear()
        if self._rank and hasattr(self, "_life"):
            socks.append(self._life)
        for sock in [*socks, self._listener]:
            sock.close()
        self._pool.shutdown(wait=False)


def _packed_error(error):
    """An exception as a reply: with itself where it can be pickled both ways."""
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)
    except Exception:
        packed = None
    return pickle.dumps((False, (type(error).__name__, str(error), packed)))
