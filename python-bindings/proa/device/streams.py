"""Streams and events of devices. A device runs all of its work in one order, whatever stream it was given to, so that one
stream never has to be told to wait for another; a stream says which device, an event which point of its work."""
import re
import threading

from .. import _core

_DEVICE = re.compile(r"(cpu|gpu|xpu|npu|ipu)(?::(\d+))?|(\w+)(?::(\d+))?")
_FORM = "'cpu', 'gpu', 'gpu:x', 'xpu', 'xpu:x', or the name of a plug-in's device"


def place_of(who, device):
    """The place of a device's name (None: the current device's), or the object itself."""
    if device is None:
        return _core.current_place()
    if not isinstance(device, str):
        return device
    name = device.lower()
    match = _DEVICE.fullmatch(name)
    kind = match and (match[1] or match[3])
    if name == "cpu":
        return _core.CPUPlace()
    if kind == "gpu":
        from .cuda import device_count
        if device_count():
            return _core.CUDAPlace(int(match[2] or 0))
    if kind in ("gpu", "xpu", "ipu"):
        raise ValueError(f"{who}: the device should not be {device!r}: there is no {kind.upper()} here")
    kinds = {known.partition(":")[0] for known in _core.device_names()}
    if kind in kinds - {"cpu", "gpu"}:
        return _core.CustomPlace(kind, int(match[4] or 0))
    raise ValueError(f"{who}: the device must be a string which is like {_FORM}, got {device!r}")


class _Queue:
    """The work of a device, as one of its streams or for its current one."""

    def __init__(self, place):
        self.place = place

    def mark(self):
        """An event behind what the device was given until now."""
        return _core.device_mark(self.place)

    def synchronize(self):
        """Waits until the device has done all that it was given."""
        name, before = self.place._device_name(), _core.get_device()
        _core.set_device(name)
        try:
            _core.synchronize()
        finally:
            _core.set_device(before)


def queue_of(who, place):
    """A queue of the device; TypeError if it has no streams."""
    own = isinstance(place, (_core.CUDAPlace, _core.CustomPlace)) and place._device_name() in _core.device_names()
    if not own:
        from . import get_all_custom_device_type
        raise TypeError(f"{who}: device should be gpu, xpu, {','.join(get_all_custom_device_type())}; got {place!r}")
    return _Queue(place)


class Event:
    """A point in a device's work. device: a place or a name; None: the current device. The others are accepted, and mean
    nothing to devices here."""

    def __init__(self, device=None, enable_timing=False, blocking=False, interprocess=False):
        self.device = place_of("Event", device)
        self.event_base = queue_of("Event", self.device)
        self._mark = None   # of the core's, unless its work is known to be done
        self._place = None  # the device that it was recorded on

    def record(self, stream=None):
        """The event is what the stream (None: the current one) was given until now."""
        queue = (current_stream(self.device) if stream is None else stream).stream_base
        self._mark, self._place = queue.mark(), queue.place

    def _done(self, wait):
        if self._mark is not None and _core.mark_done(self._mark, wait):
            self._mark = None
        return self._mark is None

    def query(self):
        """Whether that work is done. The answer of a device without events waits for it."""
        return self._done(False)

    def elapsed_time(self, end_event):
        """0, as in Paddle 2.6.2: events are not timed. paddle.profiler times operators."""
        return 0

    def synchronize(self):
        """Waits for that work; an event that was never recorded is done."""
        self._done(True)

    def __repr__(self):
        return f"<paddle.device.Event device={self.device}>"


class Stream:
    """A stream of a device (a place or a name; None: the current device). All streams of a device share one order of its
    work; priority is accepted, and means nothing to devices here."""

    def __init__(self, device=None, priority=2, stream_base=None):
        if stream_base is not None and not isinstance(stream_base, _Queue):
            raise TypeError(f"Stream: stream_base should be another stream's stream_base, got {type(stream_base).__name__}")
        self.device = place_of("Stream", device) if stream_base is None else stream_base.place
        self.stream_base = stream_base or queue_of("Stream", self.device)

    def wait_event(self, event):
        """Later work waits for an event; it does in any case, in the device's one order. An event of another device is
        waited for here."""
        self._wait(event._place, event.synchronize)

    def wait_stream(self, stream):
        """Later work waits for the work that another stream has now; a stream of another device is waited for here."""
        self._wait(stream.device, stream.synchronize)

    def _wait(self, place, wait):
        if place is not None and place != self.device:
            wait()

    def record_event(self, event=None):
        """Records an event (None: a new one), and returns it."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def query(self):
        """Whether the stream's work is done. The answer of a device without events waits for it."""
        return self.record_event().query()

    def synchronize(self):
        """Waits for the stream's work."""
        self.stream_base.synchronize()

    def __eq__(self, other):
        return isinstance(other, Stream) and self.stream_base is other.stream_base

    def __hash__(self):
        return hash(self.stream_base)

    def __repr__(self):
        return f"<paddle.device.Stream device={self.device} stream={id(self.stream_base):#x}>"


_current = threading.local()


def current_stream(device=None):
    """This thread's current stream of a device (None: the current device)."""
    place = place_of("current_stream", device)
    streams = _current.__dict__.setdefault("streams", {})
    if place not in streams:
        streams[place] = Stream(stream_base=queue_of("current_stream", place))
    return streams[place]


def set_stream(stream):
    """Makes a stream its device's current one in this thread; returns the former."""
    place = stream.stream_base.place
    before = current_stream(place)
    _current.streams[place] = stream
    return before


class stream_guard:
    """Context in which a stream, and its device, are the current ones; None changes nothing."""

    def __init__(self, stream=None):
        self.stream = stream

    def __enter__(self):
        if self.stream is None:
            return
        device = self.stream.device
        self._device = _core.get_device()
        self._stream = set_stream(self.stream)
        _core.set_device(device._device_name())

    def __exit__(self, *args):
        if self.stream is not None:
            set_stream(self._stream)
            _core.set_device(self._device)
