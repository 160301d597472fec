"""Messages between a loader and its workers over a socket. Large arrays travel in anonymous shared memory whose
descriptor the message carries: nothing is left behind, however a process ends."""
import mmap
import os
import pickle
import socket
import struct

from .. import _core
from .collate import map_arrays

HEADER = struct.Struct("<QQ")       # bytes of the pickle, bytes of the shared memory (0: none)
INLINE = 1 << 14                    # batches up to that many bytes of data go through the socket
_ALIGN = 64


class _Slot:
    """Stands for an array in a pickled batch."""

    def __init__(self, offset, shape, dtype, tensor):
        self.offset, self.shape, self.dtype, self.tensor = offset, shape, dtype, tensor

    def __reduce__(self):
        return _Slot, (self.offset, self.shape, self.dtype, self.tensor)


def _dtype_name(tensor):
    return str(tensor.dtype).rpartition(".")[2]


def pack(batch, shared):
    """(plain batch, arrays with their offsets, bytes needed): arrays are replaced by slots when `shared`."""
    import numpy as np
    arrays, end = [], 0

    def slot(value):
        nonlocal end
        tensor = _dtype_name(value) if isinstance(value, _core.Tensor) else None
        array = np.ascontiguousarray(value.detach().numpy() if tensor else value).reshape(value.shape)
        if array.dtype.hasobject:
            raise TypeError("DataLoader: an array of Python objects cannot become a Tensor; give a collate_fn")
        one = _Slot(end, array.shape, array.dtype.str, tensor)
        arrays.append((end, array))
        end = -(-(end + array.nbytes) // _ALIGN) * _ALIGN
        return one

    plain = map_arrays(batch, slot)
    if end <= INLINE or not shared:
        by_offset = iter([a for _, a in arrays])

        def inline(value):
            if isinstance(value, _Slot):
                value.offset = next(by_offset).tobytes()
                return value
            if isinstance(value, dict):
                return {k: inline(v) for k, v in value.items()}
            if isinstance(value, list):
                return [inline(v) for v in value]
            return value
        return inline(plain), [], 0
    return plain, arrays, end


def unpack(value, memory, place=None):
    """The batch with a Tensor for every slot, at a place; on the CPU data stay in the shared memory, which lives as long."""
    import numpy as np
    if isinstance(value, _Slot):
        if isinstance(value.offset, bytes):
            array = np.frombuffer(value.offset, value.dtype)
        else:
            count = int(np.prod(value.shape, dtype=np.int64))
            array = np.frombuffer(memory, value.dtype, count, value.offset) if count else np.zeros(0, value.dtype)
        array = array.reshape(value.shape)
        return _core.to_tensor(array, value.tensor or None, place)
    if isinstance(value, dict):
        return {k: unpack(v, memory, place) for k, v in value.items()}
    if isinstance(value, list):
        return [unpack(v, memory, place) for v in value]
    return value


def _shared_file(size):
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("proa-batch", os.MFD_CLOEXEC)
    else:
        import tempfile
        with tempfile.TemporaryFile() as f:
            fd = os.dup(f.fileno())
    os.ftruncate(fd, size)
    return fd


def send(sock, message, arrays=(), size=0):
    """Sends a message; blocks until it is in the socket's buffer."""
    body, fds = pickle.dumps(message, protocol=4), []
    try:
        if size:
            import numpy as np
            fds.append(_shared_file(size))
            with mmap.mmap(fds[0], size) as memory:
                for offset, array in arrays:
                    if array.nbytes:
                        view = np.frombuffer(memory, array.dtype, array.size, offset)
                        view[:] = array.reshape(-1)
                        del view
        socket.send_fds(sock, [HEADER.pack(len(body), size)], fds)
        sock.sendall(body)
    finally:
        for fd in fds:
            os.close(fd)


class Channel:
    """The loader's end of a worker's socket: never blocks. Holds what could not be sent or read whole yet."""

    def __init__(self, sock):
        sock.setblocking(False)
        self.sock = sock
        self.out, self.read, self.need, self.header = bytearray(), bytearray(), HEADER.size, None
        self.fds = []

    def fileno(self):
        return self.sock.fileno()

    def put(self, message):
        body = pickle.dumps(message, protocol=4)
        self.out += HEADER.pack(len(body), 0) + body
        self.flush()

    def flush(self):
        try:
            while self.out:
                del self.out[:self.sock.send(self.out)]
        except BlockingIOError:
            pass
        except OSError:             # the worker is gone; reading says so
            self.out.clear()

    def get(self):
        """(message, memory or None) if one has come whole, None if not yet; EOFError when the worker is gone."""
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.sock, min(self.need - len(self.read), 1 << 20), 1)
            except BlockingIOError:
                return None
            except OSError:
                raise EOFError from None
            self.fds += fds
            if not data:
                raise EOFError
            self.read += data
            if len(self.read) < self.need:
                continue
            got, self.read = self.read, bytearray()
            if self.header is None:
                self.header = HEADER.unpack(got)
                self.need = self.header[0]
                continue
            size, self.header, self.need = self.header[1], None, HEADER.size
            memory = None
            if size:
                fd = self.fds.pop(0)
                try:
                    memory = mmap.mmap(fd, size)
                finally:
                    os.close(fd)
            return pickle.loads(got), memory

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        self.sock.close()


def receive(sock):
    """The worker's end: the next message; EOFError when the loader is gone."""
    def exactly(count):
        parts = bytearray()
        while len(parts) < count:
            data = sock.recv(count - len(parts))
            if not data:
                raise EOFError
            parts += data
        return bytes(parts)
    return pickle.loads(exactly(HEADER.unpack(exactly(HEADER.size))[0]))
