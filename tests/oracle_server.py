"""Programs on real Paddle without its import each time (forked_server.py). Run by tests/oracle.py; argv is what follows
`python`: SCRIPT or -c CODE, then arguments."""
import pathlib
import sys
import types

from forked_server import serve  # before Paddle: Python's zlib, loaded behind it, would call Paddle's

import paddle  # noqa: F401 - children find it imported


def program(argv):
    """Runs the code that argv names, as __main__."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if argv[0] == "-c":
        sys.argv, sys.path[0], name, text = ["-c", *argv[2:]], "", "<string>", argv[1]
    else:
        name = argv[0]
        main.__file__, sys.argv, sys.path[0] = name, argv, str(pathlib.Path(name).resolve().parent)
        text = pathlib.Path(name).read_text()
    exec(compile(text, name, "exec"), main.__dict__)


serve(program)
