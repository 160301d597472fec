"""`python -m proa script.py [args]` and `python -m proa -m module [args]`: run a program that says `import paddle`
on Proa, unmodified."""
import os
import runpy
import sys

from ._alias import install_as_paddle

USAGE = "usage: python -m proa script.py [args]\n       python -m proa -m module [args]"


def main():
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if args else 2
    install_as_paddle()
    if args[0] == "-m":
        if len(args) < 2:
            print(USAGE, file=sys.stderr)
            return 2
        sys.argv = args[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        return 0
    if not os.path.exists(args[0]):
        print(f"proa: there is no file {args[0]}", file=sys.stderr)
        return 2
    sys.argv = args
    sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
    runpy.run_path(args[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
