"""Jobs of forked ranks (tests/launched.py): a rank that fails fails the job; what it is told arrives."""
import pathlib
import subprocess
import time

import pytest

from _job import passes


@pytest.mark.parametrize("last, said", [("raise ValueError('the cause')", "ValueError: the cause"),
                                        ("sys.exit(3)", "rank 1 has left|exit code 3"), ("os.kill(os.getpid(), 9)", "signal SIGKILL")])
def test_a_rank_that_fails(tmp_path, last, said):
    with pytest.raises(AssertionError, match=said):
        passes(tmp_path, 3, f"if rank == 1:\n    {last}\ndist.barrier()")


def ends(process, within=10):
    """Whether a process is gone, or a zombie, in a number of seconds: a signal is delivered when its target next runs."""
    status, until = pathlib.Path("/proc", process, "status"), time.monotonic() + within
    while time.monotonic() < until:
        try:
            if "State:\tZ" in status.read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_a_late_job_is_killed(tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        passes(tmp_path, 2, """
            import pathlib, time
            pathlib.Path(sys.argv[1], str(rank)).write_text(str(os.getpid()))
            time.sleep(60)
            """, limit=3)
    assert all(ends((tmp_path / rank).read_text()) for rank in "01")


def test_ranks_are_programs_of_their_own(tmp_path):
    logs = passes(tmp_path, 2, """
        import atexit
        atexit.register(print, "ended")
        print(__name__, sys.argv, sys.path[0], rank, size, os.environ["PROA_WORD"])
        """, environment={"PROA_WORD": "arrived"})
    told = f"__main__ ['{tmp_path}/script.py', '{tmp_path}'] {tmp_path}"
    assert [line for line in logs.splitlines() if line.startswith("__main__")] == [f"{told} {rank} 2 arrived" for rank in range(2)]
    assert logs.count("ended") == 2
