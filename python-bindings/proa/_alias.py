"""Proa under the name `paddle`: after install_as_paddle, `import paddle` and every `paddle.x.y` are Proa's
modules, the same objects under both names."""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing.spawn
import sys
import types

ALIAS = "paddle"
# Modules that Paddle 2.6 has under another name, or whose contents stand in another module here.
RENAMED = {"base": "fluid", "framework.framework": "framework", "incubate.layers": "fluid.contrib.layers", "reader.decorator": "reader",
           "nn.functional.vision": "nn.functional",
           **{f"incubate.nn.layer.fused_{name}": "incubate.nn.layer" for name in (
               "dropout_add", "dropout_nd", "ec_moe", "linear", "transformer")},
           "distributed.communication.group": "distributed.group", "sparse.creation": "sparse", "tensor.ops": "tensor",
           "text.viterbi_decode": "text.viterbi", "utils.layers_utils": "utils", "utils.unique_name": "framework.unique_name",
           **{f"optimizer.{name}": "optimizer.adagrad" for name in ("adadelta", "rmsprop")},
           **{f"optimizer.{name}": "optimizer.adam" for name in ("adamax", "adamw", "lamb")}, "optimizer.momentum": "optimizer.sgd",
           **{f"nn.initializer.{name}": "nn.initializer" for name in (
               "assign", "constant", "dirac", "kaiming", "normal", "orthogonal", "uniform", "xavier")}}


def _own(name):
    """The module of Proa that is called so in Paddle."""
    parts = name.split(".")[1:]
    for n in range(len(parts), 0, -1):  # the longest name that another stands for
        if ".".join(parts[:n]) in RENAMED:
            parts[:n] = [RENAMED[".".join(parts[:n])]]
            break
    return ".".join([__package__, *parts])


class _Package(types.ModuleType):
    """A package whose functions keep their names where a module has the same: the import system puts a module that it
    finds under a second name into its package, so that `import paddle.amp.auto_cast` would hide amp.auto_cast."""

    def __setattr__(self, name, value):
        if isinstance(value, types.ModuleType) and not isinstance(self.__dict__.get(name, value), types.ModuleType):
            return
        super().__setattr__(name, value)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds paddle.x.y as the module proa.x.y."""

    def find_spec(self, name, path=None, target=None):
        if name != ALIAS and not name.startswith(ALIAS + "."):
            return None
        own = _own(name)
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as e:
            if e.name is not None and not own.startswith(e.name):
                raise  # something that the module itself needs is missing
            raise ModuleNotFoundError(f"No module named {name!r}: Proa does not have it", name=name) from None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=hasattr(module, "__path__"))
        spec.loader_state = module, module.__spec__
        package = sys.modules.get(name.rpartition(".")[0])
        if type(package) is types.ModuleType:
            package.__class__ = _Package
        return spec

    def create_module(self, spec):
        return spec.loader_state[0]

    def exec_module(self, module):
        # the import system put the alias's spec on the module: give it its own back
        module.__spec__ = module.__spec__.loader_state[1]

    def get_code(self, name):
        own = _own(name)  # for runpy: python -m proa -m paddle.distributed.launch
        return importlib.util.find_spec(own).loader.get_code(own)


class _InChild:
    """Installs the alias where it is unpickled."""

    def __reduce__(self):
        return install_as_paddle, ()


def _pass_on(prepare):
    """multiprocessing's data for a child, which it unpickles before it imports the main script: with the alias."""

    def with_alias(name):
        return {**prepare(name), "proa_alias": _InChild()}

    return with_alias


def is_installed():
    """Whether `import paddle` means Proa in this process."""
    return sys.modules.get(ALIAS) is sys.modules[__package__]


def install_as_paddle():
    """Makes `import paddle` mean Proa in this process and in those that it spawns by multiprocessing; does nothing the
    second time.

    RuntimeError if real Paddle is loaded already.
    """
    loaded = sys.modules.get(ALIAS)
    if loaded is not None and loaded is not sys.modules[__package__]:
        raise RuntimeError("install_as_paddle: another `paddle` is loaded already; call this before importing it")
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        multiprocessing.spawn.get_preparation_data = _pass_on(multiprocessing.spawn.get_preparation_data)
    sys.modules[ALIAS] = sys.modules[__package__]
