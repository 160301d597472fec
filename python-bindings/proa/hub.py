"""paddle.hub: models from a folder's hubconf.py. Only source='local': Proa downloads nothing."""
import builtins
import importlib.util
import os
import sys


def _hubconf(who, repo_dir, source):
    if source not in ("github", "gitee", "local"):
        raise ValueError(f"hub.{who}: source must be 'github', 'gitee' or 'local', got {source!r}")
    if source != "local":
        raise ValueError(f"hub.{who}: source={source!r} needs a download, which Proa does not do; clone {repo_dir} and "
                         "give its folder with source='local'")
    path = os.path.join(repo_dir, "hubconf.py")
    if not os.path.exists(path):
        raise RuntimeError(f"hub.{who}: there is no {path}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, repo_dir)
    try:
        spec.loader.exec_module(module)
    except ImportError as e:
        raise RuntimeError(f"hub.{who}: {path} cannot be imported: {e}") from e
    finally:
        sys.path.remove(repo_dir)
    return module


def _entry(who, module, model):
    if not isinstance(model, str):
        raise ValueError(f"hub.{who}: model must be the name of a function, got {type(model).__name__}")
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"hub.{who}: hubconf.py has no function {model!r}")
    return found


def list(repo_dir, source="github", force_reload=False):
    """The names of the functions in hubconf.py."""
    module = _hubconf("list", repo_dir, source)
    return [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")]


def help(repo_dir, model, source="github", force_reload=False):
    """The documentation of a function in hubconf.py."""
    return _entry("help", _hubconf("help", repo_dir, source), model).__doc__


def load(repo_dir, model, source="github", force_reload=False, **kwargs):
    """The result of the function in hubconf.py for these arguments."""
    module = _hubconf("load", repo_dir, source)
    wanted = getattr(module, "dependencies", None) or ()
    missing = builtins.list(filter(lambda n: importlib.util.find_spec(n) is None, wanted))
    if missing:
        raise RuntimeError(f"hub.load: missing dependencies: {', '.join(missing)}")
    return _entry("load", module, model)(**kwargs)
