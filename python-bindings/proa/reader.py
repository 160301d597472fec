"""paddle.reader: decorators of readers (shuffle, buffered, map_readers, …). A reader is a function without arguments
that returns an iterator."""
import itertools
import random
import sys
from concurrent.futures import ThreadPoolExecutor

decorator = sys.modules[__name__]  # Paddle's name of this module
__all__ = ["ComposeNotAligned", "buffered", "cache", "chain", "compose", "firstn", "map_readers", "multiprocess_reader",
           "shuffle", "xmap_readers"]


class ComposeNotAligned(ValueError):
    """Readers that go together have different lengths."""


def cache(reader):
    """Keeps all items of a reader in memory."""
    items = tuple(reader())
    return lambda: iter(items)


def map_readers(func, *readers):
    """func of the items that readers give together."""
    return lambda: map(func, *(reader() for reader in readers))


def shuffle(reader, buf_size):
    """Items in random order, within buffers of buf_size."""
    def shuffled():
        items = iter(reader())
        while buffer := list(itertools.islice(items, buf_size)):
            random.shuffle(buffer)
            yield from buffer
    return shuffled


def chain(*readers):
    """Readers one behind the other."""
    return lambda: itertools.chain(*(reader() for reader in readers))


def compose(*readers, check_alignment=True):
    """The items of several readers as one tuple each."""
    def flat(items):
        return sum((one if isinstance(one, tuple) else (one,) for one in items), ())
    missing = object()

    def composed():
        if not check_alignment:
            yield from map(flat, zip(*(reader() for reader in readers)))
            return
        for items in itertools.zip_longest(*(reader() for reader in readers), fillvalue=missing):
            if any(one is missing for one in items):
                raise ComposeNotAligned("outputs of readers are not aligned.")
            yield flat(items)
    return composed


def firstn(reader, n):
    """The first n items."""
    return lambda: itertools.islice(reader(), n)


def buffered(reader, size):
    """Up to `size` items are read ahead by a thread."""
    def ahead():
        end = object()
        items = iter(reader())
        with ThreadPoolExecutor(1) as pool:
            waiting = [pool.submit(next, items, end) for _ in range(max(size, 1))]
            while True:
                one = waiting.pop(0).result()
                if one is end:
                    return
                waiting.append(pool.submit(next, items, end))
                yield one
    return ahead


def xmap_readers(mapper, reader, process_num, buffer_size, order=False):
    """mapper of each item, by threads."""
    def mapped():
        items = iter(reader())
        with ThreadPoolExecutor(process_num) as pool:
            waiting = [pool.submit(mapper, one) for one in itertools.islice(items, buffer_size)]
            while waiting:
                at = 0 if order else next((i for i, one in enumerate(waiting) if one.done()), 0)
                yield waiting.pop(at).result()
                waiting += [pool.submit(mapper, one) for one in itertools.islice(items, 1)]
    return mapped


def multiprocess_reader(readers, use_pipe=True, queue_size=1000):
    """The items of several readers; threads read them."""
    def merged():
        end = object()
        with ThreadPoolExecutor(len(readers)) as pool:
            iterators = [iter(reader()) for reader in readers]
            waiting = {i: pool.submit(next, iterator, end) for i, iterator in enumerate(iterators)}
            while waiting:
                for i in list(waiting):
                    one = waiting.pop(i).result()
                    if one is not end:
                        waiting[i] = pool.submit(next, iterators[i], end)
                        yield one
    return merged
