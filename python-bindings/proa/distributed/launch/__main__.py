"""python -m proa.distributed.launch"""
import sys

from .main import main

sys.exit(main())
