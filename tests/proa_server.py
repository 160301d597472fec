"""`python -m proa SCRIPT` without its imports (forked_server.py); argv is SCRIPT and its arguments. Run by tests/ours.py."""
import sys

import forked_server
import numpy  # noqa: F401 - forks find all of these imported
import proa
import proa.__main__ as command
from proa.distributed import fleet, sharding  # noqa: F401

for module in ("amp", "hapi", "incubate", "inference", "io", "jit", "nn", "optimizer", "quantization", "static", "vision"):
    getattr(proa, module)
THREADS = proa._core.get_threads()


def program(argv):
    proa._core.set_threads(THREADS)  # a fork begins with one
    sys.argv = ["proa", *argv]
    return command.main()


forked_server.serve(program)
