"""The package under test is the build's (PROA_BUILD, default build)."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = str(pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve() / "python")
sys.path.insert(0, PACKAGE)
