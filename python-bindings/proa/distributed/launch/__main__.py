"""Entry point of python -m proa.distributed.launch, which starts the ranks of a job."""
import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
