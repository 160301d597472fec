"""The package under test is the build's (PROA_BUILD, default build)."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
PACKAGE = str(BUILD / "python")
sys.path.insert(0, PACKAGE)
