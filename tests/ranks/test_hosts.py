"""Jobs over several hosts, which are namespaces here (_hosts.py)."""
import pathlib
import subprocess
import sys

import pytest

import _namespaces

HERE = pathlib.Path(__file__).resolve().parent


@pytest.mark.skipif(not _namespaces.able(), reason="network namespaces need root, ip and unshare")
def test_two_hosts(tmp_path):
    done = subprocess.run([sys.executable, str(HERE / "_hosts.py"), str(tmp_path)], text=True, capture_output=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
