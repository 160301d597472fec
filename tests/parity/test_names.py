"""Each public name of fleet has a case; test_parity.py asserts that all cases agree with real Paddle."""
import pathlib

import ours

HERE = pathlib.Path(__file__).resolve().parent


def test_fleet():
    done = ours.run(HERE / "names_of_cases.py", "fleet")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == 173
    assert [name for name, *cases in rows if not cases] == []
