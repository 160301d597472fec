"""Empty stand-ins for third-party modules that a repository imports and the models do not use: the same on both sides."""
import importlib.abc
import importlib.machinery
import sys
import types


class _Nothing:
    """Answers every attribute and call with itself; as a decorator it gives the function back."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self):
        return iter(())

    def __mro_entries__(self, bases):
        return (object,)


class _Module(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {}) if name[:1].isupper() else _Nothing()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = set(names)

    def find_spec(self, name, path=None, target=None):
        if name not in self.names and name.split(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


def install(names):
    """Stands in for these modules where the interpreter has none of that name; a dotted one is a part that was not built."""
    absent = []
    for name in names:
        try:
            found = "." not in name and importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            found = False
        if not found:
            absent.append(name)
            if name.startswith("paddle."):  # the same module under Proa's own name
                absent.append("proa." + name.partition(".")[2])
    sys.meta_path.append(_Finder(absent))
