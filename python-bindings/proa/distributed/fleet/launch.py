"""python -m proa.distributed.fleet.launch: the launcher under its name of 2.0."""
import sys

from ..launch.main import launch, main

__all__ = ["launch"]

if __name__ == "__main__":
    sys.exit(main())
