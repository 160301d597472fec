"""Every public name of real Paddle 2.6.2 leads to something in Proa, but for those of public_names_missing.txt, each with its reason."""
import json

import oracle
import ours
from conftest import NEEDS_PADDLE
from public_names import MISSING, PROGRAM, read_missing, resolves

pytestmark = NEEDS_PADDLE


def test_public_names(tmp_path):
    names = json.loads(oracle.ask(PROGRAM, "list").splitlines()[-1])
    total, reasons = read_missing()
    assert len(names) == total, f"{MISSING.name} says of how many names it is the rest"
    file = tmp_path / "names.json"
    file.write_text(json.dumps(names))
    done = ours.run(PROGRAM, "lacks", file)
    assert done.returncode == 0, done.stderr
    lacked = json.loads(done.stdout.splitlines()[-1])
    assert [name for name in lacked if name not in reasons] == []
    assert sorted(reasons.keys() - set(lacked)) == [], f"no more missing: `public_names.py shrink` takes them out of {MISSING.name}"


def test_the_page_has_the_figure():
    total, reasons = read_missing()
    page = (oracle.ROOT / "docs/compatibility.md").read_text()
    assert f"Of the {total} public names of Paddle 2.6.2 {total - len(reasons)} are there" in page, "run tools/compatibility.py"


def test_names_that_are_hard_to_find():
    assert resolves("enum.Enum.__members__") and not resolves("enum.Enum.nothing") and not resolves("no_such_module.name")
    assert resolves("uuid.SafeUUID.safe.value") and resolves("uuid.SafeUUID.value")  # of an enum's members
