"""Names numbered by key (fc_0, fc_1, …), and the check that no two parameters share one."""
import contextlib

__all__ = ["generate", "guard", "switch"]


class UniqueNameGenerator:
    """Counts how often each key was asked for; every name begins with prefix."""

    def __init__(self, prefix=None):
        self.ids = {}
        self.prefix = prefix or ""

    def __call__(self, key):
        number = self.ids.get(key, 0)
        self.ids[key] = number + 1
        return f"{self.prefix}{key}_{number}"


class DygraphParameterNameChecker:
    """Calling it with a name says whether the name was seen before, and remembers it."""

    def __init__(self):
        self._names = set()

    def __call__(self, name):
        used = name in self._names
        self._names.add(name)
        return used


generator = UniqueNameGenerator()
dygraph_parameter_name_checker = DygraphParameterNameChecker()


def generate(key):
    """The next name for key.

    >>> import proa as paddle
    >>> with paddle.utils.unique_name.guard():
    ...     print(paddle.utils.unique_name.generate("fc"), paddle.utils.unique_name.generate("fc"))
    fc_0 fc_1
    """
    return generator(key)


def generate_with_ignorable_key(key):
    """A name for a temporary: the key only keeps it readable."""
    return generator(key)


def switch(new_generator=None, new_para_name_checker=None):
    """Starts a new namespace (or goes back to a given one); returns the generator and checker used so far."""
    global generator, dygraph_parameter_name_checker
    before = generator, dygraph_parameter_name_checker
    generator = UniqueNameGenerator() if new_generator is None else new_generator
    dygraph_parameter_name_checker = (DygraphParameterNameChecker() if new_para_name_checker is None
                                      else new_para_name_checker)
    return before


@contextlib.contextmanager
def guard(new_generator=None):
    """A context that numbers its names from zero; a string becomes their prefix."""
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    before = switch(new_generator)
    try:
        yield
    finally:
        switch(*before)
