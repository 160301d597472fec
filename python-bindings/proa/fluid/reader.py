"""fluid.reader: PyReader and DataLoader, which are fed by Python generators."""
import atexit
import queue

import numpy

from ..io import DataLoader
from ..io.generator_loader import GeneratorLoader
from ..io.worker import get_worker_info

__all__ = ["DataLoader", "PyReader", "default_collate_fn"]

USE_PINNED_MEMORY = None
KEEP_DATA_LOADER_ORDER = True
QUEUE_GET_TIMEOUT = 60
multiprocess_queue_set = set()


def use_pinned_memory(*args):
    """Whether batches for a GPU go through pinned memory; a bool sets it."""
    global USE_PINNED_MEMORY
    if not args:
        return USE_PINNED_MEMORY
    USE_PINNED_MEMORY = bool(args[0])
    return None


def keep_data_loader_order(*args):
    """Whether batches come in the reader's order, as they do here; a bool sets it."""
    global KEEP_DATA_LOADER_ORDER
    if not args:
        return KEEP_DATA_LOADER_ORDER
    KEEP_DATA_LOADER_ORDER = bool(args[0])
    return None


def default_collate_fn(batch):
    """Samples as one batch."""
    from ..io import default_collate_fn as collate
    return collate(batch)


class DataLoaderBase:
    """Base of data loaders."""

    def __init__(self):
        self._places = None

    def __call__(self):
        return self

    def __iter__(self):
        raise NotImplementedError()

    def __next__(self):
        raise NotImplementedError()

    @classmethod
    def _check_input_array(cls, item):
        array = numpy.array(item)
        if array.dtype == object:
            raise TypeError("Faild to convert input data to a regular ndarray: usually the samples of a batch have different "
                            "shapes; make them alike, or one LoDTensor")
        return array


class PyReader(GeneratorLoader):
    """DataLoader.from_generator under its older names."""

    def __init__(self, feed_list=None, capacity=None, use_double_buffer=True, iterable=True, return_list=False):
        super().__init__(feed_list, capacity, iterable, return_list)

    decorate_sample_generator = GeneratorLoader.set_sample_generator
    decorate_sample_list_generator = GeneratorLoader.set_sample_list_generator
    decorate_batch_generator = GeneratorLoader.set_batch_generator
    _iterator = None

    def __next__(self):
        if self._iterator is None:
            self._iterator = iter(self)
        try:
            return next(self._iterator)
        except StopIteration:
            self._iterator = None
            raise

    def next(self):
        """The next batch of an iterable reader; StopIteration behind the last, after which it begins again."""
        return self.__next__()


class CleanupFuncRegistrar:
    """Functions that run when the process ends."""

    _executed_func_set, _registered_func_set = set(), set()

    @classmethod
    def register(cls, function, signals=()):
        """Runs function when the interpreter ends, and when one of these signals comes; once."""
        if not callable(function):
            raise TypeError(f"{function!r} is not callable function.")
        cls._registered_func_set.add(function)

        def once():
            if function not in cls._executed_func_set:
                cls._executed_func_set.add(function)
                function()
        atexit.register(once)
        import signal
        for number in signals:
            before = signal.getsignal(number)

            def handler(signum, frame, before=before):
                once()
                if callable(before):
                    before(signum, frame)
            signal.signal(number, handler)


def _cleanup():
    """Empties the queues of worker processes."""
    for one in list(multiprocess_queue_set):
        while True:
            try:
                one.get_nowait()
            except queue.Empty:
                break
    multiprocess_queue_set.clear()
